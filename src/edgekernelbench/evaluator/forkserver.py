"""The parent's side of the fork servers, which start workers and know how they ended.

`ForkServer` restarts its process when that is lost or misbehaves. Its jobs are `worker.Worker`.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from edgekernelbench.evaluator import wire
from edgekernelbench.evaluator.folders import scratch_folder
from edgekernelbench.evaluator.sandbox import Limits
from edgekernelbench.evaluator.worker import EXIT_WAIT, ChildLost, Exit, Worker, drop_scratch

_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[2]); "
    "from edgekernelbench.evaluator.zygote import main; main(int(sys.argv[1]))"
)
_TOKEN = "EDGEKERNELBENCH_CHILD"
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CC")


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """What a fork server's process is.

    Attributes:
        preload: modules to import before the first fork, each a name or ``module:function`` with
            a function to call then.
        env: environment on top of the allow-list.
        drivers: its workers load drivers of devices, which open what their makers pleased.
        reads: files and folders that its workers read beside what `view` names.
    """

    name: str
    preload: tuple[str, ...]
    env: Mapping[str, str]
    start_seconds: float = 120.0
    drivers: bool = False
    reads: tuple[str, ...] = ()


class ForkServer:
    """One zygote, restarted as needed. Thread-safe."""

    def __init__(self, spec: ServerSpec) -> None:
        self.spec = spec
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._exits: dict[int, Exit] = {}
        self._workers: dict[int, Worker] = {}
        self._token = ""
        self.starts = 0

    # ------------------------------------------------------------ life
    def warm(self) -> None:
        """Starts the process if it is not there.

        Raises:
            ChildLost: ``server`` when it cannot be started.
        """
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return
            self._discard()
            self._launch()

    def _launch(self) -> None:
        ours, theirs = socket.socketpair()
        self._token = secrets.token_hex(16)
        command = [sys.executable, "-s", "-E", "-c", _BOOT, str(theirs.fileno())]
        self._process = subprocess.Popen(
            [*command, json.dumps(sys.path)],
            env=child_environment(self.spec.env) | {_TOKEN: self._token},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._control = ours
        self.starts += 1
        try:
            spec = self.spec
            described = {"drivers": spec.drivers, "reads": list(spec.reads)}
            wire.send(ours, {"preload": list(spec.preload), **described})
            deadline = time.monotonic() + self.spec.start_seconds
            reply = wire.receive(ours, deadline=deadline)
        except wire.WireError as error:
            self._discard()
            raise ChildLost("server", f"{self.spec.name} server: {error.detail}") from error
        if "ready" not in reply:
            self._discard()
            raise ChildLost("server", f"{self.spec.name} server: {reply.get('failed', reply)}")
        if reply["threads"] != 1:
            self._discard()
            raise ChildLost("server", f"{self.spec.name} server has threads, so it must not fork")

    def close(self) -> None:
        """Ends the process and every worker of it."""
        with self._lock:
            self._discard()

    def _discard(self) -> None:
        """Kills the process, its workers and whatever descends from them, and waits."""
        if self._control is not None:
            self._control.close()
            self._control = None
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)  # it kills its workers itself when the control socket closes
        for worker in self._workers.values():
            worker.signal(signal.SIGKILL)
        self._workers.clear()
        self._exits.clear()
        if process.poll() is None:
            process.kill()
        process.wait()
        _kill_marked(self._token)

    # ------------------------------------------------------------ jobs
    def start(
        self,
        entry: str,
        payload: dict[str, Any],
        limits: Limits,
        folder: Path,
        fds: Sequence[int] = (),
        timeout: float = 20.0,
    ) -> Worker:
        """Forks a worker that runs ``entry`` (``module:function``) in ``folder``.

        Raises:
            ChildLost: when server or worker cannot be started.
        """
        with self._lock:
            self.warm()
            ours, theirs = socket.socketpair()
            log = os.memfd_create("log", os.MFD_CLOEXEC)
            scratch = scratch_folder("tmp") if limits.writes else None
            job = {
                "op": "start",
                "entry": entry,
                "payload": payload,
                "limits": limits.model_dump(),
                "folder": str(folder),
                "scratch": None if scratch is None else str(scratch),
            }
            try:
                deadline = time.monotonic() + timeout
                assert self._control is not None
                wire.send(self._control, job, (theirs.fileno(), log, *fds), deadline)
                pid = self._await("started", deadline)
            except (wire.WireError, ChildLost) as error:
                ours.close()
                os.close(log)
                drop_scratch(scratch)
                self._discard()
                raise ChildLost("server", f"{self.spec.name} server: {error}") from error
            finally:
                theirs.close()
            worker = Worker(self, pid, ours, log, scratch)
            self._workers[pid] = worker
        worker.greet(timeout)
        return worker

    def _await(self, key: str, deadline: float) -> int:
        """The value of the next message with ``key``; exits that come before are kept."""
        assert self._control is not None
        while True:
            message = wire.receive(self._control, deadline=deadline)
            if key in message:
                return int(message[key])
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        if "exited" in message:
            exit = Exit(code=message["code"], max_rss=message["max_rss"])
            self._exits[int(message["exited"])] = exit
        else:
            raise ChildLost("server", f"{self.spec.name} server: {message.get('failed', message)}")

    def wait_exit(self, worker: Worker, timeout: float) -> Exit | None:
        """How a worker ended, or None when that is not known in time or its server is gone."""
        deadline = time.monotonic() + timeout
        with self._lock:
            while self._owns(worker) and worker.pid not in self._exits:
                try:
                    assert self._control is not None
                    self._note(wire.receive(self._control, deadline=deadline))
                except (wire.WireError, ChildLost):
                    return None
            return self._exits.get(worker.pid) if self._owns(worker) else None

    def _owns(self, worker: Worker) -> bool:
        """Not one of a process before this one: that died with it, and a new one never heard of
        it, or knows another by its number."""
        return self._workers.get(worker.pid) is worker

    def kill(self, worker: Worker) -> Exit | None:
        """Ends a worker and its process group, waits, and forgets it. A server that fails in
        this is ended with all its workers."""
        with self._lock:
            if not self._owns(worker):
                return None
            if worker.pid not in self._exits:
                try:
                    assert self._control is not None
                    deadline = time.monotonic() + EXIT_WAIT
                    wire.send(self._control, {"op": "kill", "pid": worker.pid}, deadline=deadline)
                except wire.WireError:
                    self._discard()
                    return None
            exit = self.wait_exit(worker, EXIT_WAIT)
            if exit is None:
                self._discard()
            self._workers.pop(worker.pid, None)
            self._exits.pop(worker.pid, None)
            return exit

    @property
    def pid(self) -> int | None:
        """Process number of the zygote while it runs."""
        return None if self._process is None else self._process.pid


def child_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The allow-list: no keys, no settings of libraries but those given here."""
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # One thread in NumPy's library: a zygote must have no threads, a worker needs no more.
    return kept | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"} | dict(extra)


def _kill_marked(token: str) -> None:
    """Kills every process that was started under ``token``; forks keep their environment block."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(_TOKEN) == token:
                process.kill()
