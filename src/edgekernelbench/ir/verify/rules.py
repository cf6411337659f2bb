"""The rules that verification proves: codes E300 to E399.

E30x reads in bounds, E31x divisors, E32x loops and lifetimes, E33x outputs, E34x limits, E35x
combiners, E39x warnings.
"""

from __future__ import annotations

from edgekernelbench.ir.diagnostics import Rule

OUT_OF_BOUNDS = Rule("E300", "every index is provably in range, in every iteration")
OVERFLOW = Rule("E301", "arithmetic in an index or its condition provably does not overflow")
OUTSIDE_CONDITION = Rule(
    "E302",
    "a reduction is computed outside of any `if`, `where` or `lo..hi` around it",
)
DIVISOR = Rule("E310", "the divisor of `//` and `%` is provably positive")
LIFETIME = Rule("E320", "a stage that keeps no loop index lives for one iteration of the loop")
NOT_FINISHED = Rule("E321", "a stage reads only what earlier iterations or earlier stages finished")
INNER_INDEX = Rule("E322", "a stage indexed by a loop index is indexed by those of inner loops too")
DEFINED = Rule("E323", "a stage is defined once, before it is read outside its loops")
OUTPUT = Rule("E330", "each element of an output is written exactly once")
TOO_HARD = Rule("E340", "the proofs of a kernel take a bounded number of steps")
LAWS = Rule(
    "E350",
    "a combiner gives the same in any order, and its `init` changes nothing: it is associative and "
    "commutative on the elements of the reduction, of which samples are tried",
)
UNUSED = Rule("E390", "an input is read by some stage")
