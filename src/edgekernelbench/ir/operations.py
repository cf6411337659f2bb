"""The operations of the core program, by name. `core` hands them on with what they stand in."""

from __future__ import annotations

from typing import Literal

from edgekernelbench.ir.dtypes import DType

UnaryOp = Literal["neg", "not", "inv"]
ArithOp = Literal[
    "add", "sub", "mul", "div", "fdiv", "mod", "pow", "min", "max",
    "shl", "shr", "bitand", "bitor", "bitxor", "and", "or",
]  # fmt: skip
CompareOp = Literal["eq", "ne", "lt", "le", "gt", "ge"]
COMPARE_OPS: frozenset[str] = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
BOOL_OPS: frozenset[str] = frozenset(("and", "or"))

# Number of arguments. All but abs, sign and popcount take floats only. The fast ones are the exact
# functions up to an error that back ends state; fma rounds once; nofma is its argument, which no
# back end may compute together with the operation that uses it.
INTRINSICS: dict[str, int] = {
    "abs": 1, "sign": 1, "floor": 1, "ceil": 1, "trunc": 1, "rne": 1, "sqrt": 1, "rsqrt": 1,
    "exp": 1, "exp2": 1, "log": 1, "log2": 1, "sin": 1, "cos": 1, "tan": 1, "tanh": 1, "erf": 1,
    "atan": 1, "atan2": 2, "popcount": 1, "fma": 3, "nofma": 1,
    "fast_exp": 1, "fast_tanh": 1, "fast_erf": 1,
}  # fmt: skip

ReduceOp = Literal["sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "combine"]
REDUCE_OPS: tuple[ReduceOp, ...] = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")


def identity(op: ReduceOp, dtype: DType) -> int | float | bool:
    """The value of an empty reduction, for the dtype of the body (argmax: see `core.Reduce`; not
    for ``combine``, which has `core.Combiner.init`)."""
    if op in ("any", "all"):
        return op == "all"
    if op in ("sum", "prod"):
        value = 0 if op == "sum" else 1
        return float(value) if dtype.is_float else value
    if op in ("argmax", "argmin"):
        return -1
    if dtype.is_float:
        return float("-inf") if op == "max" else float("inf")
    low, high = dtype.int_range
    return low if op == "max" else high
