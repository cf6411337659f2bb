"""Index arithmetic that cannot overflow.

Values read from tensors may be anything, so ``x0 + 1`` may overflow s32, and a compiler may draw
conclusions from assuming that it does not: a clamp around it proves nothing. Here such indices
are rewritten so that the clamp comes first, ``min(x0 + 1, 7)`` as ``min(x0, 6) + 1``, or, where
that is not enough, computed in s64. Values change only where s32 overflow left them undefined.
"""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import Interval
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.elaborate import build
from edgekernelbench.ir.elaborate.context import Context

_NARROW = 1 << 30
_STEPS = 200


def clamped(cx: Context, index: core.Expr, lo: int, hi: int, span: Span) -> core.Expr:
    """``index`` clamped to lo..hi, without a test that is always true."""
    known = _known(cx, index)
    if known.within(lo, hi):
        return index
    dtype = index.dtype
    if not known.safe or known.lo < lo:
        index = build.binary(cx, "max", index, build.const(lo, dtype, span), dtype, span)
    if not known.safe or known.hi > hi:
        index = build.binary(cx, "min", index, build.const(hi, dtype, span), dtype, span)
    if known.safe:
        return index if dtype is DType.S32 else build.cast(cx, index, DType.S32, span)
    narrow = plain(cx, index)
    if cx.is_safe(narrow):
        return narrow
    wide = promoted(cx, expanded(cx, index))
    return build.cast(cx, wide, DType.S32, span) if cx.ranges.of(wide).safe else index


def _known(cx: Context, index: core.Expr) -> Interval:
    """The range of an index; safe also where conditions around it make it so."""
    known = cx.ranges.of(index)
    if not known.safe and cx.prover.safe(index, cx.facts):
        return Interval(known.lo, known.hi)
    return known


def tests(
    cx: Context, index: core.Expr, lo: int, hi: int, span: Span
) -> tuple[core.Expr, list[core.Expr]]:
    """The comparisons that say ``lo <= index <= hi``, without those always true, and the index
    to use under them."""
    known = _known(cx, index)
    if known.within(lo, hi):
        return index, []
    if known.safe:
        return index, _compare(cx, index, known.lo < lo, known.hi > hi, lo, hi, span)
    index = expanded(cx, index)
    found = split(cx, index)
    if found is not None:
        sign, wide, rest = found
        return index, _compare_wide(cx, sign, wide, rest, lo, hi, span)
    wide = promoted(cx, index)
    return build.cast(cx, wide, DType.S32, span), _compare(cx, wide, True, True, lo, hi, span)


def _compare(
    cx: Context, index: core.Expr, low: bool, high: bool, lo: int, hi: int, span: Span
) -> list[core.Expr]:
    out = []
    if low:
        bound = build.const(lo, index.dtype, span)
        out.append(build.binary(cx, "ge", index, bound, DType.BOOL, span))
    if high:
        bound = build.const(hi + 1, index.dtype, span)
        out.append(build.binary(cx, "lt", index, bound, DType.BOOL, span))
    return out


def _compare_wide(
    cx: Context, sign: int, wide: core.Expr, rest: core.Expr, lo: int, hi: int, span: Span
) -> list[core.Expr]:
    """Range tests of ``rest + sign * wide`` that compare ``wide`` alone."""
    low, high = (build.int_const(v, span) for v in (lo, hi))
    if sign > 0:
        first = build.binary(cx, "sub", low, rest, DType.S32, span)
        last = build.binary(cx, "sub", high, rest, DType.S32, span)
    else:
        first = build.binary(cx, "sub", rest, high, DType.S32, span)
        last = build.binary(cx, "sub", rest, low, DType.S32, span)
    return [
        build.binary(cx, "ge", wide, first, DType.BOOL, span),
        build.binary(cx, "le", wide, last, DType.BOOL, span),
    ]


def compared(cx: Context, left: core.Expr, right: core.Expr) -> tuple[core.Expr, core.Expr]:
    """The operands of a comparison, with sums that may overflow taken apart: ``a[i] - 1 < n`` as
    ``a[i] < n + 1``."""
    if left.dtype is not DType.S32 or (cx.is_safe(left) and cx.is_safe(right)):
        return left, right
    for value, other, flipped in ((left, right, False), (right, left, True)):
        found = split(cx, expanded(cx, value))
        if found is not None and cx.ranges.of(other).within(-_NARROW, _NARROW):
            sign, wide, rest = found
            limit = build.binary(cx, "sub", other, rest, DType.S32, other.span)
            pair = (wide, limit)
            if sign < 0:
                pair = (build.binary(cx, "sub", rest, other, DType.S32, other.span), wide)
            return (pair[1], pair[0]) if flipped else pair
    return left, right


def plain(cx: Context, index: core.Expr) -> core.Expr:
    """An index as it may be used without a guard: clamps in it moved inwards."""
    if index.dtype is not DType.S32 or cx.is_safe(index):
        return index
    return _inward(cx, expanded(cx, index))


