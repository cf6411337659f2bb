"""Medians of times and of their ratios, with 95 % intervals.

Two things make a measured median differ from the true one, and an interval covers both:

- noise from round to round. Its share is taken between two order statistics: the number of values
  below the true median is binomial, so the coverage is known exactly, whatever the distribution;
  six values are the least for 95 %.
- the luck of each process, which lasts for its life (`replicas`). Its share is Student's interval
  over the replicas' medians, in logarithms. Some programs come out at one of two speeds, of which
  Student's interval knows nothing: four slow processes against four fast ones look like certainty.
  So a speed-up's interval also holds that of Hodges and Lehmann, which supposes nothing of the
  distribution: order statistics of the ratios of every replica to every other side's replica,
  at the ranks that the Mann-Whitney distribution gives for 95 %.

The widest counts. Speed-ups get a margin of 1 % on top, since measuring stops when intervals are
narrow. What remains of false claims is counted over simulated machines in the tests, and over real
kernels measured against themselves (`aa`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

MARGIN = 0.01
"""Relative differences below this are never claimed."""

STRETCH = 1.3
"""By how much speed-ups' intervals are wider than theory says, in logarithms. In 200 A/A trials on
an idle machine (`aa`) those of theory held 1 in 94 %, these in 96.5 %."""

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
    tail, rank = 0, 0
    for below in range(n // 2):
        tail += math.comb(n, below)
        if 2 * tail * 20 > 2**n:  # more than 5 % in both tails
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
    return statistics.median(values)


def grouped(rounds: Mapping[int, float], replicas: int) -> Estimate:
    """Median and interval of a contestant's time.

    Args:
        rounds: time by round; round ``r`` was run by replica ``r % replicas``.
        replicas: how many took turns; with one, the luck of the process is unknown and left out.
    """
    noise = estimate(list(rounds.values()))
    luck = 0.0
    if replicas > 1:
        spread = _spread(rounds, replicas)
        luck = _student(replicas - 1) * spread / math.sqrt(replicas)
    return _widened(noise, noise.median, luck)


def speedup(
    baseline: Mapping[int, float],
    candidate: Mapping[int, float],
    replicas: tuple[int, int] = (1, 1),
) -> Estimate:
    """How many times as long the baseline takes.

    Args:
        baseline: time by round; drift of the machine hits both sides of a round alike.
        candidate: the same.
        replicas: of the baseline and of the candidate, as in `grouped`.

    Returns:
        The ratio of the medians, and an interval from the rounds' ratios and the luck of both
        sides' processes (see the module), widened to hold it, and by `MARGIN`.

    Raises:
        ValueError: no round has both.
    """
    common = sorted(baseline.keys() & candidate.keys())
    ratios = estimate([baseline[r] / candidate[r] for r in common])
    ratio = median(list(baseline.values())) / median([candidate[r] for r in common])
    sides = [
        (count, _spread(rounds, count))
        for count, rounds in zip(replicas, (baseline, candidate), strict=True)
        if count > 1
    ]
    luck = 0.0
    if sides:
        freedom = sum(count - 1 for count, _ in sides)
        pooled = math.sqrt(sum((c - 1) * s * s for c, s in sides) / freedom)
        luck = _student(freedom) * pooled * math.sqrt(sum(1 / c for c, _ in sides))
    found = _widened(_joined(ratios, _pairs(baseline, candidate, replicas)), ratio, luck)
    found = stretched(found, STRETCH)
    return Estimate(ratio, found.low * (1 - MARGIN), found.high * (1 + MARGIN))


def stretched(found: Estimate, factor: float) -> Estimate:
    """The same with an interval ``factor`` times as wide, in logarithms."""
    if factor == 1.0:
        return found
    centre = found.median
    low, high = ((bound / centre) ** factor * centre for bound in (found.low, found.high))
    return Estimate(centre, low, high)


def _medians(rounds: Mapping[int, float], replicas: int) -> list[float]:
    """Each replica's median."""
    groups: dict[int, list[float]] = {}
    for number, value in rounds.items():
        groups.setdefault(number % replicas, []).append(value)
    return [median(values) for values in groups.values()]


def _spread(rounds: Mapping[int, float], replicas: int) -> float:
    """Standard deviation of the logarithms of the replicas' medians."""
    return statistics.stdev(math.log(value) for value in _medians(rounds, replicas))


def _pairs(
    baseline: Mapping[int, float], candidate: Mapping[int, float], replicas: tuple[int, int]
) -> Estimate | None:
    """Hodges' and Lehmann's interval of the ratio; None for too few replicas."""
    above, below = (
        _medians(rounds, count)
        for rounds, count in zip((baseline, candidate), replicas, strict=True)
    )
    return ratio_of(above, below)


def ratio_of(above: Sequence[float], below: Sequence[float]) -> Estimate | None:
    """Median of the ratios of every value to every other side's, with Hodges' and Lehmann's 95 %
    interval; None for too few values (four on each side are enough)."""
    rank = pair_rank(len(above), len(below))
    if rank is None:
        return None
    ratios = sorted(a / b for a in above for b in below)
    return Estimate(median(ratios), ratios[rank], ratios[-1 - rank])


@cache
def pair_rank(n: int, m: int) -> int | None:
    """``r`` such that the r-th lowest and r-th highest (from 0) of the ``n * m`` ratios between two
    samples enclose the true one in at least 95 % of all cases; None when not even the extremes do.
    """
    tail, rank = 0, None
    for u, count in enumerate(_arrangements(n, m, n * m // 2)):
        tail += count
        if 2 * tail * 20 > math.comb(n + m, n):  # more than 5 % in both tails
            break
        rank = u
    return rank


def _arrangements(n: int, m: int, most: int) -> list[int]:
    """In how many orders of ``n`` and ``m`` values exactly 0, 1, ... ``most`` pairs are inverted:
    the coefficients of the Gaussian binomial, the product over i = 1 ... n of
    (1 - q^(m + i)) / (1 - q^i)."""
    counts = [1, *[0] * most]
    for i in range(1, n + 1):
        for u in range(most, m + i - 1, -1):
            counts[u] -= counts[u - m - i]
        for u in range(i, most + 1):
            counts[u] += counts[u - i]
    return counts


def _joined(one: Estimate, other: Estimate | None) -> Estimate:
    """The first, its interval widened to hold the other's."""
    if other is None:
        return one
    return Estimate(one.median, min(one.low, other.low), max(one.high, other.high))


def _widened(noise: Estimate, centre: float, luck: float) -> Estimate:
    low = min(noise.low, centre, centre * math.exp(-luck))
    return Estimate(centre, low, max(noise.high, centre, centre * math.exp(luck)))


# Two-sided 95 % quantiles of Student's distribution by degrees of freedom; the last serves for
# all larger ones and is too wide for them.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179)


def _student(freedom: int) -> float:
    return _STUDENT[min(freedom, len(_STUDENT)) - 1]
