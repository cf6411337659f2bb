"""A second opinion on a contestant's clock, by one that it cannot reach.

The child's clock lies in the same process as the candidate's code. The parent times requests that
differ only in the number of calls; the difference has no share of copying or messages, and is
compared with what the child says of the very same requests, so that a busy machine raises no
suspicion. To the child they look like those that find out how long a sample must be.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.timing import Runs

CLOCK_RATIO = 3.0
"""How many times the child's time the parent's may be."""

_WORTH_SECONDS = 600e-6
_SLOW_US = 100_000.0
_MAX_CALLS = 2_000
_TRIES = 4
_MORE_TRIES = 20


@dataclass(frozen=True, slots=True)
class Clocks:
    """Microseconds of one call by either clock, from the least of some tries: other work on the
    machine only adds to it. ``around_us`` is what the parent may see beside the call itself."""

    parent_us: float
    child_us: float
    around_us: float = 0.0

    @property
    def disagree(self) -> bool:
        return self.parent_us > CLOCK_RATIO * self.child_us + self.around_us


def compare_clocks(runs: Runs, median_us: float, around_us: float = 0.0) -> Clocks | None:
    """What both clocks say of a contestant.

    Args:
        runs: the contestant.
        median_us: what its own clock said while it was measured.
        around_us: what a call may cost beside that: a device's clock says nothing of launches.

    Returns:
        None for calls that by the child's clock take long: nobody forges those.
    """
    if median_us > _SLOW_US:
        return None
    rest, _ = _request(runs, 1)
    # As much again as the rest of a request takes, so that its noise stays below the calls' time.
    worth = max(_WORTH_SECONDS, rest)
    calls = min(_MAX_CALLS, math.ceil(worth * 1e6 / median_us))
    tries = _TRIES if worth < 0.005 else 1
    few = many = (math.inf, math.inf)
    clocks = Clocks(0.0, 0.0)
    for attempt in range(tries + _MORE_TRIES):
        few = _least(few, _request(runs, 1))
        many = _least(many, _request(runs, calls + 1))
        parent, child = (max(0.0, m - f) * 1e6 / calls for m, f in zip(many, few, strict=True))
        clocks = Clocks(parent, max(child, median_us), around_us)
        if attempt + 1 >= tries and not clocks.disagree:
            break
    return clocks


def _least(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return min(a[0], b[0]), min(a[1], b[1])


def _request(runs: Runs, calls: int) -> tuple[float, float]:
    """Seconds by the parent's clock and by the child's."""
    began = time.perf_counter()
    [ns] = runs.run([Sample(set=0, poison=0, lead=1, calls=calls)])
    return time.perf_counter() - began, ns / 1e9
