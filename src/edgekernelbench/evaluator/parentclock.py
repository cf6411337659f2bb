"""A second opinion on a contestant's speed, by a clock it cannot reach.

The child's clock lies in the same process as the candidate's code. The parent times two requests
that differ only in the number of calls; the difference has no share of copying or messages.
"""

from __future__ import annotations

import math
import time

from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.timing import Runs

_WORTH_SECONDS = 600e-6
_SLOW_US = 100_000.0
_MAX_CALLS = 2_000
_TRIES = 4
_MORE_TRIES = 60


def parent_us(runs: Runs, median_us: float, ratio: float) -> float | None:
    """Microseconds of one call by the parent's clock, from the least of some tries: other work
    on the machine only adds to it.

    Args:
        runs: the contestant.
        median_us: what its own clock says.
        ratio: how many times as long is suspicious; then many more tries are made, so that a
            busy machine does not raise suspicion, which a forged clock does every time.

    Returns:
        None for calls that by the child's clock take long: nobody forges those.
    """
    if median_us > _SLOW_US:
        return None
    few = many = per_call = float("inf")
    began = _seconds(runs, 1)
    # As much again as the rest of a request takes, so that its noise stays below the calls' time.
    worth = max(_WORTH_SECONDS, began)
    calls = min(_MAX_CALLS, math.ceil(worth * 1e6 / median_us))
    tries = _TRIES if worth < 0.005 else 1
    for attempt in range(tries + _MORE_TRIES):
        few = min(few, _seconds(runs, 1))
        many = min(many, _seconds(runs, calls + 1))
        per_call = max(0.0, many - few) * 1e6 / calls
        if attempt + 1 >= tries:
            if per_call <= ratio * median_us:
                break
            time.sleep(0.002)
    return per_call


def _seconds(runs: Runs, calls: int) -> float:
    began = time.perf_counter()
    runs.run([Sample(set=0, poison=0, lead=0, calls=calls)])
    return time.perf_counter() - began
