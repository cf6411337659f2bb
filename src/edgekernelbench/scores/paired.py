"""Tests and intervals for two measurements of the same tasks, each on plain numbers.

All tests are two-sided, all intervals hold 95 %, all detectable effects are those that a test at
the 5 % level finds with a chance of 80 %. Draws come from a fixed seed: the same records give the
same figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from edgekernelbench.scores.statistics import Z95

ALPHA = 0.05
POWER = 0.8

_EXACT = 14
"""Non-zero differences up to which every assignment of signs is tried."""

_DRAWS = 20_000
_PRECISION = 1e-4
"""To which a detectable effect is given."""

Differences = NDArray[np.float64]


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact p-value that successes of one side only fall on both sides with equal chance."""
    discordant = only_a + only_b
    return float(stats.binomtest(only_a, discordant).pvalue) if discordant else 1.0


def mcnemar_interval(only_a: int, only_b: int, n: int) -> tuple[float, float]:
    """Interval of the difference of two shares, A less B, over the same ``n`` tasks.

    Wald's with one success added to either side (Bonett and Price 2012), which keeps its coverage
    where few tasks or none tell the sides apart.
    """
    a, b = (only_a + 1) / (n + 2), (only_b + 1) / (n + 2)
    half = Z95 * math.sqrt((a + b - (a - b) ** 2) / (n + 2))
    return max(-1.0, a - b - half), min(1.0, a - b + half)


def mcnemar_power(difference: float, discordant: float, n: int) -> float:
    """Chance that the exact test rejects.

    Args:
        difference: of the true shares, not negative.
        discordant: chance that a task succeeds on one side only; at least ``difference``.
        n: tasks.
    """
    found = np.arange(n + 1)
    critical = np.array([_critical(m) for m in found])
    towards_a = 0.5 if discordant == 0 else (discordant + difference) / 2 / discordant
    rejects = stats.binom.cdf(critical, found, towards_a)
    rejects += stats.binom.sf(found - critical - 1, found, towards_a)
    return float(stats.binom.pmf(found, n, discordant) @ rejects)


@cache
def _critical(discordant: int) -> int:
    """The most successes of the rarer side at which the exact test still rejects; -1: never."""
    quantile = int(stats.binom.ppf(ALPHA / 2, discordant, 0.5)) if discordant else 0
    while quantile >= 0 and 2 * stats.binom.cdf(quantile, discordant, 0.5) > ALPHA:
        quantile -= 1
    return quantile


def mcnemar_detectable(only_a: int, only_b: int, n: int) -> float | None:
    """The least difference of shares that the exact test would find; None: not even 1.

    The share of tasks that tell the sides apart is taken as it was found, or as large as the
    difference asks for.
    """
    share = (only_a + only_b) / n if n else 0.0
    return _least(lambda d: mcnemar_power(d, max(share, d), n) >= POWER) if n else None


def _least(enough: Callable[[float], bool]) -> float | None:
    if not enough(1.0):
        return None
    low, high = 0.0, 1.0
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def sign_flip(differences: Differences, seed: int = 0) -> float:
    """p-value of the mean difference when each task's sign is as likely as its opposite.

    Exact up to 14 tasks that differ; beyond, 20,000 draws, and never below one of them.
    """
    values = differences[differences != 0]
    if values.size == 0:
        return 1.0
    observed = abs(values.sum()) * (1 - 1e-12)
    if values.size <= _EXACT:
        choices = np.indices((2,) * values.size).reshape(values.size, -1).T * 2.0 - 1
        return float(np.mean(np.abs(choices @ values) >= observed))
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(_DRAWS // 1000):
        signs = rng.integers(0, 2, (1000, values.size)) * 2.0 - 1
        hits += int(np.count_nonzero(np.abs(signs @ values) >= observed))
    return (hits + 1) / (_DRAWS + 1)


def wilcoxon(differences: Differences) -> float:
    """p-value of the signed ranks; tasks without a difference are left out."""
    values = differences[differences != 0]
    if not values.size:
        return 1.0
    result: Any = stats.wilcoxon(values)  # typed as a tuple without names
    return float(result.pvalue)


def mean_detectable(differences: Differences) -> float | None:
    """The least true mean that a test over as many tasks, as spread as these, would find.

    None where the spread is unknown: fewer than two tasks, or no difference between any.
    """
    n = differences.size
    if n < 2:
        return None
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    if error == 0:
        return None
    student = partial(stats.t.ppf, df=n - 1)
    return float((student(1 - ALPHA / 2) + student(POWER)) * error)
