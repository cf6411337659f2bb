"""Core nodes with explicit casts, folded where they are constant.

All of these take well-typed operands; `coerce` finds the types and reports what does not fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.elaborate.context import Context

CHEAP_NODES = 12
S32_HIGH = 2**31 - 1


def const(value: int | float | bool, dtype: DType, span: Span) -> core.Const:
    if dtype is DType.BOOL:
        return core.Const(bool(value), dtype, span)
    return core.Const(float(value) if dtype.is_float else int(value), dtype, span)


def cast(cx: Context, expr: core.Expr, dtype: DType, span: Span) -> core.Expr:
    """``expr`` in ``dtype``; casts of constants, and of choices among constants, are folded."""
    if expr.dtype is dtype:
        return expr
    match expr:
        case core.Const() if _is_exact(expr):
            return const(convert(expr.value, dtype), dtype, span)
        case core.Select() if is_choice(expr):
            then, other = cast(cx, expr.then, dtype, span), cast(cx, expr.other, dtype, span)
            cx.count(span)
            return core.Select(expr.cond, then, other, dtype, expr.border, expr.span)
    cx.count(span)
    return core.Cast(expr, dtype, span)


def _is_exact(expr: core.Const) -> bool:
    """A constant that its own dtype represents: a cast to another may be computed here."""
    if not expr.dtype.is_float:
        return True
    with np.errstate(over="ignore"):
        return float(expr.dtype.numpy.type(expr.value)) == expr.value


def convert(value: int | float | bool, dtype: DType) -> int | float | bool:
    """A constant as `core.Cast` converts it."""
    if dtype is DType.BOOL:
        return value != 0
    if dtype.is_float:
        return float(value)
    low, high = dtype.int_range
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        return low if value <= low else high if value >= high else math.trunc(value)
    return wrap(int(value), dtype)


def wrap(value: int, dtype: DType) -> int:
    low, _ = dtype.int_range
    return (value - low) % (1 << dtype.bits) + low


def is_choice(expr: core.Expr) -> bool:
    """A constant, or a select among constants, such as ``1 if c else 0``."""
    while isinstance(expr, core.Select):
        if not isinstance(expr.then, core.Const):
            return is_choice(expr.then) and is_choice(expr.other)
        expr = expr.other
    return isinstance(expr, core.Const)


def choices(expr: core.Expr) -> Iterable[int | float | bool]:
    if isinstance(expr, core.Select):
        yield from choices(expr.then)
        yield from choices(expr.other)
    elif isinstance(expr, core.Const):
        yield expr.value


def binary(
    cx: Context, op: str, left: core.Expr, right: core.Expr, dtype: DType, span: Span
) -> core.Expr:
    """An operator node. Integer constants and neutral elements are folded.

    Inside `nofma` no float product is left bare, nor anything that an addition takes for one.
    """
    if dtype.is_int and op not in core.COMPARE_OPS:
        folded = _fold_int(op, left, right, dtype, span)
        if folded is not None:
            return folded
    keep_apart = cx.unfused > 0 and dtype.is_float
    if keep_apart and op in ("add", "sub"):
        left, right = apart(cx, left), apart(cx, right)
    cx.count(span)
    made = core.Binary(op, left, right, dtype, span)  # type: ignore[arg-type]
    return apart(cx, made) if keep_apart else made


def apart(cx: Context, expr: core.Expr) -> core.Expr:
    """The same value, which no addition that uses it fuses with: see ``nofma`` in `core`.

    Names and reads count as products, for what they stand for may be one.
    """
    match expr:
        case core.Binary(op=op):
            harmless = op != "mul"
        case core.Cast(arg=arg):
            harmless = not arg.dtype.is_float
        case _:
            harmless = isinstance(expr, core.Const | core.Call)
    if harmless:
        return expr
    cx.count(expr.span)
    return core.Call("nofma", (expr,), expr.dtype, expr.span)


def _value(expr: core.Expr) -> int | None:
    return int(expr.value) if isinstance(expr, core.Const) and expr.dtype.is_int else None


def _fold_int(
    op: str, left: core.Expr, right: core.Expr, dtype: DType, span: Span
) -> core.Expr | None:
    a, b = _value(left), _value(right)
    if a is not None and b is not None:
        result = fold_int(op, a, b)
        low, high = dtype.int_range
        if result is None or (dtype.is_signed and not low <= result <= high):
            return None
        return const(wrap(result, dtype), dtype, span)
    if (op in ("add", "sub", "shl", "shr") and b == 0) or (op in ("mul", "fdiv") and b == 1):
        return left
    if (op == "add" and a == 0) or (op == "mul" and a == 1):
        return right
    return None


def fold_int(op: str, a: int, b: int) -> int | None:
    """An integer operator on plain numbers; None where it has no value (or a huge one)."""
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "fdiv":
            return a // b if b else None
        case "mod":
            return a % b if b else None
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case "shl":
            return a << b if 0 <= b < 64 else None
        case "shr":
            return a >> b if 0 <= b < 64 else None
        case "bitand":
            return a & b
        case "bitor":
            return a | b
        case "bitxor":
            return a ^ b
    return None


def int_const(value: int, span: Span) -> core.Const:
    return core.Const(value, DType.S32, span)


def both(cx: Context, left: core.Expr, right: core.Expr, span: Span) -> core.Expr:
    """Conjunction of two bools."""
    cx.count(span)
    return core.Binary("and", left, right, DType.BOOL, span)


def conjunction(cx: Context, terms: list[core.Expr], span: Span) -> core.Expr:
    out = terms[0]
    for term in terms[1:]:
        out = both(cx, out, term, span)
    return out


def is_plain_read(value: object) -> bool:
    """A read at indices that are cheap."""
    return isinstance(value, core.Load) and all(is_cheap(i) for i in value.indices)


def has_binders(expr: core.Expr) -> bool:
    """True for an expression with variables of its own, which may not stand in two places."""
    return any(isinstance(node, core.Reduce | core.Block) for node in core.walk(expr))


def is_cheap(expr: core.Expr, limit: int = CHEAP_NODES) -> bool:
    """A constant, a variable, or a little integer arithmetic on them: may be written twice."""
    if isinstance(expr, core.Const | core.VarRef):
        return True
    if not expr.dtype.is_int:
        return False
    for count, node in enumerate(core.walk(expr), 1):
        if count > limit or not isinstance(
            node, core.Const | core.VarRef | core.Binary | core.Unary
        ):
            return False
    return True
