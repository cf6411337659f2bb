"""A second opinion on a contestant's speed, by a clock it cannot reach.

The child's clock lies in the same process as the candidate's code. The parent times two requests
that differ only in the number of calls; the difference has no share of copying or messages.
"""

from __future__ import annotations

import time

from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.timing import Runs

_WORTH_US = 3_000.0
_SLOW_US = 100_000.0
_TRIES = 2


def parent_us(runs: Runs, median_us: float) -> float | None:
    """Microseconds of one call by the parent's clock, the least of some tries: noise only adds.

    None for calls that by the child's clock take long: nobody forges those.
    """
    if median_us > _SLOW_US:
        return None
    calls = max(1, int(_WORTH_US / median_us))
    return min(_once(runs, calls) for _ in range(_TRIES))


def _once(runs: Runs, calls: int) -> float:
    few, many = (Sample(set=0, poison=0, lead=0, calls=n) for n in (1, calls + 1))
    began = time.perf_counter()
    runs.run([few])
    between = time.perf_counter()
    runs.run([many])
    ended = time.perf_counter()
    return max(0.0, (ended - between) - (between - began)) * 1e6 / calls
