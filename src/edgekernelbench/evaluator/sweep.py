"""Emptying what caches other cores have to themselves.

A process that writes much memory empties the caches of its own core and those that all cores share;
the private ones of other cores keep what helper threads last read. Caches know no processes, so the
parent can go there and write.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

PRIVATE_BYTES = 8 << 20
"""More than any cache that a core has to itself."""


class Sweep:
    """Empties private caches when called.

    Args:
        cores: one processor of each core.
    """

    def __init__(self, cores: Sequence[int]) -> None:
        self._cores = tuple(cores)
        self._other = np.zeros(PRIVATE_BYTES, np.uint8)

    def __call__(self) -> None:
        where = os.sched_getaffinity(0)
        try:
            for core in self._cores:
                os.sched_setaffinity(0, (core,))
                self._other += 1
        finally:
            os.sched_setaffinity(0, where)
