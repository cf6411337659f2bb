"""Start value and update of a block, recognised as a reduction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from edgekernelbench.compilers.tvm.lift.arithmetic import literal
from edgekernelbench.compilers.tvm.lift.expressions import Expressions
from edgekernelbench.compilers.tvm.lift.refusal import Refused, unsayable
from edgekernelbench.compilers.tvm.lift.sources import dtype_of
from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr
from edgekernelbench.ir.dtypes import DType

TNode = Any  # tvm's classes share no useful static type
Axes = Mapping[TNode, tuple[core.Var, int]]

_OPERATIONS: dict[str, core.ReduceOp] = {
    "Add": "sum", "Mul": "prod", "Max": "max", "Min": "min", "And": "all", "Or": "any",
}  # fmt: skip
_COMBINE: dict[str, core.ArithOp] = {
    "sum": "add", "prod": "mul", "max": "max", "min": "min", "all": "and", "any": "or",
}  # fmt: skip


def plain_reduction(init: TNode, store: TNode, axes: Axes, expressions: Expressions) -> Expr:
    """``buffer = start; buffer = buffer op body`` as one expression.

    Raises:
        Refused: the update is of another form.
    """
    update = store.value
    op = _OPERATIONS.get(type(update).__name__)
    if op is None:
        raise Refused(f"a reduction with {type(update).__name__}")
    body = _other_operand(update, store)
    value = expressions.convert(body)
    dtype = dtype_of(str(store.buffer.dtype))
    if dtype is DType.BOOL:
        value = expressions.arithmetic.truth(value)
    elif dtype is DType.S64:
        value = expressions.arithmetic.to(value, DType.S64)
    reduce = core.Reduce(op, _axes(axes), None, value, value.dtype)
    return _started(reduce, _start_value(init), expressions)


def _other_operand(update: TNode, store: TNode) -> TNode:
    """The operand of an update that is not the buffer's own element."""
    if _is_element(update.a, store):
        rest = update.b
    elif _is_element(update.b, store):
        rest = update.a
    else:
        raise Refused("an update that does not combine with the element")
    return rest


def _is_element(expr: TNode, store: TNode) -> bool:
    return (
        type(expr).__name__ in ("BufferLoad", "TensorLoad")
        and expr.source.same_as(store.buffer)
        and len(expr.indices) == len(store.indices)
        and all(_same(a, b) for a, b in zip(expr.indices, store.indices, strict=True))
    )


def _same(a: TNode, b: TNode) -> bool:
    if type(a).__name__ == "IntImm" and type(b).__name__ == "IntImm":
        return int(a.value) == int(b.value)
    return a.same_as(b)


def _axes(axes: Axes) -> tuple[core.ReduceAxis, ...]:
    zero = literal(0, DType.S32)
    return tuple(
        core.ReduceAxis(var, zero, literal(extent, DType.S32), extent)
        for var, extent in axes.values()
    )


def _start_value(init: TNode) -> float:
    value = init.value if type(init).__name__ == "BufferStore" else None
    if type(value).__name__ not in ("IntImm", "FloatImm"):
        raise Refused("a reduction whose start value is not a constant")
    return value.value  # type: ignore[union-attr]


def _started(reduce: core.Reduce, start: float, expressions: Expressions) -> Expr:
    """The reduction from ``start``. The lowest finite number counts as the lowest one."""
    dtype = reduce.dtype
    if _is_identity(reduce.op, start, dtype):
        return reduce
    first = expressions.arithmetic.to(literal(start, dtype), dtype)
    return core.Binary(_COMBINE[reduce.op], first, reduce, dtype)


def _is_identity(op: core.ReduceOp, start: float, dtype: DType) -> bool:
    if start == core.identity(op, dtype):
        return True
    if op not in ("max", "min"):
        return False
    if not dtype.is_float:
        return False
    # A start value of f16 is the lowest of f16 though the values are computed in f32.
    limits = {float(np.finfo(t).max) for t in (np.float16, np.float32, np.float64)}
    limits |= {float("inf")}
    return (-start if op == "max" else start) in limits


def sums_in_f16(module: TNode) -> bool:
    """Whether some loop function of a lowered model adds up in f16: too coarse to be of use.

    The lift computes such sums in f32.

    Raises:
        Refused: a function is of no form that the lift knows.
    """
    from edgekernelbench.compilers.tvm.lift.blocks import blocks

    functions = [f for v, f in module.functions.items() if str(v.name_hint) != "main"]
    return any(
        type(block.init).__name__ == "BufferStore"
        and str(block.init.buffer.dtype) == "float16"
        and type(getattr(block.body, "value", None)).__name__ == "Add"
        for function in functions
        for block in blocks(function.body)
    )


