"""Whether a program is fast only on inputs that it has met before.

A pool has few input sets, and each comes back many times while a program is measured. One that
kept its results would return them faster than it could compute any. So at the end it is given sets
that it has never seen, in turn with a known one.
"""

from __future__ import annotations

import random
import secrets
import statistics
from collections.abc import Sequence
from typing import Protocol

from edgekernelbench.evaluator.regions import Sealed
from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.task import EvalTask, Pool

_RATIO = 3.0
_LEAST_NS = 20_000
"""What the difference must exceed. Branches of a small sort, for instance, are predicted better
the second time."""

_PAIRS = 2
"""Calls of each kind that are enough where they show nothing."""

_MORE_PAIRS = 16
"""Before it accuses: other work delays a call now and then, but not all of them."""

_KNOWN, _NEW, _UNCOUNTED = 0, 1, 2


class Watched(Protocol):
    """A `Contestant`."""

    def run(self, samples: Sequence[Sample]) -> list[int]: ...
    def swap(self, number: int, region: Sealed) -> None: ...


def recalls(runs: Watched, task: EvalTask, pool: Pool) -> str:
    """What shows that results were kept; empty if nothing does. Its inputs are changed for good.

    Raises:
        Failure: of the program.
    """
    known: list[int] = []
    new: list[int] = []
    for pair in range(_MORE_PAIRS):
        _pair(runs, task, pool, known, new)
        if pair + 1 >= _PAIRS and min(new) <= _RATIO * _usual(known) + _LEAST_NS:
            return ""
    return (
        f"a call on inputs never seen takes {min(new) / 1e3:.3g} us, on known ones "
        f"{_usual(known) / 1e3:.3g} us: results were kept"
    )


def _usual(times: Sequence[int]) -> int:
    return statistics.median_low(times)


def _pair(runs: Watched, task: EvalTask, pool: Pool, known: list[int], new: list[int]) -> None:
    """Adds one call's time of either kind, in random order.

    Either comes from memory that the program has never mapped, so that copying it takes as long,
    and finds worker threads as much asleep. A call that is not counted comes before: drawing
    inputs, and other work meanwhile, have emptied caches.
    """
    drawn = task.inputs(secrets.randbits(62), pool.const_seed)
    _swap(runs, _KNOWN, Sealed.of_arrays(pool.layout, pool.sets[_KNOWN].inputs))
    _swap(runs, _NEW, Sealed.of_arrays(pool.layout, drawn))
    for number, times in random.sample([(_KNOWN, known), (_NEW, new)], 2):
        for which in (_UNCOUNTED, number):
            [took] = runs.run([Sample(set=which, poison=secrets.randbits(62), lead=0, calls=1)])
        times.append(took)


def _swap(runs: Watched, number: int, region: Sealed) -> None:
    try:
        runs.swap(number, region)
    finally:
        region.close()
