"""Tuning one function of a task, and the pack that what is found goes to.

Each finished function is one line appended to the pack. The trials of a function under way lie in
a file of its own in the folder ``PACK.parts``, batch by batch, so that a killed search goes on
where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from edgekernelbench.baselines import packs
from edgekernelbench.baselines.base import Materials, Unavailable
from edgekernelbench.baselines.schedules import (
    Identity,
    Schedule,
    compiler_version,
    identity,
    schedule_for,
)
from edgekernelbench.baselines.tunable import tunable
from edgekernelbench.errors import UsageError
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.placement import Slot

if TYPE_CHECKING:
    from edgekernelbench.compilers.tvm.tuning.bench import Bench
    from edgekernelbench.compilers.tvm.tuning.decide import Decision
    from edgekernelbench.compilers.tvm.tuning.search import Trial

MAIN_SHARE = 0.05
"""Share of a task's work from which on a function gets all the trials; others get a quarter."""


@dataclass(frozen=True, slots=True)
class Errand:
    """A function to search schedules for, as part of a task.

    Attributes:
        function: its key.
        name: in the task's graph.
        wanted: candidates to measure, those of earlier searches included.
    """

    workload: str
    function: str
    name: str
    wanted: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the search for one function stands. ``best_us`` is None until a candidate ran.

    Attributes:
        trials: measured so far, in earlier searches, too.
        fresh: of these, how many since it was last told.
    """

    workload: str
    function: str
    trials: int
    wanted: int
    fresh: int
    best_us: float | None
    state: str


Heard = Callable[[Progress], None]


def errands(materials: Materials, target: Target, trials: int) -> list[Errand] | Unavailable:
    """The functions of a task, those with the most work first; or why there are none.

    Runs the compiler in this process; give it one of its own that may crash.
    """
    from edgekernelbench.compilers.tvm.tuning import graph

    task = tunable(materials, target)
    if isinstance(task, Unavailable):
        return task
    shares = task.shares()
    return [
        Errand(materials.workload, graph.key(task.functions[name]), name, _trials(share, trials))
        for name, share in sorted(shares.items(), key=lambda item: -item[1])
    ]


def _trials(share: float, trials: int) -> int:
    return trials if share >= MAIN_SHARE else max(1, trials // 4)


# ---------------------------------------------------------------- the pack
class PackWriter:
    """A pack that is being made, held by one process. Made by `open_pack`.

    Attributes:
        parts: folder of the files of searches under way; it may not exist yet.
    """

    def __init__(self, path: Path, target: Target) -> None:
        self.path = path
        self.target = target
        self.parts = path.with_name(path.name + ".parts")
        known = packs.read_pack(path) if path.exists() else ()
        self._known = {s.identity: s for s in known}
        if path.exists():
            _cut_unfinished(path)

    def known(self, function: str) -> Schedule | None:
        """What the pack holds for a function on this target."""
        return self._known.get(identity(function, self.target))

    def add(self, schedule: Schedule) -> None:
        """Stores what was found for a function; it is on the disk when this returns."""
        _append(self.path, schedule.model_dump_json())
        self._known[schedule.identity] = schedule

    def finished(self, function: str) -> None:
        """Drops the trials of a search, and the folder of them when it was the last."""
        TrialFile(self.parts, identity(function, self.target)).drop()
        if self.parts.is_dir() and not any(self.parts.iterdir()):
            self.parts.rmdir()


@contextmanager
def open_pack(path: Path, target: Target) -> Iterator[PackWriter]:
    """A pack to add to, made if there is none.

    Raises:
        UsageError: it is damaged, cannot be written, or another process is writing it.
    """
    held = path.with_name(f".{path.name}.lock")
    lock = FileLock(held, timeout=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        held.touch()  # what cannot be written would look like a lock that another process has
        lock.acquire()
    except Timeout as error:
        raise UsageError(f"{path}: another process is tuning into it", "choose another") from error
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written ({error.strerror})", "choose another"
        ) from error
    try:
        yield PackWriter(path, target)
    finally:
        lock.release()


class TrialFile:
    """The trials of one search under way: a line on what it is for, then one a trial."""

    def __init__(self, folder: Path, identity: Identity) -> None:
        self._identity = list(identity)
        digest = hashlib.sha256(json.dumps(self._identity).encode()).hexdigest()
        self._path = folder / f"{identity[0]}-{digest[:8]}.jsonl"

    def read(self) -> tuple[int, list[Trial]] | None:
        """How many trials came before those in the file, and these; None if there is no search.

        A line on which the process was killed is dropped.
        """
        from edgekernelbench.compilers.tvm.tuning.search import Trial

        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        try:
            head = json.loads(lines[0])
            if head["identity"] != self._identity:
                return None
            before = int(head["before"])
        except (IndexError, ValueError, TypeError, KeyError):
            return None
        found = []
        for line in lines[1:]:
            try:
                found.append(Trial(**json.loads(line)))
            except (ValueError, TypeError):
                break
        return before, found

    def begin(self, before: int, trials: Sequence[Trial]) -> None:
        """Starts the file anew."""
        self.drop()
        self._path.parent.mkdir(exist_ok=True)
        _append(self._path, json.dumps({"identity": self._identity, "before": before}))
        self.add(trials)

    def add(self, trials: Sequence[Trial]) -> None:
        """They are on the disk when this returns."""
        rows = [{"trace": t.trace, "us": t.us, "error": t.error} for t in trials]
        if rows:
            _append(self._path, "\n".join(map(json.dumps, rows)))

    def drop(self) -> None:
        self._path.unlink(missing_ok=True)


def _append(path: Path, lines: str) -> None:
    with path.open("a") as file:
        file.write(lines + "\n")
        file.flush()
        os.fsync(file.fileno())


def _cut_unfinished(path: Path) -> None:
    """Drops a last line on which a process was killed, so that the next line stands alone."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(path, whole)


