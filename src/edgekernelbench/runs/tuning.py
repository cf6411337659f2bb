"""Tunes the tasks of a subset into a schedule pack, functions side by side on cores of their own.

Each function is searched in a process of its own, because the search runs the compiler on programs
that nobody tried before: what crashes or eats the memory is then one function, and the others go
on. This process runs no compiler. It deals out the work, writes the pack, and tells how it goes.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from edgekernelbench.baselines.base import Unavailable
from edgekernelbench.baselines.schedules import Schedule, parse_schedule
from edgekernelbench.baselines.tuning import (
    Errand,
    Heard,
    Means,
    PackWriter,
    Progress,
    errands,
    open_pack,
    search,
)
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.evaluator import device_lock
from edgekernelbench.evaluator.preload import without_torch
from edgekernelbench.evaluator.task import InvalidReference, as_task, materials
from edgekernelbench.suite import Workload
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.placement import Slot, host_cores, slots

State = Literal["tuned", "unfinished", "unavailable", "failed"]
SILENCE_S = 1200.0
"""A search that measures no batch for that long is taken to hang."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """How the search for one task ended; why, where there is no complete schedule."""

    workload: str
    state: State
    message: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """A whole run. ``trials``: candidates measured in it, ``slots``: how many side by side."""

    tasks: tuple[Tuned, ...]
    trials: int
    seconds: float
    slots: int


@dataclass(frozen=True, slots=True)
class TuneConfig:
    """What to tune, for what, and where the schedules go.

    Attributes:
        trials: candidates for each function that counts in its task.
        jobs: measurements side by side; None takes as many as there are cores for.
        minutes: of wall time, after which no batch of trials begins; None sets no limit.
    """

    workloads: tuple[Workload, ...]
    target: Target
    pack: Path
    trials: int
    jobs: int | None = None
    minutes: float | None = None


def tune(config: TuneConfig, heard: Heard, ended: Callable[[Tuned], None]) -> Result:
    """Brings every task to the wanted number of trials; what the pack holds is not done again.

    Nothing is evaluated on the target meanwhile.

    Args:
        heard: is told where a search stands.
        ended: is told how a task ended.

    Raises:
        UsageError: the target cannot be tuned for here, or the pack cannot be used.
        KeyboardInterrupt: what was measured so far is kept.
    """
    began = time.monotonic()
    _check(config.target)
    places = _places(config)
    with (
        open_pack(config.pack, config.target) as pack,
        device_lock(config.target),
        tempfile.NamedTemporaryFile(prefix="ekb-tune-") as turn,
    ):
        _preload()
        foreman = _Foreman(config, pack, places, Path(turn.name), began, heard, ended)
        foreman.run()
    by_name = {result.workload: result for result in foreman.results}
    results = tuple(by_name[workload.id] for workload in config.workloads)
    return Result(results, foreman.trials, time.monotonic() - began, len(places))


def _check(target: Target) -> None:
    on_host = target.backend == "llvm" and target.mtriple is None
    if target.device is None and not on_host:
        raise UsageError(
            f"target {target.name!r} cannot be tuned here: candidates are measured on a device",
            "tune for llvm (this host), or for opencl or cuda where there is a device",
        )


def _places(config: TuneConfig) -> tuple[Slot, ...]:
    """Candidates for a device of its own take turns there: what slots do side by side is searching
    and building. Where the device is this host's processor, there is one slot."""
    cores, device = host_cores(), config.target.device
    if device is None:
        return slots(cores, config.target.threads, config.jobs)
    if device.is_host_cpu:
        return slots(cores, len(cores), config.jobs)
    return slots(cores, 1, config.jobs)


def _preload() -> None:
    """Imports the compiler once; the processes are forks of this one."""
    without_torch()
    # XGBoost's threads would wait for work by turning round on the cores that others need.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for module in ("tvm.relax.frontend.onnx", "tvm.s_tir.meta_schedule"):
        importlib.import_module(module)
    with contextlib.suppress(ImportError):  # it is no need, see `search.cost_model_name`
        importlib.import_module("xgboost")


# ---------------------------------------------------------------- what is still to be done
@dataclass(slots=True)
class _Task:
    """A task under way. ``open``: keys of functions whose search has not ended."""

    workload: Workload
    open: set[str] = field(default_factory=set)
    late: bool = False
    failures: list[str] = field(default_factory=list)

    def result(self) -> Tuned:
        if self.failures:
            return Tuned(self.workload.id, "failed", "; ".join(self.failures)[:1000])
        if self.late or self.open:
            return Tuned(self.workload.id, "unfinished", "the time was up")
        return Tuned(self.workload.id, "tuned")


