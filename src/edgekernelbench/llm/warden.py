"""A process above all processes of one sandbox, so that none of them outlives it.

Started by `edgekernelbench.llm.local` with one end of a socket as standard input. Each message on
it asks for one command, as JSON, and carries four descriptors: the command's standard input,
output and error, and a socket of its own, on which its exit code is told and whose closing kills
it. Whatever a command starts, daemons too, stays below this process, because the system hands
orphans to it (``PR_SET_CHILD_SUBREAPER``). When the socket closes, for whatever reason, all of
them are killed, the sandbox's folder (the one argument) is removed, and this process ends.

Single-threaded, hence free to fork. Linux only.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import NoReturn

import psutil

from edgekernelbench.evaluator import landlock
from edgekernelbench.evaluator.folders import remove_folder
from edgekernelbench.evaluator.leftovers import keep_apart
from edgekernelbench.evaluator.sandbox import (
    PR_SET_NO_NEW_PRIVS,
    become_reaper,
    drop_capabilities,
    prctl,
)
from edgekernelbench.evaluator.seccomp import close_neighbours

MAX_MESSAGE = 1 << 20
"""Bytes of one request."""

DESCRIPTORS = 4
READY = b"ready"
NOT_STARTED = 127
_KILLING_S = 10.0
_DEVICES = (
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
    "/dev/tty", "/dev/ptmx", "/dev/pts",
)  # fmt: skip
"""That a command may write to. Not all of ``/dev``: files in ``/dev/shm`` outlive the sandbox, and
root would have the disks."""


class Warden:
    """See the module."""

    def __init__(self, control: socket.socket, folder: str) -> None:
        self._control = control
        self._folder = folder
        self._apart = keep_apart()

    def run(self) -> None:
        """Serves until the control socket closes; nothing below this process lives afterwards."""
        # Nobody asks how an orphan has ended. Kept until this process takes notice, those of
        # processes that only start the next would soon take all numbers that the system has.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        self._control.send(READY)
        try:
            while self._request():
                pass
        finally:
            kill_descendants(self._apart)

    def _request(self) -> bool:
        """Starts what is asked for; False at the end of all requests."""
        data, descriptors, _, _ = socket.recv_fds(self._control, MAX_MESSAGE, DESCRIPTORS)
        if not data or len(descriptors) != DESCRIPTORS:
            return False
        if os.fork() == 0:
            self._control.close()
            _attend(json.loads(data), descriptors, self._folder)
        for descriptor in descriptors:
            os.close(descriptor)
        return True


def _attend(request: dict[str, object], descriptors: list[int], writable: str) -> NoReturn:
    """The life of a process that waits for one command and tells how it ended. When nobody waits
    for that any more, the command and its process group end."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        reply = socket.socket(fileno=descriptors.pop())
        pid = os.fork()
        if pid == 0:
            _become(request, descriptors, writable)
        for descriptor in descriptors:
            os.close(descriptor)
        ended = os.pidfd_open(pid)
        ready, _, _ = select.select([ended, reply], [], [])
        if ended not in ready:
            _kill_group(pid)
        _, status = os.waitpid(pid, 0)
        reply.send(str(os.waitstatus_to_exitcode(status)).encode())
    finally:
        os._exit(0)


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(leader, signal.SIGKILL)  # not yet the leader of a group, or a zombie


def _become(request: dict[str, object], descriptors: list[int], writable: str) -> NoReturn:
    """Turns a fork into the command that was asked for."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        command, environment = request["command"], request["environment"]
        assert isinstance(command, list) and isinstance(environment, dict)
        os.chdir(str(request["folder"]))
        _confine(writable)
        os.execvpe(command[0], command, environment)
    except BaseException as error:
        os.write(2, f"cannot be started: {error}\n".encode())
    os._exit(NOT_STARTED)


def _confine(writable: str) -> None:
    """A command changes files of its own sandbox only, and signals only what it has started, where
    the system has Landlock; it reads and connects as it likes. Where there is seccomp it slows no
    other process down."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if landlock.version():
        drop_capabilities()
        landlock.restrict(["/"], [writable, *_DEVICES, "/proc/self"], tcp=True)
    close_neighbours()


def kill_descendants(apart: bool, seconds: float = _KILLING_S) -> None:
    """Kills everything below this process, however often it forks meanwhile.

    Children of what was killed become this process's own, so that the tree only gets flatter.

    Args:
        apart: this process can signal nothing else, see `leftovers.keep_apart`. Then one call
            kills all at once, and at once: looking for them takes the longer the more of them
            there are. One after the other, those escape that are never there for long: each starts
            the next and ends.
    """
    deadline = time.monotonic() + seconds
    while _has_children() and time.monotonic() < deadline:
        if apart:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        else:
            _kill_each()
        time.sleep(0.01)


def _has_children() -> bool:
    """Whether anything lives below this process. Takes notice of those that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _kill_each() -> None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill()


def main(folder: str) -> NoReturn:
    """The life of the process; its standard input is the socket."""
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)  # its end is that of the socket
    become_reaper()
    with socket.socket(fileno=0) as inherited:
        Warden(inherited, folder).run()
    remove_folder(Path(folder))
    sys.exit()