# ---------------------------------------------------------------- the search
@dataclass(frozen=True, slots=True)
class Means:
    """What a search works with.

    Attributes:
        turn: a file that exists; whoever uses a device has a lock on it.
        deadline: by `time.monotonic`; no batch begins after it.
    """

    target: Target
    slot: Slot
    parts: Path
    turn: Path
    deadline: float = float("inf")

    @contextmanager
    def bench(self) -> Iterator[Bench]:
        """Where candidates are built and timed."""
        from edgekernelbench.compilers.tvm.build import tvm_target
        from edgekernelbench.compilers.tvm.tuning.measure import HostBench

        if self.target.device is None:
            yield HostBench(tvm_target(self.target), self.slot)
            return
        from edgekernelbench.compilers.tvm.gpu.build import device_target
        from edgekernelbench.compilers.tvm.tuning.device_bench import DeviceBench

        host = host_target().model_copy(update={"threads": len(self.slot.timed)})
        beside, device = HostBench(tvm_target(host), self.slot), device_target(self.target)
        with tempfile.TemporaryDirectory(prefix="ekb-tune-") as scratch:
            bench = DeviceBench(self.target, device, beside, self.turn, Path(scratch))
            with closing(bench):
                yield bench


def search(
    materials: Materials, errand: Errand, known: Schedule | None, means: Means, heard: Heard
) -> Schedule | None:
    """Brings a function to the wanted number of measured candidates, as far as time allows.

    Runs the compiler in this process; give it one of its own that may crash.

    Args:
        known: what the pack holds for the function already.

    Returns:
        What was found; ``wanted`` in it is what was measured where time ran out, so that a later
        search goes on. None when there was no time for any.

    Raises:
        LookupError: the task has no such function (any more).
    """
    from edgekernelbench.compilers.tvm.tuning import graph

    task = tunable(materials, means.target)
    found = {} if isinstance(task, Unavailable) else task.functions
    for name, function in found.items():
        if graph.key(function) == errand.function:
            return _Search(errand, known, means, heard).run(name, function)
    raise LookupError(f"{errand.workload} has no function {errand.function} ({errand.name})")


class _Search:
    """One function of one task."""

    def __init__(self, errand: Errand, known: Schedule | None, means: Means, heard: Heard) -> None:
        self._errand, self._means, self._heard = errand, means, heard
        self._file = TrialFile(means.parts, identity(errand.function, means.target))
        self._before, self._trials = self._recalled(known)

    def _recalled(self, known: Schedule | None) -> tuple[int, list[Trial]]:
        """Takes up a stopped search, and of a finished shorter one its best."""
        from edgekernelbench.compilers.tvm.tuning.search import Trial

        stopped = self._file.read()
        if stopped is None:
            trace = None if known is None else known.trace
            trials = [] if known is None or trace is None else [Trial(trace, known.us)]
            stopped = (0 if known is None else known.trials - len(trials), trials)
        self._file.begin(*stopped)
        return stopped

    def run(self, name: str, function: Any) -> Schedule | None:
        from edgekernelbench.compilers.tvm.tuning.graph import standalone
        from edgekernelbench.compilers.tvm.tuning.search import tune

        module, means = standalone(function), self._means
        left, reason = self._errand.wanted - self._done, ""
        self._tell(0, "begins")
        with means.bench() as bench:
            try:
                if left > 0:
                    tune(module, bench, left, tuple(self._trials), self._batch, means.deadline)
            except ValueError as error:
                reason = str(error)
            late = self._done < self._errand.wanted and time.monotonic() >= means.deadline
            if late and not self._done:
                return None
            wanted = self._done if late else self._errand.wanted
            return self._finished(name, module, bench, wanted, reason)

    @property
    def _done(self) -> int:
        return self._before + len(self._trials)

    def _batch(self, trials: Sequence[Trial]) -> None:
        self._file.add(trials)
        self._trials += trials
        self._tell(len(trials), "searching")

    def _finished(self, name: str, module: Any, bench: Bench, wanted: int, reason: str) -> Schedule:
        from edgekernelbench.compilers.tvm.tuning.decide import decide
        from edgekernelbench.compilers.tvm.tuning.search import cost_model_name

        decision = decide(module, self._trials, bench)
        best = decision.best
        return schedule_for(
            self._means.target,
            function=self._errand.function,
            name=name,
            workload=self._errand.workload,
            compiler=compiler_version(),
            trials=self._done,
            wanted=wanted,
            guide=cost_model_name(),
            us=None if best is None else best.us,
            trace=None if best is None else best.trace,
            checked=decision.checked,
            reason=reason or self._reason(decision),
        )

    def _reason(self, decision: Decision) -> str:
        """Why there is no trace, or what is to be known of the one there is."""
        if decision.best is not None or decision.remarks:
            return "; ".join(decision.remarks)[:500]
        errors = [trial.error for trial in self._trials if trial.error]
        return f"no candidate ran: {errors[0]}" if errors else "there are no candidates"

    def _tell(self, fresh: int, state: str) -> None:
        ran = [trial.us for trial in self._trials if trial.us is not None]
        errand, best = self._errand, min(ran, default=None)
        self._heard(
            Progress(errand.workload, errand.name, self._done, errand.wanted, fresh, best, state)
        )
