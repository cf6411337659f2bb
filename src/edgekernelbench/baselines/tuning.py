"""Making and extending schedule packs: `tune_task` searches what a pack lacks, and resumes.

Each finished function is one line appended to the pack. The trials of the function under way lie
in a file beside it (``PACK.part``), batch by batch, so that a killed search goes on where it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from edgekernelbench.baselines import packs
from edgekernelbench.baselines.base import Materials, Unavailable
from edgekernelbench.baselines.packs import Schedule
from edgekernelbench.baselines.tunable import tunable
from edgekernelbench.errors import UsageError
from edgekernelbench.targets.model import Target

if TYPE_CHECKING:
    from edgekernelbench.compilers.tvm.tuning.search import Trial


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the search for one function stands. ``best_us`` is None until a candidate ran."""

    workload: str
    function: str
    trials: int
    wanted: int
    best_us: float | None
    state: str


Heard = Callable[[Progress], None]


class PackWriter:
    """A pack that is being made, held by one process. Made by `open_pack`."""

    def __init__(self, path: Path, target: Target) -> None:
        self.path = path
        self.target = target
        self._part = path.with_name(path.name + ".part")
        known = packs.read_pack(path) if path.exists() else ()
        self._known = {s.identity: s for s in known}
        if path.exists():
            _cut_unfinished(path)

    def _identity(self, function: str) -> tuple[str, str, str, int, str]:
        target = self.target
        arch, cpu = packs.arch_of(target), packs.cpu_of(target)
        return (function, arch, cpu, target.threads, packs.compiler_version())

    def known(self, function: str) -> Schedule | None:
        """What the pack holds for a function on this target."""
        return self._known.get(self._identity(function))

    def add(self, schedule: Schedule) -> None:
        """Stores a finished function; it is on the disk when this returns."""
        _append(self.path, schedule.model_dump_json())
        self._known[schedule.identity] = schedule
        self._part.unlink(missing_ok=True)

    # ------------------------------------------------------------ the function under way
    def earlier(self, function: str) -> list[Trial]:
        """Trials of a search for a function that was stopped; those of another are dropped."""
        from edgekernelbench.compilers.tvm.tuning.search import Trial

        head = json.dumps(self._identity(function))
        lines = self._part.read_text().splitlines() if self._part.exists() else []
        if not lines or lines[0] != head:
            self._part.unlink(missing_ok=True)
            return []
        found = []
        for line in lines[1:]:
            try:
                found.append(Trial(**json.loads(line)))
            except (ValueError, TypeError):  # the line on which the process was killed
                break
        self._part.unlink()
        self.note(function, found)
        return found

    def note(self, function: str, trials: Sequence[Trial]) -> None:
        """Keeps trials until the function is finished."""
        if not self._part.exists():
            _append(self._part, json.dumps(self._identity(function)))
        for trial in trials:
            line = {"trace": trial.trace, "us": trial.us, "error": trial.error}
            _append(self._part, json.dumps(line))


@contextmanager
def open_pack(path: Path, target: Target) -> Iterator[PackWriter]:
    """A pack to add to, made if there is none.

    Raises:
        UsageError: it is damaged, cannot be written, or another process is writing it.
    """
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
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


def _append(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def _cut_unfinished(path: Path) -> None:
    """Drops a last line on which a process was killed, so that the next line stands alone."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(path, whole)


# ---------------------------------------------------------------- the search
def tune_task(
    materials: Materials, pack: PackWriter, trials: int, heard: Heard
) -> Unavailable | None:
    """Brings every function of a task to ``trials`` measured candidates. Why not, or None.

    Runs the compiler in this process; give it one of its own that may crash.
    """
    from edgekernelbench.compilers.tvm.tuning import graph

    task = tunable(materials, pack.target)
    if isinstance(task, Unavailable):
        return task
    for name, function in task.functions.items():
        _Search(materials.workload, name, graph.key(function), pack, trials, heard).run(function)
    return None


class _Search:
    """One function of one task."""

    def __init__(
        self, workload: str, name: str, key: str, pack: PackWriter, wanted: int, heard: Heard
    ) -> None:
        self._workload, self._name, self._key = workload, name, key
        self._pack, self._wanted, self._heard = pack, wanted, heard
        self._trials: list[Trial] = []
        self._before = 0

    def run(self, function: Any) -> None:
        from edgekernelbench.compilers.tvm.build import tvm_target
        from edgekernelbench.compilers.tvm.tuning.search import tune

        known = self._pack.known(self._key)
        if known is not None and known.wanted >= self._wanted:
            self._tell(known.trials, known.us, "known")
            return
        self._recall(known)
        left = self._wanted - self._done
        target = self._pack.target
        reason = ""
        try:
            if left > 0:
                earlier = tuple(self._trials)
                tune(function, tvm_target(target), target.threads, left, earlier, self._batch)
        except ValueError as error:
            reason = str(error)
        self._finish(reason)

    @property
    def _done(self) -> int:
        return self._before + len(self._trials)

    def _recall(self, known: Schedule | None) -> None:
        """Takes up a stopped search, and of a finished shorter one its best."""
        from edgekernelbench.compilers.tvm.tuning.search import Trial

        self._trials = self._pack.earlier(self._key)
        if known is not None:
            self._before = known.trials
            if known.trace is not None and not self._trials:
                self._before -= 1
                self._batch([Trial(known.trace, known.us)])

    def _batch(self, trials: Sequence[Trial]) -> None:
        self._pack.note(self._key, trials)
        self._trials += trials
        best = self._best()
        self._tell(self._done, best.us if best else None, "searching")

    def _best(self) -> Trial | None:
        ran = [trial for trial in self._trials if trial.us is not None]
        return min(ran, key=lambda trial: trial.us or 0.0, default=None)

    def _finish(self, reason: str) -> None:
        best = self._best()
        target = self._pack.target
        errors = [trial.error for trial in self._trials if trial.error]
        if best is None and not reason:
            reason = f"no candidate ran: {errors[0]}" if errors else "there are no candidates"
        schedule = Schedule(
            function=self._key,
            name=self._name,
            workload=self._workload,
            arch=packs.arch_of(target),
            cpu=packs.cpu_of(target),
            vector_bits=target.vector_bits,
            threads=target.threads,
            compiler=packs.compiler_version(),
            trials=self._done,
            wanted=self._wanted,
            guide=_guide(),
            us=None if best is None else best.us,
            trace=None if best is None else best.trace,
            reason=reason,
        )
        self._pack.add(schedule)
        self._tell(self._done, schedule.us, "done")

    def _tell(self, trials: int, best_us: float | None, state: str) -> None:
        told = Progress(self._workload, self._name, trials, self._wanted, best_us, state)
        self._heard(told)


def _guide() -> str:
    from edgekernelbench.compilers.tvm.tuning.search import cost_model_name

    return cost_model_name()
