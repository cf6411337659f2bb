"""One job in one fresh process, as its parent sees it: talk to it, and be sure it is gone.

Losing it is an expected outcome, told by `ChildLost`.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from edgekernelbench.evaluator import wire
from edgekernelbench.evaluator.folders import remove_folder
from edgekernelbench.evaluator.sandbox import Isolation

if TYPE_CHECKING:
    from edgekernelbench.evaluator.forkserver import ForkServer

EXIT_WAIT = 5.0
"""Seconds for a process that was killed to be gone."""

_LOG_TAIL = 4000

_HALT_WAIT = 1.0
"""Seconds for a process to stand still. On a busy machine the thread that the signal wakes waits
for a processor first."""

_HALT_STEP = 0.0001


class Exit(BaseModel):
    """How a worker ended: ``code`` below zero is minus a signal number."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: int
    max_rss: int

    def __str__(self) -> str:
        if self.code >= 0:
            return f"exit code {self.code}"
        try:
            return signal.Signals(-self.code).name
        except ValueError:
            return f"signal {-self.code}"


LossKind = Literal["exited", "timeout", "bad_reply", "server"]


class ChildLost(Exception):
    """A worker gave no usable answer; it is dead by now.

    Attributes:
        kind: it ended, it was too slow, it answered out of form, or the fork server failed.
        exit: how it ended, when it ended by itself and that is known.
        detail: one line.
        log: the end of what it printed.
    """

    def __init__(
        self, kind: LossKind, detail: str, exit: Exit | None = None, log: str = ""
    ) -> None:
        super().__init__(detail)
        self.kind: LossKind = kind
        self.exit = exit
        self.detail = detail
        self.log = log

    @property
    def with_server(self) -> bool:
        """Whether its fork server was lost, too: then the loss says nothing of the job."""
        return self.kind == "server" or (self.kind == "exited" and self.exit is None)


class Worker:
    """One job in one process. Not thread-safe.

    Attributes:
        isolation: what could not be closed to it.
    """

    def __init__(
        self,
        server: ForkServer,
        pid: int,
        connection: socket.socket,
        log: int,
        scratch: Path | None,
    ) -> None:
        self.pid = pid
        self.isolation = Isolation()
        self._scratch = scratch
        self._server = server
        self._connection = connection
        self._log = log
        self._open = True
        self._halted = False
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._pidfd = -1

    def greet(self, timeout: float) -> None:
        """Waits for its first message, sent before it touches anything of a candidate's.

        Raises:
            ChildLost: as `request`.
        """
        try:
            self.isolation = Isolation.model_validate(self.reply(timeout).get("isolation"))
        except ValidationError as error:
            self.close()
            raise ChildLost("server", f"a worker that begins out of form: {error}") from error

    def request(
        self,
        message: dict[str, Any],
        timeout: float,
        fds: Sequence[int] = (),
        cap: int = wire.REPLY_CAP,
    ) -> dict[str, Any]:
        """Sends a command and returns the reply, as it came. Who was halted goes on.

        Raises:
            ChildLost: for every way in which there is no reply; the worker is dead then.
        """
        if self._halted:
            self._halted = False
            self.signal(signal.SIGCONT)
        try:
            wire.send(self._connection, message, fds, time.monotonic() + timeout)
        except wire.WireError as error:
            raise self._lost(error) from error
        return self.reply(timeout, cap)

    def reply(self, timeout: float, cap: int = wire.REPLY_CAP) -> dict[str, Any]:
        """The next message of the worker.

        Raises:
            ChildLost: as `request`.
        """
        deadline = time.monotonic() + timeout
        try:
            self._await_readable(deadline)
            return wire.receive(self._connection, cap, deadline)
        except wire.WireError as error:
            raise self._lost(error) from error

    def _await_readable(self, deadline: float) -> None:
        """Returns when there is something to read, or the process has ended: a descendant that
        keeps the connection open must not keep us waiting."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        if self._pidfd >= 0:
            poll.register(self._pidfd, select.POLLIN)
        ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            raise wire.WireError("timeout", "no reply in time")
        if all(fd == self._pidfd for fd, _ in ready):
            raise wire.WireError("closed", "the process ended")

    def _lost(self, error: wire.WireError) -> ChildLost:
        exit = None
        if error.problem == "closed":
            exit = self._server.wait_exit(self, EXIT_WAIT)
        log = self.log_tail()
        self.close()
        match error.problem:
            case "closed":
                ended = "it ended" if exit is None else f"it ended by {exit}"
                return ChildLost("exited", ended, exit, log)
            case "timeout":
                return ChildLost("timeout", error.detail, None, log)
            case _:
                return ChildLost("bad_reply", error.detail, None, log)

    def log_tail(self) -> str:
        """The end of what the worker printed, at most 4,000 characters."""
        size = os.fstat(self._log).st_size
        data = os.pread(self._log, _LOG_TAIL, max(0, size - _LOG_TAIL))
        return data.decode("utf-8", "replace").replace("\0", "")

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the process, if it still exists."""
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def halt(self) -> None:
        """Stops the process, whatever it is at, until the next request: no thread of it gets a
        processor. Waits until it stands still, but not for long: one that waits for a disk stops
        later, before it does anything else."""
        if self._halted or not self._open:
            return
        self._halted = True
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + _HALT_WAIT
        while not _stands(self.pid) and time.monotonic() < deadline:
            time.sleep(_HALT_STEP)

    @property
    def alive(self) -> bool:
        if not self._open or self._pidfd < 0:
            return False
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> Exit | None:
        """Kills the worker and what it started; returns how it ended. May be called again."""
        if not self._open:
            return None
        self._open = False
        self._connection.close()
        exit = self._server.kill(self)
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        os.close(self._log)
        drop_scratch(self._scratch)
        return exit


def _stands(pid: int) -> bool:
    """Whether a process is stopped, or is no more. All its threads are told to stop before the
    first of them is shown as stopped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "TtZX"
    except OSError:
        return True


def drop_scratch(folder: Path | None) -> None:
    """Removes what a worker kept its temporary files in, if it had anything."""
    if folder is not None:
        remove_folder(folder)
