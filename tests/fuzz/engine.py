"""Runs numbered inputs in limited child processes, so that no input can end or stop the run.

A child takes a batch of seeds. It notes in shared memory which seed it has in hand and what came
of those before, so that the parent knows which input killed it and loses no count. CPU time is
limited by a profiling timer whose signal keeps its default action: the kernel ends the process
even inside C code. What waits without using the CPU is ended by the parent. A batch that was cut
short goes on behind the input that broke it.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import mmap
import multiprocessing
import os
import resource
import signal
import struct
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Protocol

from tests.fuzz.limits import limit_memory

_GRACE_S = 5.0
_TICK_S = 1.0


class Finding(Exception):
    """An input that shows a fault. ``kind`` is a short name, equal for equal faults."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail


@dataclass(slots=True)
class Most:
    """The largest value of each measure, and the seed of the input that had it."""

    values: dict[str, tuple[float, int]] = field(default_factory=dict)

    def note(self, name: str, value: float, seed: int) -> None:
        """Keeps ``value`` where it is the largest so far."""
        if name not in self.values or value > self.values[name][0]:
            self.values[name] = (value, seed)

    def merge(self, others: dict[str, tuple[float, int]]) -> None:
        for name, (value, seed) in others.items():
            self.note(name, value, seed)


class Job(Protocol):
    """One kind of check. Everything is a function of the seed."""

    name: str
    batch: int
    cpu_s: float
    """CPU seconds that one input may take before it counts as a hang."""
    wall_s: float
    """Seconds that one input may take, waiting included, before it counts as stalled."""
    memory_bytes: int | None
    """Bytes that a batch may add to the address space, None: no limit on the process."""

    def prepare(self) -> None:
        """Imports and tables, once, in the parent of all batches."""
        ...

    def text(self, seed: int) -> str:
        """The input."""
        ...

    def check(self, text: str, seed: int, most: Most) -> str:
        """Runs one input and names its outcome, for counting; measures go to ``most``.

        Raises:
            Finding: the input shows a fault. Any other exception is a fault, too.
        """
        ...


@dataclass(frozen=True, slots=True)
class Failure:
    """An input that broke something."""

    job: str
    seed: int
    kind: str
    detail: str
    text: str


@dataclass(slots=True)
class Batch:
    """Outcomes of the seeds ``start .. end``. ``cpu_s``: CPU seconds of all of them."""

    start: int
    end: int
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    most: Most = field(default_factory=Most)
    cpu_s: float = 0.0


# ---------------------------------------------------------------- one input
def attempt(job: Job, text: str, seed: int, most: Most) -> tuple[str, Failure | None]:
    """Outcome of one input in this process; an exception is a failure."""
    if text.startswith("generator: "):
        return "failed", Failure(job.name, seed, "generator", text, "")
    try:
        return job.check(text, seed, most), None
    except Finding as found:
        return "failed", Failure(job.name, seed, found.kind, found.detail, text)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.name}"
        kind = f"exception {type(error).__name__} in {where}"
        detail = "".join(traceback.format_exception(error))[-3000:]
        return "failed", Failure(job.name, seed, kind, detail, text)


def _text(job: Job, seed: int) -> str:
    """The input; the reason instead where its generator fails."""
    try:
        return job.text(seed)
    except Exception as error:
        return f"generator: {''.join(traceback.format_exception(error))[-2000:]}"


class Progress:
    """What a child has done, in memory that outlives it: the seed in hand, and a state as JSON.

    The state has two places, and a number that says which is whole: a child may die any time.
    """

    _SEED = struct.Struct("q")
    _SLOT = 1 << 16

    def __init__(self, seed: int) -> None:
        self._memory = mmap.mmap(-1, 16 + 2 * self._SLOT)
        self.begin(seed)

    def begin(self, seed: int) -> None:
        self._memory[:8] = self._SEED.pack(seed)

    @property
    def seed(self) -> int:
        return self._SEED.unpack(self._memory[:8])[0]

    def save(self, state: dict) -> None:
        """Replaces the state."""
        text = json.dumps(state).encode()
        if len(text) + 4 > self._SLOT:
            raise ValueError(f"a state of {len(text)} bytes: outcomes must be few")
        other = 1 - self._memory[8]
        at = 16 + other * self._SLOT
        self._memory[at : at + 4 + len(text)] = struct.pack("I", len(text)) + text
        self._memory[8] = other

    def state(self) -> dict:
        """What was saved last; empty before that."""
        at = 16 + self._memory[8] * self._SLOT
        (length,) = struct.unpack("I", self._memory[at : at + 4])
        return json.loads(self._memory[at + 4 : at + 4 + length]) if length else {}


