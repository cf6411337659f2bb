"""MetaSchedule's search, driven batch by batch, so that it can be watched, stopped and resumed.

The search is TVM's evolutionary one over its schedule rules for CPUs or GPUs. Building and
measuring are ours (`bench`). Rules that need tensor intrinsics are left out: the one for AVX-512
that this version of TVM ships does not work with its LLVM, those for tensor cores compute more
coarsely than tasks ask for.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from edgekernelbench.compilers.tvm.lift.model import last_line
from edgekernelbench.compilers.tvm.tuning.bench import Bench, Effort

BATCH = 16
_WARM_UP = 16
"""Trials before the model's word counts; TVM's own choice, 100, is for far longer searches."""
_EMPTY_BATCHES = 2
"""Batches without a new candidate after which there are taken to be no others."""
_FAILED_S = 1e10  # TVM's own figure for a candidate without a time


@dataclass(frozen=True, slots=True)
class Trial:
    """One measured candidate: its schedule trace as JSON data, and its time or what went wrong."""

    trace: Any
    us: float | None
    error: str | None = None


Heard = Callable[[Sequence[Trial]], None]


def cost_model_name() -> str:
    """What guides the search here: gradient-boosted trees where XGBoost is installed, else luck."""
    return "xgb" if importlib.util.find_spec("xgboost") is not None else "random"


def tune(
    module: Any,
    bench: Bench,
    trials: int,
    earlier: Sequence[Trial],
    heard: Heard,
    deadline: float = float("inf"),
) -> int:
    """Searches for schedules of the loop function ``main`` of a module.

    Args:
        trials: candidates to measure, those of ``earlier`` not counted.
        earlier: of a search that was stopped; it goes on from them.
        heard: is told each batch as soon as it is measured.
        deadline: by `time.monotonic`; no batch begins after it.

    Returns:
        Candidates measured; fewer than ``trials`` when there are no others, or no time.

    Raises:
        ValueError: the compiler has no schedules for the function.
    """
    search = _Search(module, bench, trials, 1 + len(earlier))
    best = _least(earlier)
    try:
        search.begin(earlier)
        return _batches(search, bench, best, heard, deadline)
    finally:
        search.end()


def _batches(
    search: _Search, bench: Bench, best: float | None, heard: Heard, deadline: float
) -> int:
    count, empty = 0, 0
    while empty < _EMPTY_BATCHES and time.monotonic() < deadline:
        batch = search.next_batch()
        if batch is None:
            break
        empty = 0 if batch else empty + 1
        outcomes = bench.measure([c.sch.mod for c in batch], best)
        trials = [
            Trial(as_json(candidate.sch.trace), outcome.value, outcome.error)
            for candidate, outcome in zip(batch, outcomes, strict=True)
        ]
        search.learn(batch, trials)
        if trials:
            heard(trials)
        best = _least([*trials, *([] if best is None else [Trial(None, best)])])
        count += len(trials)
    return count


def _least(trials: Sequence[Trial]) -> float | None:
    return min((t.us for t in trials if t.us is not None), default=None)


class _Search:
    """TVM's objects behind one search."""

    def __init__(self, module: Any, bench: Bench, trials: int, seed: int) -> None:
        from tvm.s_tir import meta_schedule as ms

        self._ms: Any = ms
        self._trials = trials
        self._module = module
        self._target = bench.target
        self._threads = bench.threads
        parts = ("sch_rules", "postprocs", "mutator_probs")
        rules: dict[str, Any] = dict.fromkeys(parts, bench.effort.rules)
        with _without_intrinsics():
            self._context = ms.TuneContext(
                mod=module,
                target=bench.target,
                space_generator=ms.space_generator.PostOrderApply(**rules),
                search_strategy=_strategy(ms, bench.effort, trials),
                num_threads=self._threads,
                rand_state=seed,
                logger=_silent_logger(),
            )
        self._database = ms.database.MemoryDatabase()
        self._workload = self._database.commit_workload(module)
        self._model = self._cost_model()

    def _cost_model(self) -> Any:
        models = self._ms.cost_model
        if cost_model_name() == "random":
            return models.RandomModel()
        return models.XGBModel(num_warmup_samples=_WARM_UP, num_tuning_cores=self._threads)

    def begin(self, earlier: Sequence[Trial]) -> None:
        try:
            spaces = self._context.generate_design_space()
        except Exception as error:  # its exceptions have no common base
            raise ValueError(f"no schedules to search: {last_line(error)}") from error
        known = [trial for trial in earlier if trial.us is not None]
        if known:
            records = [self._record(_trace_of(t.trace, self._module), t) for t in known]
            self._model.update(
                self._context,
                [record.as_measure_candidate() for record in records],
                [self._result(trial) for trial in known],
            )
        self._context.pre_tuning(
            self._trials, min(BATCH, self._trials), spaces, self._database, self._model
        )

    def _record(self, trace: Any, trial: Trial) -> Any:
        assert trial.us is not None
        seconds = [trial.us * 1e-6]
        record = self._ms.database.TuningRecord(trace, self._workload, seconds, self._target, None)
        self._database.commit_tuning_record(record)
        return record

    def _result(self, trial: Trial) -> Any:
        seconds = _FAILED_S if trial.us is None else trial.us * 1e-6
        return self._ms.runner.RunnerResult([seconds], None)

    def next_batch(self) -> list[Any] | None:
        found = self._context.generate_measure_candidates()
        return None if found is None else list(found)

    def learn(self, batch: Sequence[Any], trials: Sequence[Trial]) -> None:
        results = [self._result(trial) for trial in trials]
        for candidate, trial in zip(batch, trials, strict=True):
            if trial.us is not None:
                self._record(candidate.sch.trace, trial)
        self._model.update(self._context, list(batch), results)
        self._context.notify_runner_results(list(batch), results)

    def end(self) -> None:
        with contextlib.suppress(Exception):  # it complains when the search never began
            self._context.post_tuning()


