"""One program in several processes that take turns, so that luck averages out.

Where a process's pages lie in physical memory, and so how they share the caches, is drawn once in
its life. That alone makes two processes of one program differ by some percent, steadily, for as
long as they live. Rounds go round the replicas, and the interval of the median says how far they
differ.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from edgekernelbench.evaluator.contestant import Contestant, DeviceSample
from edgekernelbench.evaluator.regions import Layout
from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.task import Pool

_MAX_BYTES = 48 << 20
"""Arrays of one process above which there are no replicas: so many pages average out by
themselves, and memory would run short on small devices."""


class Replicas:
    """Looks like the `Contestant` whose turn it is; there is one until `multiply`.

    Args:
        make: a contestant, not started.
    """

    def __init__(self, make: Callable[[], Contestant]) -> None:
        self._make = make
        self._all = [make()]
        self._turn = 0

    # ------------------------------------------------------------ as a contestant
    @property
    def current(self) -> Contestant:
        return self._all[self._turn % len(self._all)]

    @property
    def first(self) -> Contestant:
        return self._all[0]

    @property
    def name(self) -> str:
        return self.first.name

    @property
    def layout(self) -> Layout:
        return self.current.layout

    @property
    def pattern(self) -> int:
        return self.current.pattern

    def outputs_region(self) -> np.ndarray:
        """See `Contestant.outputs_region`; of the replica that ran last."""
        return self.current.outputs_region()

    def run(self, samples: Sequence[Sample]) -> list[int]:
        """See `Contestant.run`."""
        return self.current.run(samples)

    @property
    def device_samples(self) -> tuple[DeviceSample, ...]:
        """See `Contestant.device_samples`; of all replicas."""
        return tuple(sample for each in self._all for sample in each.device_samples)

    # ------------------------------------------------------------ the group
    @property
    def pids(self) -> tuple[int, ...]:
        """Process numbers of those that live."""
        return tuple(each.pid for each in self._all if each.pid is not None)

    @property
    def count(self) -> int:
        return len(self._all)

    def turn(self, number: int) -> None:
        """Lets the replica of this round answer from now on."""
        self._turn = number

    def bind(self, pool: Pool, source: random.Random, timeout: float) -> None:
        """Gives every replica the inputs of ``pool``; starts those that are not there.

        Raises:
            Failure: of the first that fails.
        """
        for contestant in self._all:
            if not contestant.is_bound_to(pool):
                contestant.bind(pool, source.getrandbits(64), timeout)
        self.turn(0)

    def multiply(self, count: int, pool: Pool, source: random.Random, timeout: float) -> None:
        """Starts further replicas, up to ``count`` in all, unless the arrays are too large.

        Raises:
            Failure: of the first that fails.
        """
        if self.first.layout.size + pool.const_layout.size > _MAX_BYTES:
            return
        while len(self._all) < count:
            further = self._make()
            further.deadline = self.first.deadline
            self._all.append(further)
        self.bind(pool, source, timeout)

    def postpone(self, seconds: float) -> None:
        """Moves the time by which everything must be done, where there is one."""
        for contestant in self._all:
            if contestant.deadline is not None:
                contestant.deadline += seconds

    def close(self) -> None:
        """Ends all processes. May be called again."""
        for contestant in self._all:
            contestant.close()
