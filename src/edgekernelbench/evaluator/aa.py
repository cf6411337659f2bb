"""A/A trials: one kernel against itself. What they show is the error of the measurement.

Each trial compiles the text twice and measures the two like a candidate and a baseline: own
processes, interleaved rounds in random order, fresh draws, a watch of the machine. The true
speed-up is 1.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from edgekernelbench.evaluator.conditions import Noise
from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.folders import remove_folder, scratch_folder
from edgekernelbench.evaluator.judge import Judge
from edgekernelbench.evaluator.noise import Watch
from edgekernelbench.evaluator.replicas import Replicas
from edgekernelbench.evaluator.static import Interface
from edgekernelbench.evaluator.statistics import median, speedup, stretched
from edgekernelbench.evaluator.task import EvalTask, Pool
from edgekernelbench.evaluator.timing import Entrant, Meter


class Trial(BaseModel):
    """Speed-up of a kernel over itself, with its interval, and the kernel's own median.

    Attributes:
        noise: what disturbed it, where that could be watched.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    speedup: float
    low: float
    high: float
    median_us: float
    rounds: int
    replicas: int = 1
    noise: Noise | None = None

    @property
    def covers(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low <= 1.0 <= self.high

    @property
    def disturbed(self) -> bool:
        return self.noise is not None and self.noise.disturbed


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over trials.

    Attributes:
        within: speed-ups within a relative error of 1.
        covering: intervals that hold 1.
        faster: lower bounds above 1, each of which would count as a gain that is none.
        faster_by_5: lower bounds above 1.05.
        disturbed: trials in which the machine was noisy.
        worst: largest distance of a speed-up from 1.
        width: median half width of the intervals.
    """

    trials: int
    within: int
    covering: int
    faster: int
    faster_by_5: int
    disturbed: int
    worst: float
    width: float


def summarise(trials: Sequence[Trial], error: float = 0.03) -> Summary:
    """Counts what trials found; ``error`` is that of `Summary.within`.

    Raises:
        ValueError: without trials.
    """
    if not trials:
        raise ValueError("no trials")
    errors = [abs(trial.speedup - 1) for trial in trials]
    return Summary(
        trials=len(trials),
        within=sum(e < error for e in errors),
        covering=sum(trial.covers for trial in trials),
        faster=sum(trial.low > 1.0 for trial in trials),
        faster_by_5=sum(trial.low > 1.05 for trial in trials),
        disturbed=sum(trial.disturbed for trial in trials),
        worst=max(errors),
        width=median([(trial.high - trial.low) / 2 for trial in trials]),
    )


def aa_trial(evaluator: Evaluator, task: EvalTask, kernel_text: str) -> Trial:
    """One trial, with the evaluator's settings.

    Raises:
        ChildLost, Failure, WrongResult, ValueError: when the kernel is not correct.
    """
    folders = [scratch_folder("aa") for _ in range(2)]
    try:
        with evaluator.device_lock():
            return _trial(evaluator, task, kernel_text, folders)
    finally:
        for folder in folders:
            remove_folder(folder)


def _trial(evaluator: Evaluator, task: EvalTask, text: str, folders: list[Path]) -> Trial:
    for folder in folders:
        built = evaluator.builder.kernel(text, Interface.of(task), folder)
        if built.manifest is None:
            raise ValueError(f"the kernel does not compile: {built.reply.diagnostics}")
    pool = Pool(task, evaluator.settings.input_sets)
    sides = [_replicas(evaluator, task, folder) for folder in folders]
    try:
        source = random.Random(secrets.randbits(62))
        on_host = evaluator.target.device is None
        watch = Watch(evaluator.cores, lambda: _pids(sides)) if on_host else None
        meter = Meter(evaluator.settings, len(pool.sets), source, watch=watch)
        candidate, baseline = (_enter(side, evaluator, task, pool, meter) for side in sides)
        meter.rounds(candidate, [baseline], _never)
        noise = None if watch is None else watch.seen()
        counts = baseline.runs.count, candidate.runs.count
        ratio = speedup(baseline.series.rounds, candidate.series.rounds, counts)
        ratio = stretched(ratio, 1.0 if noise is None else noise.widening)
        own = candidate.series
        return Trial(
            speedup=ratio.median,
            low=ratio.low,
            high=ratio.high,
            median_us=own.median_us,
            rounds=len(own.rounds),
            replicas=counts[1],
            noise=noise,
        )
    finally:
        for side in sides:
            side.close()
        pool.close()


def _pids(sides: Sequence[Replicas]) -> list[int]:
    return [pid for side in sides for pid in side.pids]


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