def _strategy(ms: Any, effort: Effort, trials: int) -> Any:
    population = min(effort.population, 4 * trials)
    return ms.search_strategy.EvolutionarySearch(
        population_size=population,
        init_min_unmeasured=population // 2,
        genetic_num_iters=effort.generations,
        max_fail_count=effort.draws,
    )


@contextlib.contextmanager
def _without_intrinsics() -> Iterator[None]:
    """Lets a context be made without registering all tensor intrinsics of all devices, which takes
    half a minute and serves rules that are not used here."""
    name = "tvm.s_tir.tensor_intrin"
    known = name in sys.modules
    sys.modules.setdefault(name, types.ModuleType(name))
    try:
        yield
    finally:
        if not known:
            del sys.modules[name]


def _silent_logger() -> logging.Logger:
    logger = logging.getLogger("edgekernelbench.tuning")
    logger.setLevel(logging.CRITICAL)
    return logger


# ---------------------------------------------------------------- traces
def as_json(trace: Any) -> Any:
    """A `tvm.s_tir.schedule.Trace` as plain lists, numbers and texts."""
    return json.loads(json.dumps(trace.as_json(), default=_plain))


def _plain(value: Any) -> Any:
    if hasattr(value, "value"):
        return value.value
    return list(value) if hasattr(value, "__iter__") else str(value)


def _trace_of(trace: Any, module: Any) -> Any:
    schedule = replay(trace, module)
    return schedule.trace


def replay(trace: Any, module: Any) -> Any:
    """The `tvm.s_tir.Schedule` of ``main`` in ``module`` that a trace leads to.

    Raises:
        Exception: of no common base, if the trace does not fit the function.
    """
    from tvm.s_tir.schedule import Schedule, Trace

    schedule = Schedule(module, debug_mask=0)
    Trace.apply_json_to_schedule(trace, schedule)
    return schedule
