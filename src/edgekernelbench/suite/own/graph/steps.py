"""Whether rounding inside of a model makes its results jump.

A float that is rounded to an integer on its way is sometimes so near to a tie that honest float32
arithmetic comes to the other side; the result is then off by what one step is worth, which no
tolerance of a smooth graph allows. How rare that is does not matter: a kernel meets many inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgekernelbench.suite.check.inputs import rounded
from edgekernelbench.suite.model import Arrays, Workload

if TYPE_CHECKING:
    from edgekernelbench.suite.own.verify import Sample

_MOVED = 2.0**-15
"""Relative; some hundred times float32's roundoff, so that what is rare there shows here, and a
small part of what a graph is allowed."""
_DRAWS = 3


def jumps(workload: Workload, drawn: Sample) -> bool:
    """Whether floats that are hardly other ones lead out of the tolerance of ``workload``."""
    for seed in range(_DRAWS):
        moved = _moved(drawn.inputs, np.random.default_rng(seed))
        with np.errstate(all="ignore"):
            truth = workload.truth(moved, cache=False)
        if not workload.compare(rounded(workload, truth), drawn.truth).passed:
            return True
    return False


def _moved(inputs: Arrays, rng: np.random.Generator) -> Arrays:
    return {
        name: (values * (1 + _MOVED * rng.choice((-1.0, 1.0), values.shape))).astype(values.dtype)
        if values.dtype.kind == "f"
        else values
        for name, values in inputs.items()
    }
