"""Runs numbered inputs in limited child processes and keeps what broke.

A child takes a batch of seeds. It writes the seed in hand into shared memory first, so that the
parent knows which input killed it. CPU time is limited by a profiling timer whose signal keeps
its default action: the kernel ends the process even inside C code. A batch that was cut short goes
on behind the input that broke it. Finished batches stand in ``batches.jsonl`` and are not run
again; failures in ``failures.jsonl`` and as a file each, with the input.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import mmap
import multiprocessing
import os
import re
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

MEMORY_BYTES = 512 << 20
_SEED = struct.Struct("q")
_GRACE_S = 5.0


class Finding(Exception):
    """An input that shows a fault. ``kind`` is a short name, equal for equal faults."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail


class Job(Protocol):
    """One kind of check. Everything is a function of the seed."""

    name: str
    batch: int
    cpu_s: float
    """CPU seconds that one input may take before it counts as a hang."""
    memory_bytes: int | None
    """Bytes that one input may add to the address space, None: no limit on the process."""

    def prepare(self) -> None:
        """Imports and tables, once, in the parent of all batches."""
        ...

    def text(self, seed: int) -> str:
        """The input."""
        ...

    def check(self, text: str, seed: int) -> str:
        """Runs one input and names its outcome, for counting.

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
    """Outcomes of the seeds ``start .. end``."""

    start: int
    end: int
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    slowest_s: float = 0.0
    peak_bytes: int = 0


# ---------------------------------------------------------------- one input
def attempt(job: Job, text: str, seed: int) -> tuple[str, Failure | None]:
    """Outcome of one input in this process; an exception is a failure."""
    if text.startswith("generator: "):
        return "failed", Failure(job.name, seed, "generator", text, "")
    try:
        return job.check(text, seed), None
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


def limit_memory(added: int) -> None:
    """Bounds the address space of this process to what it has now and ``added`` bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + added
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def peak_bytes() -> int:
    """Largest resident size of this process since it began or `reset_peak` was called."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found.group(1)) << 10


def reset_peak() -> int:
    """Forgets the peak, where the system lets a process do that; the peak from here on."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def _serve(job: Job, start: int, end: int, seen: mmap.mmap, pipe: Connection) -> None:
    """The child: outcomes of a batch, one message per failure and one at the end."""
    faulthandler.disable()  # the parent tells
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    if job.memory_bytes is not None:
        limit_memory(job.memory_bytes)
    counts: Counter[str] = Counter()
    slowest, peak = 0.0, 0
    for seed in range(start, end):
        seen[:] = _SEED.pack(seed)
        signal.setitimer(signal.ITIMER_PROF, job.cpu_s)  # generators use the lowering, too
        text = _text(job, seed)
        began = time.process_time()
        outcome, failure = attempt(job, text, seed)
        signal.setitimer(signal.ITIMER_PROF, 0)
        slowest, peak = max(slowest, time.process_time() - began), max(peak, peak_bytes())
        counts[outcome] += 1
        if failure is not None:
            pipe.send(asdict(failure))
    pipe.send({"counts": dict(counts), "slowest_s": slowest, "peak_bytes": peak})
    pipe.close()
    os._exit(0)  # thread pools and libraries of compiled kernels are not worth an orderly end


# ---------------------------------------------------------------- one batch
class _Runner:
    """A child at work on a batch, and what is known of it."""

    def __init__(self, job: Job, start: int, end: int) -> None:
        self.job, self.batch, self.next = job, Batch(start, end), start
        self._spawn()

    def _spawn(self) -> None:
        self.seen = mmap.mmap(-1, _SEED.size)
        self.seen[:] = _SEED.pack(self.next)
        self.pipe, theirs = multiprocessing.Pipe(duplex=False)
        fork = multiprocessing.get_context("fork")
        arguments = (self.job, self.next, self.batch.end, self.seen, theirs)
        self.process = fork.Process(target=_serve, args=arguments)
        self.process.start()
        theirs.close()
        self.done = False

    def receive(self) -> bool:
        """Takes what the child sent; whether the batch is finished."""
        try:
            message = self.pipe.recv()
        except (EOFError, OSError):
            return self._ended()
        if "counts" not in message:
            self.batch.failures.append(Failure(**message))
            return False
        self.batch.counts.update(message["counts"])
        self.batch.slowest_s = max(self.batch.slowest_s, message["slowest_s"])
        self.batch.peak_bytes = max(self.batch.peak_bytes, message["peak_bytes"])
        self.done = True
        return False

    def _ended(self) -> bool:
        self.process.join(_GRACE_S)
        if self.done:
            return True
        seed = _SEED.unpack(self.seen[:])[0]
        code = self.process.exitcode
        kind = "hang" if code == -signal.SIGPROF else f"crash {_death(code)}"
        text = _text(self.job, seed)
        self.batch.failures.append(Failure(self.job.name, seed, kind, f"exit code {code}", text))
        self.batch.counts["failed"] += 1
        self.batch.counts["counted only as run"] += seed - self.next
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
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit {code}"


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
            ready = set(wait([runner.pipe for runner in running]))
            for runner in [r for r in running if r.pipe in ready]:
                if runner.receive():
                    running.remove(runner)
                    yield runner.batch
    finally:
        for runner in running:
            runner.stop()


# ---------------------------------------------------------------- what stays
class Store:
    """The folder of a long run: which batches are done, and what broke."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.batches = folder / "batches.jsonl"
        self.failures = folder / "failures.jsonl"

    def done(self) -> list[dict]:
        """Finished batches; a half-written last line does not count."""
        out = []
        for line in self.batches.read_text().splitlines() if self.batches.exists() else []:
            try:
                out.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        return out

    def missing(self, count: int, batch: int) -> Iterator[tuple[int, int]]:
        """Ranges of ``0 .. count`` that no finished batch covers."""
        spans = sorted((item["start"], item["end"]) for item in self.done())
        at = 0
        for start, end in [*spans, (count, count)]:
            for low in range(at, min(start, count), batch):
                yield low, min(low + batch, start, count)
            at = max(at, end)

    def add(self, batch: Batch) -> None:
        """Keeps a finished batch, its failures first."""
        with self.failures.open("a") as file:
            for failure in batch.failures:
                file.write(json.dumps(asdict(failure)) + "\n")
                (self.folder / f"{failure.job}-{failure.seed}.ekir").write_text(
                    failure.text, errors="surrogatepass"
                )
        line = {"start": batch.start, "end": batch.end, "counts": dict(batch.counts)}
        line |= {"slowest_s": round(batch.slowest_s, 3), "peak_mb": batch.peak_bytes >> 20}
        with self.batches.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def summary(self) -> dict:
        """Totals over all finished batches."""
        counts: Counter[str] = Counter()
        kinds: Counter[str] = Counter()
        done = self.done()
        for item in done:
            counts.update(item["counts"])
        for line in self.failures.read_text().splitlines() if self.failures.exists() else []:
            kinds[json.loads(line)["kind"]] += 1
        return {
            "inputs": sum(item["end"] - item["start"] for item in done),
            "counts": dict(counts.most_common()),
            "slowest_s": max((item["slowest_s"] for item in done), default=0.0),
            "peak_mb": max((item["peak_mb"] for item in done), default=0),
            "failures": dict(kinds.most_common()),
        }
