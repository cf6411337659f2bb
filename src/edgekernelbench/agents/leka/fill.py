"""Numbers for the holes of a proposal: many screened, few measured.

Combinations that lower are ranked by the estimate. A round measures the most promising, then values
that did badly go, what is left is ranked anew, and half as many are measured, until one is left or
the share of the budget is used.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from edgekernelbench.agents.leka.screen import Screen, Screened
from edgekernelbench.lowering.holes import find_holes

_COMBINATIONS = 128
"""That are lowered and estimated at most, the first choices among them."""

_FAR = 1.5
"""Times the best time at which a value of a hole is given up, where all with it took that long."""


def fill(
    screened: Screened,
    screen: Screen,
    rng: random.Random,
    measure: Callable[[Screened], float | None],
    share: int,
) -> int:
    """Measures variants of a candidate; returns how many.

    Args:
        measure: microseconds of one; None where it is not correct.
        share: evaluations that this may take.
    """
    sites = find_holes(screened.kernel)
    if not sites or share < 1:
        return 0

    def choose(total: int) -> list[int]:
        if total <= _COMBINATIONS:
            return list(range(total))
        return [0, *(rng.randrange(1, total) for _ in range(_COMBINATIONS - 1))]

    left = screen.variants(screened, choose)
    times: dict[tuple[int, ...], float] = {}
    used, count = 0, max(1, (share + 1) // 2)
    while left and used < share:
        for taken in sorted(left, key=lambda one: _estimated(left[one]))[
            : min(count, share - used)
        ]:
            us = measure(left.pop(taken))
            used += 1
            if us is not None:
                times[taken] = us
        left = {taken: v for taken, v in left.items() if not _given_up(taken, times)}
        count = max(1, count // 2)
    return used


def _estimated(variant: Screened) -> float:
    return variant.estimated_us or 0.0


def _given_up(taken: tuple[int, ...], times: dict[tuple[int, ...], float]) -> bool:
    """Whether one of these choices was measured, and always far from the best."""
    least = min(times.values(), default=0.0)
    for hole, choice in enumerate(taken):
        with_it = [us for other, us in times.items() if other[hole] == choice]
        if with_it and min(with_it) > _FAR * least:
            return True
    return False
