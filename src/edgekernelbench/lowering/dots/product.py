"""Sums of products of bytes, as `dot4` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Reduce, Stage, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.linear import const_value
from edgekernelbench.lowering.expr.rewrite import free_vars

WIDTH = 4
"""Products that one dot product adds up."""

BIAS = 128
"""What turns an s8 into a u8 when added, and a u8 into an s8 when taken away."""

BYTES = (DType.S8, DType.U8)


@dataclass(frozen=True, slots=True)
class Factor:
    """One side of the product: a byte of a tensor, and ``bias`` (0, 128 or -128)."""

    load: core.Load
    bias: int = 0

    @property
    def dtype(self) -> DType:
        """Of the value with the bias, which fits a byte again."""
        stored = self.load.tensor.dtype
        if not self.bias:
            return stored
        return DType.U8 if stored is DType.S8 else DType.S8

    def moves_along(self, axis: Var) -> bool:
        return any(axis in free_vars(index) for index in self.load.indices)


Factors = tuple[Factor, Factor]


def factors(reduce: Reduce) -> Factors | None:
    """The two sides of a sum of products of bytes, None for any other reduction."""
    if reduce.op != "sum" or reduce.dtype is not DType.S32 or reduce.where is not None:
        return None
    body = reduce.body
    if not isinstance(body, core.Binary) or body.op != "mul" or body.dtype is not DType.S32:
        return None
    left, right = factor(body.left), factor(body.right)
    return None if left is None or right is None else (left, right)


def factor(expr: Expr) -> Factor | None:
    """A byte, as it is or with the bias that `biased` gives it."""
    match expr:
        case core.Load(tensor=tensor) if tensor.dtype in BYTES:
            return Factor(expr)
        case core.Binary(op="add", left=core.Load(tensor=tensor) as load) if (
            tensor.dtype in BYTES and const_value(expr.right) == bias_of(tensor.dtype)
        ):
            return Factor(load, bias_of(tensor.dtype))
        case _:
            return None


def bias_of(dtype: DType) -> int:
    """What moves the range of one kind of byte onto that of the other."""
    return BIAS if dtype is DType.S8 else -BIAS


def biased(load: core.Load) -> Expr:
    """The value of a byte moved onto the range of the other kind."""
    bias = core.Const(bias_of(load.tensor.dtype), DType.S32)
    return core.Binary("add", load, bias, DType.S32)


def plain_sum(stage: Stage) -> Reduce | str:
    """A stage's sum of all its terms, or why it is none."""
    reduce, name = stage.expr, stage.name
    if not isinstance(reduce, Reduce) or reduce.op != "sum":
        return f"`{name}` is no sum"
    return reduce if reduce.where is None else f"`{name}` sums under a condition"


def refusal(stage: Stage) -> str | None:
    """Why a stage is no sum of products of bytes, None when it is one."""
    reduce, name = plain_sum(stage), stage.name
    if isinstance(reduce, str):
        return reduce
    if factors(reduce) is not None:
        return None
    if reduce.dtype is not DType.S32:
        return f"`{name}` sums in {reduce.dtype.value}"
    wide = _wide(reduce.body)
    if wide is not None:
        return f"`{name}` multiplies `{wide.name}`, stored as {wide.dtype.value}"
    return f"what `{name}` sums is no product of two bytes read from tensors"


def _wide(body: Expr) -> core.Tensor | None:
    """A factor of a product that is read from a tensor, but no byte."""
    sides = (body.left, body.right) if isinstance(body, core.Binary) and body.op == "mul" else ()
    read = (side.tensor for side in sides if isinstance(side, core.Load))
    return next((tensor for tensor in read if tensor.dtype not in BYTES), None)


def sides(found: Factors, lane: Var) -> tuple[Factor, Factor | None]:
    """The factor that moves along the lanes, and the one that stands still (None: both move).

    Where neither moves, the first counts as moving.
    """
    left, right = found
    if left.moves_along(lane) and right.moves_along(lane):
        return left, None
    return (left, right) if left.moves_along(lane) else (right, left)


def tensors(found: Factors) -> Mapping[str, core.Tensor]:
    return {f.load.tensor.name: f.load.tensor for f in found}