def _die_with_parent() -> None:
    """Linux: a child does not outlive a parent that was killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _serve(job: Job, start: int, end: int, progress: Progress, pipe: Connection) -> None:
    """The child: failures of a batch through the pipe, everything else into ``progress``."""
    _die_with_parent()
    faulthandler.disable()  # the parent tells
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    if job.memory_bytes is not None:
        limit_memory(job.memory_bytes)
    counts: Counter[str] = Counter()
    most, total = Most(), 0.0
    for seed in range(start, end):
        progress.begin(seed)
        signal.setitimer(signal.ITIMER_PROF, job.cpu_s)  # generators use the lowering, too
        before = time.process_time()
        text = _text(job, seed)
        outcome, failure = attempt(job, text, seed, most)
        signal.setitimer(signal.ITIMER_PROF, 0)
        spent = time.process_time() - before
        most.note("input_s", spent, seed)
        most.note("process_mb", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, seed)
        counts[outcome] += 1
        total += spent
        if failure is not None:
            pipe.send(asdict(failure))
        progress.save({"counts": dict(counts), "most": most.values, "cpu_s": total})
    pipe.close()
    os._exit(0)  # thread pools and libraries of compiled kernels are not worth an orderly end


# ---------------------------------------------------------------- one batch
class _Runner:
    """A child at work on a batch, and what is known of it."""

    def __init__(self, job: Job, start: int, end: int) -> None:
        self.job, self.batch, self.next = job, Batch(start, end), start
        self._spawn()

    def _spawn(self) -> None:
        self.progress = Progress(self.next)
        self.pipe, theirs = multiprocessing.Pipe(duplex=False)
        fork = multiprocessing.get_context("fork")
        arguments = (self.job, self.next, self.batch.end, self.progress, theirs)
        self.process = fork.Process(target=_serve, args=arguments)
        self.process.start()
        theirs.close()
        self._watched, self._waited_s, self._stalled = self.next, 0.0, False

    def receive(self) -> bool:
        """Takes what the child sent; whether the batch is finished."""
        try:
            self.batch.failures.append(Failure(**self.pipe.recv()))
        except (EOFError, OSError):
            return self._ended()
        return False

    def watch(self, seconds: float) -> None:
        """Ends a child that has had one input in hand for too long, ``seconds`` more of it."""
        if self.progress.seed != self._watched:
            self._watched, self._waited_s = self.progress.seed, 0.0
        self._waited_s += seconds
        if self._waited_s > self.job.wall_s:
            self._stalled = True
            self.process.kill()

    def _ended(self) -> bool:
        self.process.join(_GRACE_S)
        state = self.progress.state()
        self.batch.counts.update(state.get("counts", {}))
        self.batch.most.merge(state.get("most", {}))
        self.batch.cpu_s += state.get("cpu_s", 0.0)
        code = self.process.exitcode
        if code == 0:
            return True
        seed = self.progress.seed
        kind = "stalled" if self._stalled else _death(code)
        text = _text(self.job, seed)
        self.batch.failures.append(Failure(self.job.name, seed, kind, f"exit code {code}", text))
        self.batch.counts["failed"] += 1
        self.next = seed + 1
        if self.next >= self.batch.end:
            return True
        self._spawn()
        return False

    def stop(self) -> None:
        """Gives the batch up."""
        self.process.kill()
        self.process.join()


def _death(code: int | None) -> str:
    if code == -signal.SIGPROF:
        return "hang"
    if code is not None and code < 0:
        return f"crash {signal.Signals(-code).name}"
    return f"crash exit {code}"


def run_batches(
    job: Job, ranges: Iterable[tuple[int, int]], jobs: int, seconds: float = float("inf")
) -> Iterator[Batch]:
    """Batches as they finish. After ``seconds`` no new one is begun."""
    deadline = time.monotonic() + seconds
    waiting = iter(ranges)
    running: list[_Runner] = []
    try:
        while True:
            while len(running) < jobs and time.monotonic() < deadline:
                span = next(waiting, None)
                if span is None:
                    break
                running.append(_Runner(job, *span))
            if not running:
                return
            began = time.monotonic()
            ready = set(wait([runner.pipe for runner in running], _TICK_S))
            # A run that was stopped for an hour has not waited an hour for its children.
            waited = min(time.monotonic() - began, 2 * _TICK_S)
            for runner in list(running):
                if runner.pipe not in ready:
                    runner.watch(waited)
                elif runner.receive():
                    running.remove(runner)
                    yield runner.batch
    finally:
        for runner in running:
            runner.stop()