def argument_reduction(
    block: TNode, axes: Axes, expressions: Expressions
) -> list[tuple[TNode, Expr]]:
    """TOPI's argmax and argmin: a position and a value are carried along, ties to the lowest.

    Returns:
        the stores of position and value, each with its expression.

    Raises:
        Refused: the block is of another form.
    """
    odd = Refused("several values carried through a reduction")
    lets, stores = statements(block.body)
    starts = statements(block.init)[1] if block.init is not None else []
    if len(stores) != 2 or len(starts) != 2 or not axes:
        raise odd
    values = {let.var: let.value for let in lets}
    position, extreme = stores
    updates = [values.get(store.value, store.value) for store in stores]
    if any(type(update).__name__ != "Select" for update in updates):
        raise odd
    keep, value = updates
    if not _is_element(keep.true_value, position) or not _is_element(value.true_value, extreme):
        raise odd
    op = _extreme(value.condition, extreme, value.false_value)
    if op is None or not _ties_to_lowest(keep, position, extreme, value.false_value, op):
        raise odd
    if not _is_position(expressions.convert(keep.false_value), axes):
        raise odd
    _check_starts(starts, op)
    body = expressions.convert(value.false_value)
    where = core.Reduce("argmax" if op == "max" else "argmin", _axes(axes), None, body, DType.S32)
    best = core.Reduce(op, _axes(axes), None, body, body.dtype)
    return [(position, where), (extreme, best)]


def statements(body: TNode) -> tuple[list[TNode], list[TNode]]:
    """Lets and stores of a block's body.

    Raises:
        Refused: there is anything else.
    """
    parts = tuple(body.seq) if type(body).__name__ == "SeqStmt" else (body,)
    for part in parts:
        if type(part).__name__ not in ("Bind", "BufferStore"):
            raise unsayable(type(part).__name__)
    lets = [part for part in parts if type(part).__name__ == "Bind"]
    return lets, [part for part in parts if type(part).__name__ == "BufferStore"]


def _extreme(condition: TNode, store: TNode, other: TNode) -> core.ReduceOp | None:
    """The operation of ``old > new ? old : new`` or its mirror image."""
    kind = type(condition).__name__
    if kind not in ("GT", "GE", "LT", "LE"):
        return None
    if not _is_element(condition.a, store) or not _equal(condition.b, other):
        return None
    return "max" if kind in ("GT", "GE") else "min"


def _ties_to_lowest(
    keep: TNode, position: TNode, extreme: TNode, other: TNode, op: core.ReduceOp
) -> bool:
    """Whether the old position stays if ``old > new or old == new and position < new one``."""
    condition = keep.condition
    if type(condition).__name__ != "Or" or _extreme(condition.a, extreme, other) != op:
        return False
    tie = condition.b
    if type(tie).__name__ != "And" or type(tie.a).__name__ != "EQ":
        return False
    same = _is_element(tie.a.a, extreme) and _equal(tie.a.b, other)
    earlier = type(tie.b).__name__ == "LT" and _is_element(tie.b.a, position)
    return same and earlier and _equal(tie.b.b, keep.false_value)


def _equal(a: TNode, b: TNode) -> bool:
    import tvm_ffi

    return bool(tvm_ffi.structural_equal(a, b))


def _is_position(value: Expr, axes: Axes) -> bool:
    """Whether a value is the row-major position within the reduction axes."""
    from edgekernelbench.lowering.expr.linear import Linear, is_index, is_pure, linear

    if not (is_index(value) and is_pure(value)):
        return False
    wanted, stride = Linear(), 1
    for var, extent in reversed(list(axes.values())):
        wanted = wanted.plus(Linear({core.VarRef(var): 1}).times(stride))
        stride *= extent
    return linear(value) == wanted


def _check_starts(starts: list[TNode], op: core.ReduceOp) -> None:
    first, lowest = (_start_value(start) for start in starts)
    floats = type(starts[1].value).__name__ == "FloatImm"
    dtype = dtype_of(str(starts[1].buffer.dtype))
    fits = _is_identity(op, lowest, dtype if not floats else DType.F32)
    if first != -1 or not fits:
        raise Refused("an unusual start of argmax or argmin")
