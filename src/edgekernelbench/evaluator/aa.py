"""A/A trials: one kernel against itself. What they show is the error of the measurement.

Each trial compiles the text twice and measures the two like a candidate and a baseline: own
processes, interleaved rounds in random order, fresh draws. The true speed-up is 1.
"""

from __future__ import annotations

import random
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.judge import Judge
from edgekernelbench.evaluator.replicas import Replicas
from edgekernelbench.evaluator.static import Interface
from edgekernelbench.evaluator.statistics import speedup
from edgekernelbench.evaluator.task import EvalTask, Pool
from edgekernelbench.evaluator.timing import Entrant, Meter


@dataclass(frozen=True, slots=True)
class Trial:
    """Speed-up of a kernel over itself, with its interval, and the kernel's own median."""

    speedup: float
    low: float
    high: float
    median_us: float
    rounds: int

    @property
    def covers(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low <= 1.0 <= self.high


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over trials: how many lie within a relative error, how many intervals hold 1."""

    trials: int
    within: int
    covering: int
    worst: float


def summarise(trials: Sequence[Trial], error: float = 0.03) -> Summary:
    """Counts the trials whose speed-up is within ``error`` of 1."""
    errors = [abs(trial.speedup - 1) for trial in trials]
    return Summary(
        trials=len(trials),
        within=sum(e < error for e in errors),
        covering=sum(trial.covers for trial in trials),
        worst=max(errors),
    )


def aa_trial(evaluator: Evaluator, task: EvalTask, kernel_text: str) -> Trial:
    """One trial, with the evaluator's settings.

    Raises:
        ChildLost, Failure, WrongResult, ValueError: when the kernel is not correct.
    """
    folders = [Path(tempfile.mkdtemp(prefix="edgekernelbench-aa-")) for _ in range(2)]
    try:
        with evaluator.device_lock():
            return _trial(evaluator, task, kernel_text, folders)
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def _trial(evaluator: Evaluator, task: EvalTask, text: str, folders: list[Path]) -> Trial:
    for folder in folders:
        built = evaluator.builder.kernel(text, Interface.of(task), folder)
        if built.manifest is None:
            raise ValueError(f"the kernel does not compile: {built.reply.diagnostics}")
    pool = Pool(task, evaluator.settings.input_sets)
    sides = [_replicas(evaluator, task, folder) for folder in folders]
    try:
        source = random.Random(secrets.randbits(62))
        meter = Meter(evaluator.settings, len(pool.sets), source)
        candidate, baseline = (_enter(side, evaluator, task, pool, meter) for side in sides)
        meter.rounds(candidate, [baseline], _never)
        counts = baseline.runs.count, candidate.runs.count
        ratio = speedup(baseline.series.rounds, candidate.series.rounds, counts)
        own = candidate.series
        return Trial(ratio.median, ratio.low, ratio.high, own.median_us, len(own.rounds))
    finally:
        for side in sides:
            side.close()
        pool.close()


def _replicas(evaluator: Evaluator, task: EvalTask, folder: Path) -> Replicas:
    return Replicas(lambda: evaluator.kernel_contestant(folder.name, folder, task))


def _enter(
    side: Replicas, evaluator: Evaluator, task: EvalTask, pool: Pool, meter: Meter
) -> Entrant:
    settings, source = evaluator.settings, random.Random(secrets.randbits(62))
    side.bind(pool, source, settings.run_s)
    entrant = Entrant(side, True, Judge(task, pool, side).look)
    meter.first(entrant)
    if entrant.series.is_short:
        side.multiply(settings.replicas, pool, source, settings.run_s)
    return entrant


def _never(entrant: Entrant, error: Exception) -> None:
    raise error
