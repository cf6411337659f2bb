"""How a budget of evaluations is divided among the parts of a model."""

from __future__ import annotations

import math
from collections.abc import Mapping

LEAST = 0.01
"""Share of the present time of all parts from which a part has evaluations reserved."""
FLOOR = 4
"""Evaluations that are reserved: what a search opens with."""


def shares_of(times: Mapping[str, float]) -> dict[str, float]:
    """Of the sum of ``times``, the largest first."""
    total = sum(times.values())
    return {name: time / total for name, time in sorted(times.items(), key=lambda item: -item[1])}


def next_grant(
    left: int, waiting: Mapping[str, float], done: float = 0.0
) -> tuple[str, int] | None:
    """Who is worked on next, and how many evaluations it gets: the part that takes most time, and
    `FLOOR`; on top of that its share among those that wait of what is left once every part of at
    least `LEAST` has as many. None when there is nothing left to give, or nobody to give it to.

    Shares are of the square roots of times: the tenth evaluation of a part is worth less than its
    first. They are taken anew before each part, since one that is made thirty times as fast leaves
    the others with a larger share of the time.

    Args:
        left: evaluations.
        waiting: the time of each part that was not worked on, times how often the model has it.
        done: the time that the others take now.
    """
    if left <= 0 or not waiting:
        return None
    whole = sum(waiting.values())
    name = max(waiting, key=lambda part: waiting[part])
    reserved = sum(time >= LEAST * (whole + done) for time in waiting.values())
    spare = max(0, left - FLOOR * max(1, reserved))
    share = math.sqrt(waiting[name]) / sum(math.sqrt(time) for time in waiting.values())
    return name, min(left, FLOOR + round(spare * share))
