"""Intervals of medians cover what they claim, whatever the distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgekernelbench.evaluator.statistics import (
    LEAST,
    estimate,
    grouped,
    interval_rank,
    pair_rank,
    speedup,
)


def test_rank_has_the_coverage_and_is_the_largest_with_it() -> None:
    def coverage(n: int, rank: int) -> float:
        return 1 - 2 * sum(math.comb(n, k) for k in range(rank + 1)) / 2.0**n

    for n in range(LEAST, 120):
        assert coverage(n, interval_rank(n)) >= 0.95
        assert coverage(n, interval_rank(n) + 1) < 0.95
    assert coverage(LEAST - 1, 0) < 0.95
    assert 900 < interval_rank(2000) < 1000
    assert [interval_rank(n) for n in range(1, LEAST)] == [0] * (LEAST - 1)


def test_interval_covers_on_a_skewed_distribution() -> None:
    rng = np.random.default_rng(1)
    truth = math.log(2.0)  # the median of the exponential distribution
    hits = 0
    for _ in range(400):
        found = estimate(list(rng.exponential(size=15)))
        hits += found.low <= truth <= found.high
    assert hits >= 375


def test_estimate() -> None:
    assert estimate([3.0]).median == estimate([3.0]).low == 3.0
    five = estimate([5, 1, 4, 2, 3])
    assert (five.median, five.low, five.high) == (3, 1, 5)
    assert estimate([1, 2, 3, 4]).median == 2.5
    with pytest.raises(ValueError, match="no values"):
        estimate([])


def test_speedup_is_robust_to_drift() -> None:
    """The machine slows down by half in the middle; the ratio within rounds does not."""
    rng = np.random.default_rng(2)
    drift = np.where(np.arange(20) < 10, 1.0, 2.0)

    def times(us: float) -> dict[int, float]:
        return dict(enumerate((us * drift * (1 + rng.normal(0, 0.002, 20))).tolist()))

    candidate, baseline = times(100), times(150)
    found = speedup(baseline, candidate)
    assert 1.47 < found.low <= found.median <= found.high < 1.53


def test_speedup_uses_common_rounds() -> None:
    found = speedup({0: 30.0, 2: 30.0}, {0: 10.0, 1: 99.0, 2: 10.0})
    assert found.median == 3.0
    with pytest.raises(ValueError, match="no values"):
        speedup({0: 1.0}, {1: 1.0})


def simulate(
    rng: np.random.Generator, luck: float, noise: float, replicas: int
) -> dict[int, float]:
    """Twelve rounds of a time of 1, by processes that differ."""
    own = np.exp(rng.normal(0, luck, replicas))
    return {r: float(own[r % replicas] * (1 + rng.normal(0, noise))) for r in range(12)}


@pytest.mark.parametrize(("luck", "noise"), [(0.02, 0.002), (0.0, 0.02), (0.02, 0.02)])
def test_intervals_cover_noise_and_luck(luck: float, noise: float) -> None:
    rng = np.random.default_rng(3)
    times = ratios = 0
    for _ in range(400):
        one, two = (simulate(rng, luck, noise, 4) for _ in range(2))
        own = grouped(one, 4)
        times += own.low <= 1 <= own.high
        ratio = speedup(one, two, (4, 4))
        ratios += ratio.low <= 1 <= ratio.high
    assert times >= 370 and ratios >= 370


def test_with_one_replica_only_noise_counts() -> None:
    rounds = dict(enumerate((1.0, 1.1, 1.2, 1.3, 1.4, 1.5)))
    assert grouped(rounds, 1) == estimate(list(rounds.values()))


def test_ranks_of_pairs_are_those_of_the_tables() -> None:
    """Critical values of the Mann-Whitney statistic, two-sided, 5 %."""
    table = {(4, 4): 0, (5, 5): 2, (4, 5): 1, (6, 6): 5, (8, 8): 13, (3, 3): None, (1, 8): None}
    assert {pair: pair_rank(*pair) for pair in table} == table


def test_four_slow_processes_against_three_fast_ones_prove_nothing() -> None:
    """The fourth one on the other side is as slow: so fast ones may come up on this side, too."""
    slow = dict.fromkeys(range(12), 2.0)
    mixed = {r: 2.0 if r % 4 == 3 else 1.0 for r in range(12)}
    found = speedup(slow, mixed, (4, 4))
    assert found.median == 2.0 and found.low < 1.0
