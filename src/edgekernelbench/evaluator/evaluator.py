"""`Evaluator`: the warm state of one target. `evaluate`: one kernel, start to verdict."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from filelock import FileLock

from edgekernelbench.baselines.base import Port
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.building import Builder
from edgekernelbench.evaluator.canary import Canary
from edgekernelbench.evaluator.contestant import Contestant, Program
from edgekernelbench.evaluator.forkserver import ForkServer
from edgekernelbench.evaluator.machinery import Machinery, machinery
from edgekernelbench.evaluator.model import Evaluation
from edgekernelbench.evaluator.sandbox import Limits
from edgekernelbench.evaluator.session import TaskSession
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.evaluator.task import EvalTask, ports
from edgekernelbench.evaluator.view import homes
from edgekernelbench.targets.device import CudaDevice, Device
from edgekernelbench.targets.host import cache_folder
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.peaks import Peaks, load_peaks, proven_peaks
from edgekernelbench.targets.placement import choose_cores

_LOG_BYTES = 1 << 20
_PEAK_MEASUREMENTS = 3
"""Times that an evaluator may measure its target's peaks: once to begin with, and again before
the roofline accuses."""

_SLACK_BYTES = 2 << 30
"""Address space of a run child beside the target's memory: thread stacks and allocator arenas
reserve much more than they use."""


class Evaluator:
    """Evaluates kernels on one target; keeps fork servers, the canary and builds of baselines.

    A context manager. Sessions of one evaluator may be used from several threads: the device lock
    lets one evaluation at a time run, across processes too.

    Args:
        target: this host's processor (``llvm`` or ``c``), or an OpenCL or CUDA device of this host.
        settings: of every evaluation.
        cache_dir: where builds of baselines and locks lie; the user's cache folder if left out.
        machinery: other plugs than the real ones.

    Raises:
        UsageError: for a target that cannot be run here, or a baseline that does not exist.
            (`session` and `peaks`: when the target's peaks cannot be measured.)
    """

    def __init__(
        self,
        target: Target,
        *,
        settings: EvalSettings | None = None,
        cache_dir: Path | None = None,
        machinery: Machinery | None = None,
    ) -> None:
        require_here(target)
        self.settings = settings or EvalSettings()
        threads = self.settings.threads or target.threads
        self.target = target.model_copy(update={"threads": threads})
        self.machinery = machinery or _machinery(threads, target.device, target.backend)
        unknown = [b for b in self.settings.baselines if b not in self.machinery.baselines]
        if unknown:
            known = ", ".join(self.machinery.baselines)
            raise UsageError(f"no baseline {unknown[0]!r}", f"there are {known}")
        # A driver places its threads itself.
        self.cores: tuple[int, ...] = choose_cores(threads) if target.device is None else ()
        self.cache_dir = _writable(cache_dir or default_cache())
        plugs = homes(self.machinery.packages())
        self._servers = {
            name: ForkServer(replace(spec, reads=(*spec.reads, *plugs)))
            for name, spec in self.machinery.servers.items()
        }
        self.builder = Builder(
            self._servers["compile"], self.machinery, self.target, self.settings, self.cache_dir
        )
        self.canary = Canary(self)
        # One object, so that a thread that holds the lock may take it again.
        self._lock = device_lock(target, self.cache_dir)
        # The host's peaks are measured when they are first needed. What is measured on a device
        # (`ekb devices probe`) says what our kernels reach there, and accuses nobody.
        roofline = self.settings.roofline and machinery is None
        on_host = target.on_cpu
        self._measures_peaks = roofline and on_host
        known = load_peaks if on_host else proven_peaks
        self._peaks = known(self.target.reference) if roofline else None
        self._peak_measurements = 0
        self._measuring_peaks = False

    # ------------------------------------------------------------ use
    def session(self, workload: EvalTask) -> TaskSession:
        """A session for many evaluations of one task; close it, or use it as a context manager.

        The first one on a host measures its peaks.
        """
        self.peaks()
        return TaskSession(self, workload)

    def evaluate(self, kernel_text: str, workload: EvalTask) -> Evaluation:
        """One evaluation in a session of its own."""
        with self.session(workload) as session:
            return session.evaluate(kernel_text)

    def warm(self) -> None:
        """Starts the fork servers and the canary, so that the first evaluation is not slower.

        Raises:
            ChildLost, Failure, WrongResult: when the device does not work.
        """
        for server in self._servers.values():
            server.warm()
        with self.device_lock():
            self.canary.warm()

    # ------------------------------------------------------------ for sessions
    def device_lock(self) -> FileLock:
        """Held by whoever compiles for or runs on the target."""
        return self._lock

    def peaks(self) -> Peaks | None:
        """The peaks of the target, or None where there are none or the settings want none."""
        if self._measures_peaks and self._peaks is None and not self._measuring_peaks:
            with self.device_lock():
                self.measure_peaks()
        return self._peaks

    def measure_peaks(self) -> bool:
        """Measures the peaks, a few times at most in this evaluator's life; whether it did so now.

        Results are held against no roofline meanwhile.
        """
        if not self._measures_peaks or self._peak_measurements >= _PEAK_MEASUREMENTS:
            return False
        from edgekernelbench.evaluator.peaks import measure_peaks

        self._peak_measurements += 1
        self._measuring_peaks, self._peaks = True, None
        try:
            with self._by_reference() as evaluator:
                self._peaks = measure_peaks(evaluator.target, evaluator)
        finally:
            self._measuring_peaks = False
        return True

    @contextmanager
    def _by_reference(self) -> Iterator[Evaluator]:
        """An evaluator of the same device by way of the reference compiler, under the same lock."""
        if self.target.reference is self.target:
            yield self
            return
        settings = self.settings.model_copy(update={"roofline": False})
        with Evaluator(
            self.target.reference, settings=settings, cache_dir=self.cache_dir
        ) as evaluator:
            evaluator._lock = self._lock
            yield evaluator

    def roofline(self) -> str:
        """Which roofline results are held against, or why none, in one line."""
        if not self.settings.roofline:
            return "held against no roofline: the settings want none"
        if self._peaks is None:
            name = self.target.name
            device = self.target.device
            if device is None:
                return (
                    f"held against no roofline: the peaks of {name} are not measured; "
                    f"`ekb devices probe --target {name}` does that"
                )
            if device.is_host_cpu:
                return (
                    f"held against no roofline: {name} is this host's processor, whose peaks are "
                    "not measured; `ekb devices probe` does that"
                )
            return (
                f"held against no roofline: no document of {name}'s vendor says what it reaches; "
                "a device profile can cite one"
            )
        when = f", {self._peaks.date}" if self._peaks.date else ""
        return f"held against the peaks of {self._peaks.target}: {self._peaks.method}{when}"

    def kernel_contestant(
        self,
        name: str,
        folder: Path,
        task: EvalTask,
        unlimited_time: bool = False,
        more: tuple[Port, ...] = (),
    ) -> Contestant:
        """A contestant for a compiled kernel in ``folder``, limited like any candidate.

        Args:
            more: arrays that it has beside the task's.
        """
        program = self.kernel_program(folder)
        device = self.target.device
        if device is not None:
            memory = self.target.memory_bytes + _SLACK_BYTES
            return self.contestant(name, program, task, _device_limits(device, memory), more)
        seconds = self.settings.total_run_s * self.target.threads + 30
        limits = Limits(
            memory_bytes=self.target.memory_bytes + _SLACK_BYTES,
            cpu_seconds=None if unlimited_time else int(seconds),
            file_bytes=_LOG_BYTES,
        )
        return self.contestant(name, program, task, limits, more)

    def kernel_program(self, folder: Path) -> Program:
        """How to run what the compiler left in ``folder``."""
        device = self.target.device
        if device is None:
            return Program(folder, self.machinery.runners["tvm-library"], {}, self.cores)
        options = {"device": device.choice.model_dump()}
        return Program(folder, self.machinery.runners["device-kernel"], options)

    @property
    def bind_seconds(self) -> float:
        """What binding a kernel may take: drivers of devices go on compiling when it first runs."""
        on_host = self.target.device is None
        return self.settings.run_s if on_host else self.settings.compile_s

    def contestant(
        self,
        name: str,
        program: Program,
        task: EvalTask,
        limits: Limits | None = None,
        more: tuple[Port, ...] = (),
    ) -> Contestant:
        """A contestant for any program; without limits of memory and time unless given."""
        server = self._servers[program.plug.server]
        if limits is None:
            device = program.plug.device
            host = Limits(file_bytes=_LOG_BYTES, lenient=True)
            limits = host if device is None else _device_limits(device)
        every = ports(task) + more
        return Contestant(name, program, server, every, limits, self.settings.run_s)

    # ------------------------------------------------------------ life
    def close(self) -> None:
        """Ends every process. May be called again."""
        self.canary.close()
        for server in self._servers.values():
            server.close()

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_machinery = machinery


def is_here(target: Target) -> bool:
    """Whether this host has what a target's programs run on."""
    if target.unreachable:
        return False
    return target.mtriple is None if target.on_cpu else target.device is not None


def require_here(target: Target) -> None:
    """Refuses a target that programs cannot be run on from here.

    Raises:
        UsageError: it is one; says what is missing.
    """
    if is_here(target):
        return
    why = f": {target.unreachable}" if target.unreachable else ""
    raise UsageError(
        f"target {target.name!r} cannot be run here{why}",
        "`ekb check` and `ekb explain` generate and bill its code without the device; evaluations "
        "run on llvm and c, this host, on opencl and cuda, devices of it, and on a profile of such "
        "a device that has `kind: local`",
    )


def _device_limits(device: Device, memory_bytes: int | None = None) -> Limits:
    """Of a process that runs kernels on a device.

    A driver for CPUs links each kernel by a program of its own, and its memory is the process's;
    one for other devices reserves address space at will.
    """
    if device.is_host_cpu:
        return Limits(memory_bytes=memory_bytes, processes=True, writes=True)
    return Limits(lenient=True, writes=True)


def device_lock(target: Target, cache_dir: Path | None = None) -> FileLock:
    """Held by whoever compiles for or runs on a target, in every process with that cache."""
    folder = (cache_dir or default_cache()) / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{_lock_name(target)}.lock")


def _lock_name(target: Target) -> str:
    """One name for one device, whatever the target is called: OpenCL on the host's processor
    shares it with ``llvm``."""
    device = target.device
    if device is None:
        return "llvm"
    if isinstance(device, CudaDevice):
        return f"cuda-{device.uuid}".lower()
    if device.is_host_cpu:
        return "llvm"
    words = f"opencl {device.platform} {device.name} {device.index}"
    return re.sub(r"\W+", "-", words).strip("-").lower()


def default_cache() -> Path:
    """``$EDGEKERNELBENCH_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("EDGEKERNELBENCH_CACHE")
    return Path(chosen) if chosen else cache_folder()


def evaluate(
    kernel_text: str, workload: EvalTask, target: Target, settings: EvalSettings | None = None
) -> Evaluation:
    """Compiles, checks and times one kernel beside the baselines, in fresh processes.

    Starting the processes takes seconds; for more than one kernel keep an `Evaluator`.

    Raises:
        UsageError: see `Evaluator`.
    """
    with Evaluator(target, settings=settings) as evaluator:
        return evaluator.evaluate(kernel_text, workload)


def _writable(folder: Path) -> Path:
    """The folder, made if it is missing.

    Raises:
        UsageError: if nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise UsageError(
            f"{folder}: the cache folder cannot be written ({error.strerror})",
            "set EDGEKERNELBENCH_CACHE to a folder that can",
        ) from error
    return folder
