"""The rules of the compute layer that elaboration checks: codes E200 to E299.

E20x names, E21x numbers and sizes, E22x tensors and stages, E23x types, E24x functions,
E25x reductions and loops, E26x templates, E29x limits.
"""

from __future__ import annotations

from edgekernelbench.ir.diagnostics import Rule

# ---- names
UNKNOWN_NAME = Rule("E200", "a name is a size, an axis, an input, an earlier stage, or a parameter")
DEFINED_TWICE = Rule("E201", "a name is defined once")
NOT_YET = Rule("E202", "a stage reads inputs and earlier stages; later ones only inside a loop")
AXIS_REUSED = Rule("E203", "an axis needs a name that no axis or loop index around it has")
WRONG_KIND = Rule("E204", "tensors are indexed; numbers, axes and scalar stages are not")

# ---- numbers and sizes
NOT_CONSTANT = Rule("E210", "sizes, extents and stage-level `let`s are numbers at compile time")
EXTENT = Rule("E211", "an extent is a positive whole number")
OVERRIDE = Rule("E212", "only sizes given as a number in the header may be replaced")
ARITHMETIC = Rule("E213", "arithmetic at compile time must have a finite value of at most 64 bits")
LITERAL = Rule("E214", "a literal must fit the dtype it is used in")
TABLE = Rule("E215", "a table's list has the declared shape and holds numbers")
LET_STAGE = Rule(
    "E216", "`let` at stage level is a number; what is computed from tensors is a stage"
)

# ---- tensors and stages
RANK = Rule("E220", "a tensor is read with one index for each dimension")
INDEX_TYPE = Rule("E221", "an index is an integer")
MISSING_EXTENT = Rule("E222", "a new stage states the extent of each axis: `acc[i: M, j: N] = ...`")
OUTPUT_SHAPE = Rule("E223", "an output is defined with its declared shape")
STORE = Rule("E224", "storing into a smaller or integer dtype needs a cast")
PAD = Rule("E225", "`pad(x[i - 1], v)` and `edge(x[i - 1])` guard one read of a tensor")
TOO_LARGE = Rule("E226", "a tensor has at most 2^31 - 1 elements, all tensors together 4 GiB")
LEFT_SIDE = Rule("E227", "a left side names each axis once: its own ones and bare loop indices")

OUTPUT_MISSING = Rule("E228", "each output is defined by one stage")

# ---- types
OPERANDS = Rule("E230", "operators take operands of matching types")
CONDITION = Rule("E231", "a condition is a bool or an integer")
SIGNEDNESS = Rule("E232", "u32 and s32 do not mix without a cast")
TUPLE = Rule(
    "E233", "tuples are taken apart at once: `let (a, b) = ...`, or `a[i: M], b[i: M] = ...`"
)
NOT_SCALAR = Rule("E234", "an expression computes one element; a tensor in it is indexed")

# ---- functions
UNKNOWN_FUNCTION = Rule(
    "E240", "a function is an intrinsic, a predefined macro, or a `def` in view"
)
ARGUMENTS = Rule("E241", "a function takes a fixed number of arguments")
RECURSION = Rule("E242", "macros and templates do not call themselves")

# ---- reductions and loops
REDUCTION = Rule(
    "E250", "a reduction is sum prod max min any all argmax argmin or a combiner: `op[k: K](body)`"
)
COMBINER = Rule(
    "E253",
    "a combiner makes one tuple of two: `combiner f((a, b), (c, d)) init (0, 0) = (a + c, b + d)`; "
    "it sees its parameters and numbers only",
)
BOUNDS = Rule("E251", "bounds of `lo..hi` are integers with a known largest value")
LOOP_BOUNDS = Rule("E252", "a loop runs over compile-time numbers, at least once")

# ---- templates
TEMPLATE = Rule(
    "E260",
    "a template is bound whole: `a = f(x, w)`; its arguments are tensors, slices and numbers",
)
RESULTS = Rule("E261", "a template defines each of its results once and is bound to as many names")

# ---- limits
LIMIT = Rule("E290", "a kernel stays within fixed limits when macros and templates are expanded")
DTYPE_CYCLE = Rule("E291", "the dtype of a history follows from its definition, or is declared")