class _Foreman:
    """Deals out planning, then searches, to the slots.

    Attributes:
        results: how tasks ended, in the order in which they did.
        trials: candidates measured.
    """

    def __init__(
        self,
        config: TuneConfig,
        pack: PackWriter,
        places: tuple[Slot, ...],
        turn: Path,
        began: float,
        heard: Heard,
        ended: Callable[[Tuned], None],
    ) -> None:
        self._config, self._pack, self._slots, self._turn = config, pack, places, turn
        self._heard, self._ended = heard, ended
        minutes = config.minutes
        self._deadline = began + 60 * minutes if minutes is not None else float("inf")
        self._plans: list[tuple[_Task, list[Errand]]] = []
        self._tasks: dict[str, list[_Task]] = {}
        self.results: list[Tuned] = []
        self.trials = 0

    def run(self) -> None:
        self._work_off(_Job(partial(_plan, w, self._config), partial(self._planned, w))
                       for w in self._config.workloads)  # fmt: skip
        jobs = [self._search_job(errand) for errand in self._order()]
        self._work_off(job for job in jobs if time.monotonic() < self._deadline)
        for task, _ in self._plans:
            if task.open:
                self._end(task.result())

    def _work_off(self, jobs: Iterator[_Job]) -> None:
        """Every slot takes the next job when it is free."""
        from edgekernelbench.compilers.tvm.tuning.forked import Outcome, Place, Yard

        yard = Yard()

        def feed(slot: Slot) -> None:
            job = next(jobs, None)
            if job is None:
                return
            cpus = tuple(sorted({*slot.timed, *slot.others}))

            def done(outcome: Outcome) -> None:
                job.done(outcome.value, outcome.error)
                feed(slot)

            place = Place(cpus, 1, SILENCE_S)
            yard.submit(partial(job.work, slot), place, done, self._told)

        for slot in self._slots:
            feed(slot)
        yard.run()

    def _told(self, said: Any) -> None:
        progress = Progress(**said)
        self.trials += progress.fresh
        self._heard(progress)

    def _end(self, result: Tuned) -> None:
        self.results.append(result)
        self._ended(result)

    # ------------------------------------------------------------ planning
    def _planned(self, workload: Workload, value: Any, error: str | None) -> None:
        if error is not None:
            self._end(Tuned(workload.id, "failed", error))
        elif isinstance(value, str):
            self._end(Tuned(workload.id, "unavailable", value))
        else:
            self._plans.append((_Task(workload), [Errand(**row) for row in value]))

    def _order(self) -> Iterator[Errand]:
        """What the pack lacks: first for tasks that lack little, so that many are complete early;
        a function that several tasks have is searched once, for the one that wants most of it."""
        wanted: dict[str, int] = {}
        for _, plan in self._plans:
            for errand in plan:
                wanted[errand.function] = max(wanted.get(errand.function, 0), errand.wanted)
        lacking = {f: n for f, n in wanted.items() if self._lacks(f, n)}
        for function in wanted.keys() - lacking.keys():
            self._pack.finished(function)  # a run that was killed may have left its trials
        self._plans.sort(key=lambda item: sum(lacking.get(e.function, 0) for e in item[1]))
        ordered: dict[str, Errand] = {}
        for task, plan in self._plans:
            task.open = {errand.function for errand in plan} & lacking.keys()
            for errand in plan:
                if errand.function in lacking:
                    self._tasks.setdefault(errand.function, []).append(task)
                    new = replace(errand, wanted=wanted[errand.function])
                    ordered.setdefault(errand.function, new)
            if not task.open:
                self._end(task.result())
        return iter(ordered.values())

    def _lacks(self, function: str, wanted: int) -> bool:
        known = self._pack.known(function)
        return known is None or known.wanted < wanted

    # ------------------------------------------------------------ searching
    def _search_job(self, errand: Errand) -> _Job:
        by_id = {workload.id: workload for workload in self._config.workloads}
        known = self._pack.known(errand.function)
        work = partial(
            _search, by_id[errand.workload], errand, known, self._config, self._pack.parts,
            self._turn, self._deadline,
        )  # fmt: skip
        return _Job(work, partial(self._searched, errand))

    def _searched(self, errand: Errand, value: Any, error: str | None) -> None:
        late = False
        if error is None:
            late = value is None or self._store(errand, parse_schedule(value.encode()))
        for task in self._tasks[errand.function]:
            task.late = task.late or late
            if error is not None:
                task.failures.append(f"{errand.name}: {error}")
            task.open.discard(errand.function)
            if not task.open:
                self._end(task.result())

    def _store(self, errand: Errand, schedule: Schedule) -> bool:
        """Whether time ran out before all was measured that is wanted."""
        self._pack.add(schedule)
        if schedule.wanted < errand.wanted:
            return True
        self._pack.finished(errand.function)
        return False


@dataclass(frozen=True, slots=True)
class _Job:
    """``work`` takes a slot and a way to tell how it goes; ``done`` a value or an error."""

    work: Callable[..., Any]
    done: Callable[[Any, str | None], None]


# ---------------------------------------------------------------- in processes of their own
def _plan(workload: Workload, config: TuneConfig, _slot: Slot, _say: Any) -> Any:
    """The errands of a task as JSON data, or a text that says why there are none."""
    try:
        found = errands(materials(as_task(workload)), config.target, config.trials)
    except InvalidReference as error:
        return str(error)
    return found.reason if isinstance(found, Unavailable) else [asdict(one) for one in found]


def _search(
    workload: Workload,
    errand: Errand,
    known: Schedule | None,
    config: TuneConfig,
    parts: Path,
    turn: Path,
    deadline: float,
    slot: Slot,
    say: Callable[[Any], None],
) -> Any:
    """The schedule as JSON text."""

    def heard(progress: Progress) -> None:
        say(asdict(progress))

    means = Means(config.target, slot, parts, turn, deadline)
    found = search(materials(as_task(workload)), errand, known, means, heard)
    return None if found is None else found.model_dump_json()
