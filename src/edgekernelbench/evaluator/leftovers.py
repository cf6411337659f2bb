"""What a process has left running, and its end.

Whoever looks for processes and kills what is found comes too late for those that are never there
for long: each starts the next and ends. One call of ``kill(-1)`` has no such gap, since the system
lets no process be started while it goes through them; but it must be made by a process that can
signal nothing else. Landlock (version 6) keeps such processes apart.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from dataclasses import dataclass
from typing import NoReturn, Self

from edgekernelbench.evaluator import landlock
from edgekernelbench.evaluator.sandbox import PR_SET_NO_NEW_PRIVS, prctl

_PID_BYTES = 4
_START_S = 10.0
_END_S = 5.0


def keep_apart() -> bool:
    """From now on this process can signal nothing but what it starts; False where the system does
    not have that. Its parent tells: whom it could have signalled before, and cannot now."""
    parent = os.getppid()
    try:
        os.kill(parent, 0)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        closed = landlock.keep_signals()
    except OSError:
        return False
    try:
        os.kill(parent, 0)
    except PermissionError:
        return closed
    return False


@dataclass(frozen=True, slots=True)
class Sweeper:
    """A process beside a worker that kills all that the worker has started, and the worker.

    Attributes:
        pid: its process number.
        hold: its end, for whatever reason, is the sign to begin.
    """

    pid: int
    hold: socket.socket

    @classmethod
    def met(cls, hold: socket.socket) -> Self | None:
        """The sweeper at the other end of ``hold``, once it waits; None when there is none."""
        hold.settimeout(_START_S)
        with contextlib.suppress(OSError):
            said = hold.recv(_PID_BYTES, socket.MSG_WAITALL)
            if len(said) == _PID_BYTES:
                return cls(int.from_bytes(said, "little"), hold)
        hold.close()
        return None

    def sweep(self) -> None:
        """Has it begin, and waits until it has ended."""
        self.hold.settimeout(_END_S)
        with contextlib.suppress(OSError):
            self.hold.shutdown(socket.SHUT_WR)
            self.hold.recv(1)
        self.hold.close()


def leave_sweeper(channel: socket.socket) -> None:
    """Starts the sweeper of the calling process, where the system keeps signals apart.

    What this process starts from now on, it can signal and they cannot signal it, provided that
    this process restricts itself once more (`sandbox.isolate`).

    Args:
        channel: the other end of what becomes `Sweeper.hold`; closed here.
    """
    if keep_apart() and os.fork() == 0:
        _wait_and_sweep(channel.fileno())
    channel.close()


def _wait_and_sweep(channel: int) -> NoReturn:
    try:
        os.setsid()  # not of the worker's group, which is killed first
        for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)
        os.closerange(0, channel)
        os.closerange(channel + 1, os.sysconf("SC_OPEN_MAX"))
        os.write(channel, os.getpid().to_bytes(_PID_BYTES, "little"))
        with contextlib.suppress(OSError):
            os.read(channel, 1)
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGKILL)
    finally:
        os._exit(0)
