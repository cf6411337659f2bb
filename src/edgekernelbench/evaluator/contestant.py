"""The parent's side of a program being measured: one process, its arrays, its samples.

Whatever goes wrong in the process arrives here as one `Failure`; nothing it says is trusted
beyond form.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from edgekernelbench.baselines.base import Port
from edgekernelbench.evaluator.forkserver import ForkServer
from edgekernelbench.evaluator.machinery import RunnerPlug
from edgekernelbench.evaluator.regions import Layout, Sealed, Shared, guarded
from edgekernelbench.evaluator.runchild import Bind, RunRequest, Sample
from edgekernelbench.evaluator.sandbox import Isolation, Limits
from edgekernelbench.evaluator.task import Pool
from edgekernelbench.evaluator.worker import ChildLost, Worker
from edgekernelbench.targets.placement import Spreader

_COPY_SECONDS = 2.0
"""What copying inputs and outputs around the calls of a request may take."""

FailureKind = Literal["crashed", "timeout", "memory", "error", "bad_reply", "server"]


class Failure(Exception):
    """A contestant's process did not do what it was asked; it is dead by now.

    Attributes:
        kind: it died, was too slow, ran out of memory, raised, answered out of form, or could
            not be started.
        detail: one line.
        log: the end of what it printed.
    """

    def __init__(self, kind: FailureKind, detail: str, log: str = "") -> None:
        super().__init__(detail)
        self.kind: FailureKind = kind
        self.detail = detail
        self.log = log


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _BindReply(_Reply):
    bind_ns: int = Field(ge=0, le=10**14)
    load_ns: int = Field(ge=0, le=10**14)


class _SwapReply(_Reply):
    swapped: int


class _RunReply(_Reply):
    """``device_ns``: of each sample, where a device takes the time: kernels alone (None where it
    does not tell them apart), and host."""

    ns: list[int]
    device_ns: list[list[int | None]] = []


class _ErrorReply(_Reply):
    error: str
    memory: bool
    trace: str


_R = TypeVar("_R", bound=_Reply)


@dataclass(frozen=True, slots=True)
class Program:
    """What a contestant runs: a folder, which runner loads it how, and the cores to run on."""

    folder: Path
    plug: RunnerPlug
    options: Mapping[str, Any]
    cores: tuple[int, ...] = ()
    wants_twin: bool = False


@dataclass(frozen=True, slots=True)
class DeviceSample:
    """Nanoseconds of a sample's ``calls`` calls on a device: see `baselines.base.DeviceTimes`."""

    calls: int
    span_ns: int
    kernels_ns: int | None
    host_ns: int


