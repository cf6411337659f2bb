"""Estimators and intervals, each on plain numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Z95 = 1.959963984540054

LEAST_FOR_BOOTSTRAP = 6
"""A bootstrap over fewer tasks than this gives little more than their extremes."""


def pass_at_k(attempts: int, successes: int, k: int) -> float:
    """Unbiased estimate of the chance that one of ``k`` attempts succeeds.

    ``1 - C(n-c, k) / C(n, k)`` (Chen et al. 2021, "Evaluating Large Language Models Trained on
    Code"). Needs ``attempts >= k``.

    Raises:
        ValueError: if there are fewer than ``k`` attempts.
    """
    if attempts < k:
        raise ValueError(f"{k} attempts needed, {attempts} there")
    if attempts - successes < k:
        return 1.0
    return 1.0 - math.comb(attempts - successes, k) / math.comb(attempts, k)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson score interval (95 %) of a share over ``n`` tasks; (0, 1) when ``n`` is 0.

    With several attempts a task, ``share`` is the mean of the tasks' own estimates and ``n``
    still the number of tasks, which makes the interval conservative.
    """
    if n == 0:
        return 0.0, 1.0
    z2 = Z95 * Z95
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def mean_interval(values: NDArray[np.float64], seed: int = 0) -> tuple[float, float]:
    """Bootstrap interval (95 %) of a mean. Drawn are whole values, one a task, whatever number of
    attempts each is the mean of."""
    rng = np.random.default_rng(seed)
    draws = rng.integers(0, values.size, (2000, values.size))
    low, high = np.quantile(values[draws].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def geometric_mean(
    values: Sequence[float], seed: int = 0, draws: int = 2000
) -> tuple[float, float, float]:
    """Geometric mean of positive values with a 95 % bootstrap interval over the values.

    Raises:
        ValueError: if there is no value, or one that is not positive and finite.
    """
    array = np.asarray(values, np.float64)
    if array.size == 0 or not np.all(np.isfinite(array) & (array > 0)):
        raise ValueError("positive, finite values needed")
    logs = np.log(array)
    rng = np.random.default_rng(seed)
    means = logs[rng.integers(0, logs.size, (draws, logs.size))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(np.exp(logs.mean())), float(np.exp(low)), float(np.exp(high))