def _inward(cx: Context, expr: core.Expr) -> core.Expr:
    if not isinstance(expr, core.Binary) or cx.ranges.of(expr).safe:
        return expr
    left, right = _inward(cx, expr.left), _inward(cx, expr.right)
    if expr.op in ("min", "max") and expr.dtype is DType.S32:
        for value, bound in ((left, right), (right, left)):
            found = split(cx, value)
            if found is not None and cx.ranges.of(bound).within(-_NARROW, _NARROW):
                return _clamp_first(cx, expr, found, bound)
    return build.binary(cx, expr.op, left, right, expr.dtype, expr.span)


def _clamp_first(
    cx: Context, expr: core.Binary, found: tuple[int, core.Expr, core.Expr], bound: core.Expr
) -> core.Expr:
    """``min(rest + wide, b)`` as ``rest + min(wide, b - rest)``, likewise for the other three."""
    sign, wide, rest = found
    span, s32 = expr.span, DType.S32
    if sign > 0:
        limit = build.binary(cx, "sub", bound, rest, s32, span)
        return build.binary(
            cx, "add", build.binary(cx, expr.op, wide, limit, s32, span), rest, s32, span
        )
    other = "max" if expr.op == "min" else "min"
    limit = build.binary(cx, "sub", rest, bound, s32, span)
    return build.binary(cx, "sub", rest, build.binary(cx, other, wide, limit, s32, span), s32, span)


def split(cx: Context, expr: core.Expr) -> tuple[int, core.Expr, core.Expr] | None:
    """An s32 sum as (sign, wide term, rest), the rest small; None when two terms are wide."""
    if expr.dtype is not DType.S32:
        return None
    wide: list[tuple[int, core.Expr]] = []
    small: list[tuple[int, core.Expr]] = []
    stack = [(1, expr)]
    while stack:
        sign, term = stack.pop()
        match term:
            case core.Binary(op="add"):
                stack += [(sign, term.right), (sign, term.left)]
            case core.Binary(op="sub"):
                stack += [(-sign, term.right), (sign, term.left)]
            case core.Unary(op="neg"):
                stack.append((-sign, term.arg))
            case _:
                narrow = cx.ranges.of(term).within(-_NARROW // 64, _NARROW // 64)
                (small if narrow else wide).append((sign, term))
        if len(wide) > 1 or len(small) > 32:
            return None
    if any(build.has_binders(term) for _, term in small):
        return None
    if len(wide) != 1 or not cx.ranges.of(wide[0][1]).safe:
        return None
    return (*wide[0], _sum(cx, small, expr.span))


def _sum(cx: Context, terms: list[tuple[int, core.Expr]], span: Span) -> core.Expr:
    out: core.Expr = build.int_const(0, span)
    for sign, term in terms:
        out = build.binary(cx, "add" if sign > 0 else "sub", out, term, DType.S32, span)
    return out


def expanded(cx: Context, expr: core.Expr) -> core.Expr:
    """Lets that may overflow replaced by what they stand for (within limits)."""
    return _expand(cx, expr, [_STEPS])


def _expand(cx: Context, expr: core.Expr, budget: list[int]) -> core.Expr:
    budget[0] -= 1
    if budget[0] < 0 or not expr.dtype.is_int or cx.ranges.of(expr).safe:
        return expr
    match expr:
        case core.VarRef():
            value = cx.ranges.let_value(expr.var)
            if value is None or build.has_binders(value):
                return expr
            return _expand(cx, value, budget)
        case core.Binary():
            left, right = _expand(cx, expr.left, budget), _expand(cx, expr.right, budget)
            return build.binary(cx, expr.op, left, right, expr.dtype, expr.span)
        case core.Unary():
            cx.count(expr.span)
            return core.Unary(expr.op, _expand(cx, expr.arg, budget), expr.dtype, expr.span)
        case core.Call(fn="abs"):
            cx.count(expr.span)
            return core.Call("abs", (_expand(cx, expr.args[0], budget),), expr.dtype, expr.span)
    return expr


def promoted(cx: Context, expr: core.Expr) -> core.Expr:
    """The same value computed in s64."""
    s64, span = DType.S64, expr.span
    if expr.dtype is DType.S32:
        match expr:
            case core.Binary() if expr.op in ("add", "sub", "mul", "min", "max", "fdiv", "mod"):
                left, right = promoted(cx, expr.left), promoted(cx, expr.right)
                return build.binary(cx, expr.op, left, right, s64, span)
            case core.Unary(op="neg"):
                cx.count(span)
                return core.Unary("neg", promoted(cx, expr.arg), s64, span)
            case core.Call(fn="abs"):
                cx.count(span)
                return core.Call("abs", (promoted(cx, expr.args[0]),), s64, span)
    return build.cast(cx, expr, s64, span)