class Contestant:
    """One program in one process. Usable again after a failure, with a new process.

    Args:
        name: for messages, and to tell them apart.
        program: what to run.
        server: forks the process.
        ports: the task's interface.
        limits: of the process.
        call_timeout: seconds that one call may take.

    Attributes:
        deadline: `time.monotonic` by which everything must be done, if there is one.
        bind_seconds: that giving the program its constants took, the last time.
        load_seconds: that loading the program took then; next to nothing where it was loaded.
        device_samples: every sample since the process was bound, where it runs on a device.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        server: ForkServer,
        ports: Sequence[Port],
        limits: Limits,
        call_timeout: float,
    ) -> None:
        self.name = name
        self._program = program
        self._server = server
        self._limits = limits
        self._call_timeout = call_timeout
        self._inputs = tuple(p.name for p in ports if p.role == "input")
        self._outputs = tuple(p.name for p in ports if p.role == "output")
        moving = [p for p in ports if p.role != "const"]
        device = program.plug.device
        arrays = [(p.name, p.dtype, p.shape) for p in moving]
        self._layout = guarded(arrays) if device is None else guarded(arrays, device.align_bytes)
        self.device_samples: list[DeviceSample] = []
        self._pattern = 0
        self.bind_seconds = 0.0
        self.load_seconds = 0.0
        self._worker: Worker | None = None
        self._out: Shared | None = None
        self.deadline: float | None = None
        self._pool: Pool | None = None
        self._start_rss = 0
        self._spreader = Spreader((), 0)

    # ------------------------------------------------------------ life
    @property
    def ready(self) -> bool:
        """Whether the process lives and is bound to a pool."""
        return self._worker is not None and self._worker.alive and self._pool is not None

    def is_bound_to(self, pool: Pool) -> bool:
        return self.ready and self._pool is pool

    @property
    def pid(self) -> int | None:
        """Process number, while there is one."""
        return None if self._worker is None else self._worker.pid

    @property
    def isolation(self) -> Isolation:
        """What could not be closed to the process."""
        return Isolation() if self._worker is None else self._worker.isolation

    def bind(self, pool: Pool, pattern: int, timeout: float) -> None:
        """Starts the process if need be and gives it inputs; guards are filled with ``pattern``.

        Raises:
            Failure: and the process is gone.
        """
        self._pool = None
        if self._worker is None or not self._worker.alive:
            self._start()
        if self._out is None:
            self._out = Shared(self._layout.size)
        twin = pool.twin() if self._program.wants_twin else None
        self._pattern = pattern
        bind = Bind(
            inputs=self._inputs,
            outputs=self._outputs,
            arena=self._layout,
            consts=pool.const_layout,
            sets=pool.layout,
            n_sets=len(pool.sets),
            twin_bytes=None if twin is None else twin.size,
            pattern=pattern,
            on_device=self._program.plug.device is not None,
        )
        self.device_samples.clear()
        regions = [self._out, pool.consts, *(item.region for item in pool.sets)]
        fds = [region.fd for region in regions] + ([] if twin is None else [twin.fd])
        reply = self._ask({"op": "bind", **bind.model_dump(mode="json")}, timeout, _BindReply, fds)
        self.bind_seconds = reply.bind_ns / 1e9
        self.load_seconds = reply.load_ns / 1e9
        self._pool = pool

    def _start(self) -> None:
        self.close()
        options = dict(self._program.options)
        payload = {"factory": self._program.plug.factory, "options": options}
        entry = "edgekernelbench.evaluator.runchild:serve"
        try:
            self._worker = self._server.start(entry, payload, self._limits, self._program.folder)
        except ChildLost as lost:
            raise Failure("server", f"{self.name}: {lost.detail}", lost.log) from lost
        self._start_rss = _memory(self._worker.pid, "VmRSS")
        self._spreader = Spreader(self._program.cores, self._worker.pid)

    def close(self) -> None:
        """Ends the process and frees what it shared. May be called again."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None
        if self._out is not None:
            self._out.close()
            self._out = None
        self._pool = None

    # ------------------------------------------------------------ work
    def swap(self, number: int, region: Sealed) -> None:
        """Puts other inputs, of the same layout, in the place of set ``number``; the pool knows
        nothing of them.

        Raises:
            Failure: and the process is gone.
        """
        timeout = self._call_timeout + _COPY_SECONDS
        self._ask({"op": "swap", "set": number}, timeout, _SwapReply, [region.fd])

    def run(self, samples: Sequence[Sample]) -> list[int]:
        """Nanoseconds of each sample, over its calls.

        Raises:
            Failure: and the process is gone. A call that takes too long is one, and so are times
                that add up to more than has passed here.
        """
        calls = sum(s.lead + s.calls for s in samples)
        request = RunRequest(samples=tuple(samples))
        began = time.monotonic_ns()
        timeout = self._call_timeout * calls + _COPY_SECONDS
        if self.deadline is not None:
            timeout = max(0.0, min(timeout, self.deadline - time.monotonic()))
        reply = self._ask({"op": "run", **request.model_dump()}, timeout, _RunReply)
        passed = time.monotonic_ns() - began
        possible = len(reply.ns) == len(samples) and all(ns >= 0 for ns in reply.ns)
        possible = possible and sum(reply.ns) <= passed
        if not possible or not self._note(samples, reply, passed):
            self.close()
            raise Failure("bad_reply", f"{self.name}: times that cannot be")
        self._spreader.spread()
        return reply.ns

    def _note(self, samples: Sequence[Sample], reply: _RunReply, passed: int) -> bool:
        """Keeps what a device says beside the time; whether that can be."""
        if self._program.plug.device is None:
            return not reply.device_ns
        if [len(times) for times in reply.device_ns] != [2] * len(samples):
            return False
        for sample, span, (kernels, host) in zip(samples, reply.ns, reply.device_ns, strict=True):
            if host is None or not 0 <= host <= passed or not 0 <= (kernels or 0) <= span:
                return False
            self.device_samples.append(DeviceSample(sample.calls, span, kernels, host))
        return True

    @property
    def layout(self) -> Layout:
        """Where inputs and outputs lie in the arena."""
        return self._layout

    @property
    def pattern(self) -> int:
        """What the guard bytes are filled with."""
        return self._pattern

    def outputs_region(self) -> np.ndarray:
        """The arena as the last kept sample left it, guards included; a copy."""
        assert self._out is not None
        return self._out.copy()

    def rss_growth(self) -> int | None:
        """Bytes by which resident memory has grown at its peak, without what is only there for
        the harness (mapped input sets, the region that outputs leave by); None when unknown, and
        where a program's memory is a device's."""
        if self._worker is None or self._pool is None or self._program.plug.device is not None:
            return None
        peak = _memory(self._worker.pid, "VmHWM")
        pool = self._pool
        ours = self._layout.size + pool.const_layout.size + len(pool.sets) * pool.layout.size
        return max(0, peak - self._start_rss - ours) if peak else None

    def _ask(
        self,
        message: dict[str, Any],
        timeout: float,
        form: type[_R],
        fds: Sequence[int] = (),
    ) -> _R:
        assert self._worker is not None
        try:
            reply = self._worker.request(message, timeout, fds)
        except ChildLost as lost:
            self.close()
            raise _failure(self.name, lost) from lost
        try:
            return form.model_validate(reply)
        except ValidationError:
            failure = _refused(self.name, reply)
            self.close()
            raise failure from None


def _failure(name: str, lost: ChildLost) -> Failure:
    match lost.kind:
        case "exited":
            by = "" if lost.exit is None else f" by {lost.exit}"
            hint = " (the system may have run out of memory)" if "SIGKILL" in by else ""
            return Failure("crashed", f"{name}: its process ended{by}{hint}", lost.log)
        case "timeout":
            return Failure("timeout", f"{name}: no answer within the time limit", lost.log)
        case "bad_reply":
            return Failure("bad_reply", f"{name}: an answer out of form: {lost.detail}", lost.log)
        case _:
            return Failure("server", f"{name}: {lost.detail}", lost.log)


def _refused(name: str, reply: dict[str, Any]) -> Failure:
    try:
        error = _ErrorReply.model_validate(reply)
    except ValidationError:
        return Failure("bad_reply", f"{name}: an answer out of form")
    kind: FailureKind = "memory" if error.memory else "error"
    return Failure(kind, f"{name}: {error.error[:500]}", error.trace)


def _memory(pid: int, key: str) -> int:
    """Bytes of a line of the process's status; 0 when it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1]) * 1024
    return 0
