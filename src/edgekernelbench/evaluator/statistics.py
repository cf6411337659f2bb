"""Medians with intervals that assume nothing of the distribution.

The interval of a median is taken between two order statistics: the number of values below the
true median is binomial, so the coverage is known exactly. It holds for times and for ratios of
times alike, needs no random numbers, and needs at least six values for 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

LEAST = 6
"""Fewest values that have a 95 % interval: the extremes of six cover 96.9 %."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median and its interval, in the unit of the values."""

    median: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the interval, relative to the median."""
        return (self.high - self.low) / 2 / self.median


@cache
def interval_rank(n: int) -> int:
    """``r`` such that the r-th lowest and r-th highest of ``n`` values enclose the median in at
    least 95 % of all cases (counted from 0); 0, the extremes, when ``n`` is below `LEAST`."""
    tail, rank = 0.0, 0
    for below in range(n // 2):
        tail += math.comb(n, below) / 2.0**n
        if 2 * tail > 0.05:
            break
        rank = below
    return rank


def estimate(values: Sequence[float]) -> Estimate:
    """Median and 95 % interval; with fewer than `LEAST` values the extremes.

    Raises:
        ValueError: without values.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    n = len(ordered)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    rank = interval_rank(n)
    return Estimate(middle, ordered[rank], ordered[n - 1 - rank])


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle ones."""
    return estimate(values).median


def speedup(baseline: dict[int, float], candidate: dict[int, float]) -> Estimate:
    """How many times as long the baseline takes.

    Args:
        baseline: time by round; drift of the machine hits both sides of a round alike.
        candidate: the same.

    Returns:
        The ratio of the medians, and the interval of the median of the rounds' ratios, widened
        to hold it.

    Raises:
        ValueError: no round has both.
    """
    common = sorted(baseline.keys() & candidate.keys())
    ratios = estimate([baseline[r] / candidate[r] for r in common])
    ratio = median(list(baseline.values())) / median([candidate[r] for r in common])
    return Estimate(ratio, min(ratios.low, ratio), max(ratios.high, ratio))
