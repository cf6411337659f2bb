"""The fork server's own process: imports once, then forks a limited worker for each job.

It never runs a kernel and never starts a thread, so a fork of it is as good as a fresh process.
It adopts whatever its workers leave behind (it is their subreaper) and kills it. It ends, with
all its workers, when the parent's end of the control socket closes.

Messages from the parent: ``configure`` first, then ``start`` and ``kill``. Messages to the parent:
``ready``, ``started``, ``exited``, ``failed``.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from edgekernelbench.evaluator import sandbox, view, wire
from edgekernelbench.evaluator.leftovers import Sweeper, leave_sweeper

Entry = Callable[[socket.socket, dict[str, Any], list[int]], None]
"""What a worker runs: its connection to the parent, the job, and the job's descriptors."""


def main(control_fd: int) -> NoReturn:
    """Serves until the parent goes away; never returns."""
    control = socket.socket(fileno=control_fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sandbox.become_reaper()
    code = 0
    try:
        wanted = wire.receive(control)
        for name in wanted["preload"]:
            module, _, function = name.partition(":")
            imported = importlib.import_module(module)
            if function:
                getattr(imported, function)()
        surroundings = _surroundings(wanted["drivers"], wanted["reads"])
        # Objects that live on are not to be touched (and copied) by the workers' collectors.
        gc.collect()
        gc.freeze()
        wire.send(control, {"ready": os.getpid(), "threads": _thread_count()})
        _Server(control, surroundings).serve()
    except wire.WireError:
        pass
    except BaseException:
        code = 1
        with contextlib.suppress(wire.WireError):
            wire.send(control, {"failed": traceback.format_exc(limit=-8)[-4000:]})
    finally:
        os._exit(code)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all workers of a server see: files to read, devices to write, folders to list; and why
    they share the host's network, if they do."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    lists: tuple[str, ...]
    network: str | None


def _surroundings(drivers: bool, reads: list[str]) -> Surroundings:
    places = (*view.readable(drivers), *reads)
    writes, lists = view.writable(drivers), view.listable(drivers)
    return Surroundings(places, writes, lists, sandbox.leave_network())


def _thread_count() -> int:
    return sum(1 for _ in Path("/proc/self/task").iterdir())


class _Server:
    def __init__(self, control: socket.socket, surroundings: Surroundings) -> None:
        self._control = control
        self._surroundings = surroundings
        self._live: dict[int, Sweeper | None] = {}
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        sandbox.ignore_stops()
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Raises `wire.WireError` when the parent has gone; its workers are dead then."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        try:
            more = False
            while True:
                ready = [fd for fd, _ in poll.poll(0 if more else None)]
                if self._wake_read in ready:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_read, 4096)
                self._notice_ends()
                more = self._bury_orphans()
                if self._control.fileno() in ready:
                    self._handle()
        finally:
            for pid, sweeper in list(self._live.items()):
                self._kill(pid)
                if sweeper is not None:
                    sweeper.sweep()
            self._live.clear()
            self._sweep_orphans()

    def _handle(self) -> None:
        message, fds = wire.receive_with_fds(self._control)
        match message.get("op"):
            case "start":
                self._start(message, fds)
            case "kill":
                self._kill(message["pid"])
            case other:
                raise ValueError(f"unknown operation {other!r}")

    def _start(self, job: dict[str, Any], fds: list[int]) -> None:
        zygote = os.getpid()
        pair = socket.socketpair() if job["limits"]["processes"] else None
        pid = os.fork()
        if pid == 0:
            self._forget()
            if pair is not None:
                pair[0].close()
                leave_sweeper(pair[1])
            run_worker(job, fds, zygote, self._surroundings)
        for fd in fds:
            os.close(fd)
        self._live[pid] = None
        if pair is not None:
            pair[1].close()
            self._live[pid] = Sweeper.met(pair[0])
        wire.send(self._control, {"started": pid})

    def _forget(self) -> None:
        """Closes in a worker what is the server's."""
        signal.set_wakeup_fd(-1)
        for fd in (self._wake_read, self._wake_write):
            os.close(fd)
        self._control.close()
        for sweeper in self._live.values():
            if sweeper is not None:
                sweeper.hold.close()

    def _kill(self, pid: int) -> None:
        if pid in self._live:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError):
                    kill(pid, signal.SIGKILL)

    def _notice_ends(self) -> None:
        """Tells of workers that have ended, once nothing that they started lives any more."""
        for pid in list(self._live):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            # The group is killed while its leader is still unreaped: its number cannot be reused.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            sweeper = self._live.pop(pid)
            if sweeper is not None:
                sweeper.sweep()
            self._sweep_orphans()
            event = {
                "exited": pid,
                "code": os.waitstatus_to_exitcode(status),
                "max_rss": usage.ru_maxrss * 1024,
            }
            wire.send(self._control, event)

    def _bury_orphans(self, most: int = 256) -> bool:
        """Takes notice of adopted processes that have ended, with an eye on the parent's messages:
        those of processes that only start the next never come to an end.

        Returns:
            Whether there may be more.
        """
        for _ in range(most):
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return False
            if ended is None:
                return False
            if ended.si_pid in self._live:
                return True
            os.waitpid(ended.si_pid, 0)
        return True

    def _sweep_orphans(self, rounds: int = 200) -> None:
        """Kills adopted processes until none is left; a fork bomb gets a bounded fight."""
        spared = {*self._live, *(s.pid for s in self._live.values() if s is not None)}
        for _ in range(rounds):
            orphans = [pid for pid in _children() if pid not in spared]
            if not orphans:
                return
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for pid in orphans:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
            time.sleep(0.001)


def _children() -> list[int]:
    own = os.getpid()
    with contextlib.suppress(OSError):
        return [int(p) for p in Path(f"/proc/self/task/{own}/children").read_text().split()]
    return [pid for pid in _processes() if _parent_of(pid) == own]  # a kernel without that file


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _parent_of(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None


def run_worker(
    job: dict[str, Any], fds: list[int], zygote: int, surroundings: Surroundings
) -> NoReturn:
    """The life of a worker, from just after the fork. Its first two descriptors are the
    connection to the parent and the log that takes its standard output and error."""
    code = 70
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        connection = socket.socket(fileno=fds[0])
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (fds[1], 1), (fds[1], 2)):
            os.dup2(source, target)
        os.chdir(job["folder"])
        limits = sandbox.Limits.model_validate(job["limits"])
        sandbox.apply(limits)
        if os.getppid() != zygote:
            os._exit(code)
        isolation = _isolate(job, limits, surroundings)
        wire.send(connection, {"hello": os.getpid(), "isolation": isolation.model_dump()})
        module, _, function = job["entry"].partition(":")
        entry: Entry = getattr(importlib.import_module(module), function)
        entry(connection, job["payload"], fds[2:])
        code = 0
    except wire.WireError:
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _isolate(
    job: dict[str, Any], limits: sandbox.Limits, surroundings: Surroundings
) -> sandbox.Isolation:
    folder, scratch = job["folder"], job["scratch"]
    own = (scratch, folder) if limits.writes else ()
    if scratch is not None:
        os.environ.update(dict.fromkeys(_HOMES, scratch))
        tempfile.tempdir = None  # the server may have asked for one
    reads, writes = (*surroundings.reads, folder), (*surroundings.writes, *own)
    calls, files = sandbox.isolate(limits, reads, writes, surroundings.lists)
    return sandbox.Isolation(calls=calls, files=files, network=surroundings.network)


_HOMES = ("HOME", "TMPDIR", "XDG_CACHE_HOME")
"""Where programs leave files; tools of a compiler as well as drivers."""
