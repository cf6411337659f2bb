"""What is kept of an evaluation, and how two of them compare."""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict

from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus

PASSING = frozenset(
    (EvaluationStatus.INFRA_ERROR, EvaluationStatus.RUN_TIMEOUT, EvaluationStatus.CRASHED)
)
"""Statuses that a machine in trouble can give a right program."""


class Figures(BaseModel):
    """A kernel's time and what it is beside the baselines; there for right kernels only, those
    that are faster than is plausible among them.

    Attributes:
        speedups: median of each measured baseline over the kernel's, of the same rounds.
        disturbed: how noisy the machine was, in words; empty where nothing was noticed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    status: EvaluationStatus
    message: str = ""
    kernel_hash: str | None = None
    median_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    speedups: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    disturbed: str = ""

    @property
    def correct(self) -> bool:
        return self.status is EvaluationStatus.CORRECT


def figures_of(evaluation: Evaluation) -> Figures:
    own = evaluation.performance or evaluation.quarantined
    speedups: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    for name, result in evaluation.baselines.items():
        low, high = result.speedup_low, result.speedup_high
        if own is not None and result.speedup is not None and low is not None and high is not None:
            speedups[name] = result.speedup
            intervals[name] = (low, high)
    noise = None if own is None else own.noise
    return Figures(
        status=evaluation.status,
        message=evaluation.message,
        kernel_hash=evaluation.kernel_hash,
        median_us=None if own is None else own.median_us,
        low_us=None if own is None else own.low_us,
        high_us=None if own is None else own.high_us,
        speedups=speedups,
        intervals=intervals,
        disturbed=noise.remark if noise is not None and noise.disturbed else "",
    )


def gain(before: Figures, after: Figures) -> float:
    """How many times as fast ``after`` is; 0 where one of them has no time.

    Both were measured in turn with the same baselines, at different times: what they are beside
    those compares, each baseline weighing as much as its two intervals are narrow. The times
    themselves compare only where they share none.
    """
    if before.median_us is None or after.median_us is None:
        return 0.0
    common = before.speedups.keys() & after.speedups.keys()
    if not common:
        return before.median_us / after.median_us
    weights = {name: 1 / (_width(before, name) + _width(after, name)) for name in common}
    ratios = {name: math.log(after.speedups[name] / before.speedups[name]) for name in common}
    total = sum(weights.values())
    return math.exp(sum(weights[name] * ratios[name] for name in common) / total)


_NARROWEST = 1e-6


def _width(figures: Figures, name: str) -> float:
    """Squared width of a speed-up's interval, on the scale of ratios."""
    low, high = figures.intervals[name]
    return max(_NARROWEST, math.log(high / low) ** 2)
