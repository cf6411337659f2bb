"""Integer analysis of core expressions: intervals, and proofs from facts.

Sound under overflow: signed arithmetic that may overflow makes a value *unsafe*, and nothing is
proved about it, clamped or not.

- `Interval`, `Ranges`: the interval of an expression from the ranges of variables and tensors.
"""

from edgekernelbench.ir.bounds.interval import Interval
from edgekernelbench.ir.bounds.ranges import Ranges

__all__ = ["Interval", "Ranges"]
