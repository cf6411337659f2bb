"""Reductions: ``op[k: K, r: lo..hi where cond](body)``."""

from __future__ import annotations

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.bounds import NOTHING
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.elaborate import build, calls, coerce, combiners, ops, rules
from edgekernelbench.ir.elaborate.context import Context
from edgekernelbench.ir.elaborate.names import nearest
from edgekernelbench.ir.elaborate.values import (
    POISON,
    CombinerValue,
    Index,
    Macro,
    Number,
    Poison,
    Scalar,
    Scope,
    TupleValue,
    Value,
)

_LARGEST = 2**31 - 1


def reduction(cx: Context, scope: Scope, expr: surface.Reduction) -> Value:
    own = scope.function(expr.op)
    if isinstance(own, CombinerValue):
        return _combined(cx, scope, expr, own)
    if expr.op not in core.REDUCE_OPS:
        help = nearest(expr.op, {*core.REDUCE_OPS, *scope.visible_functions()})
        if isinstance(own, Macro):
            help = [f"make it a combiner: `combiner {expr.op}(a, b) init ... = ...`"]
        if expr.op in ("mean", "avg", "average"):
            help = ["`sum[k: K](x[k]) / K`"]
        return cx.error(rules.REDUCTION, f"there is no reduction `{expr.op}`", expr.span, help)
    op: core.ReduceOp = expr.op  # type: ignore[assignment]
    # Conditions around a reduction do not hold where it is computed.
    outside, cx.facts = cx.facts, NOTHING
    value = _reduce(cx, scope, expr, op)
    cx.facts = outside
    return value


def _reduce(cx: Context, scope: Scope, expr: surface.Reduction, op: core.ReduceOp) -> Value:
    inner, axes = Scope(scope), []
    broken = False
    for axis in expr.axes:
        made = _axis(cx, inner, axis, op)
        broken |= made is None
        if made is not None:
            axes.append(made)
    where = _where(cx, inner, expr)
    body = _body(cx, inner, expr, op)
    if broken or where is POISON or body is POISON:
        return _ghost(cx, op, body)
    if op in ("argmax", "argmin") and not _flat_fits(cx, axes, expr):
        return POISON
    return _build(cx, op, axes, where, body, expr.span)


def _combined(cx: Context, scope: Scope, expr: surface.Reduction, found: CombinerValue) -> Value:
    """A reduction by a combiner: a tuple of its components, or the only one.

    Every component is elaborated by itself, so that no two have a variable in common.
    """
    if not found.sound:
        return POISON
    outside, cx.facts = cx.facts, NOTHING
    parts: list[Value] = []
    for part in range(len(found.stmt.left)):
        parts.append(_component(cx, scope, expr, found, part))
        if parts[-1] is POISON:
            break
    cx.facts = outside
    if parts[-1] is POISON:
        return POISON
    return parts[0] if len(parts) == 1 else TupleValue(tuple(parts))


def _component(
    cx: Context, scope: Scope, expr: surface.Reduction, found: CombinerValue, part: int
) -> core.Expr | Poison:
    inner, axes = Scope(scope), []
    for axis in expr.axes:
        axes.append(_axis(cx, inner, axis, expr.op))
    where = _where(cx, inner, expr)
    items = combiners.items_of(cx, inner, expr, len(found.stmt.left))
    if items is None or where is POISON or None in axes:
        return POISON
    made = combiners.instance(cx, found, items, expr.span)
    if made is None:
        return POISON
    combiner, elements = made
    kept = [axis for axis in axes if axis is not None]
    dtype, span = elements[part].dtype, expr.span
    if isinstance(where, Number):
        where = None if where.value else core.Const(False, DType.BOOL, span)
    if any(axis.extent <= 0 for axis in kept):
        return combiner.init[part]
    cx.count(span, 2 * len(axes) + sum(1 for e in combiner.exprs for _ in core.walk(e)))
    return core.Reduce(
        "combine",
        tuple(kept),
        where,
        elements[0],
        dtype,
        span,
        combiner,
        part,
        elements[1:],
    )


def _ghost(cx: Context, op: str, body: Scalar | Poison) -> Value:
    if op in ("argmax", "argmin"):
        return ops.ghost_of(cx, DType.S32)
    return ops.ghost_of(cx, DType.BOOL) if op in ("any", "all") else ops.ghost(cx, body)


def _build(
    cx: Context,
    op: core.ReduceOp,
    axes: list[core.ReduceAxis],
    where: core.Expr | Number | None,
    body: Scalar,
    span: Span,
) -> core.Expr:
    value = coerce.express(cx, body, span)
    if op not in ("any", "all"):
        value = coerce.widen(cx, value)
    dtype = DType.S32 if op in ("argmax", "argmin") else value.dtype
    if isinstance(where, Number):
        where = None if where.value else core.Const(False, DType.BOOL, span)
    if any(a.extent <= 0 for a in axes):
        return build.const(core.identity(op, value.dtype), dtype, span)
    cx.count(span, 1 + 2 * len(axes))
    return core.Reduce(op, tuple(axes), where, value, dtype, span)


# ---------------------------------------------------------------- axes
def _axis(cx: Context, scope: Scope, axis: surface.RangeAxis, op: str) -> core.ReduceAxis | None:
    """Binds an axis in ``scope``. Bounds see the axes before it."""
    lo = Number(0) if axis.lo is None else _bound(cx, scope, axis.lo, axis.name)
    hi = _bound(cx, scope, axis.hi, axis.name)
    taken = scope.find(axis.name)
    if isinstance(taken, Index):
        reused(cx, axis, taken)
    if lo is POISON or hi is POISON:
        scope.names[axis.name] = POISON
        return None
    first, last = coerce.express(cx, lo, axis.span), coerce.express(cx, hi, axis.span)
    low, high = cx.ranges.of(first), cx.ranges.of(last)
    if not (low.within(-_LARGEST, _LARGEST) and high.within(-_LARGEST, _LARGEST)):
        scope.names[axis.name] = POISON
        return _unbounded(cx, axis, first if not low.within(-_LARGEST, _LARGEST) else last)
    return _shifted(cx, scope, axis, first, last, op)


def _unbounded(cx: Context, axis: surface.RangeAxis, bound: core.Expr) -> None:
    written = axis.hi if axis.lo is None or bound.span == axis.hi.span else axis.lo
    text = coerce.show(written)
    cx.error(
        rules.BOUNDS,
        f"`{text}` has no known smallest and largest value",
        written.span,
        [f"clamp it: `clamp({text}, 0, N)`, where N is the largest extent meant"],
    )


def _shifted(
    cx: Context,
    scope: Scope,
    axis: surface.RangeAxis,
    first: core.Expr,
    last: core.Expr,
    op: str,
) -> core.ReduceAxis | None:
    """The core's axis, which never runs below 0: ``k: -1..2`` runs over 0..3, read minus 1."""
    lowest = int(cx.ranges.of(first).lo)
    offset = min(lowest, 0)
    span = axis.span
    if offset < 0:
        if op in ("argmax", "argmin"):
            scope.names[axis.name] = POISON
            cx.error(rules.BOUNDS, f"`{op}` needs an axis from 0 or above", span)
            return None
        first, last = _plus(cx, first, -offset, span), _plus(cx, last, -offset, span)
    extent = int(cx.ranges.of(last).hi)
    if lowest - offset >= extent:
        extent = 0  # never runs
    var = cx.fresh(axis.name)
    cx.ranges.bind(var, 0, extent - 1)
    ref = core.VarRef(var, span)
    scope.names[axis.name] = (
        Index(ref) if offset == 0 else Index(ref, None, _plus(cx, ref, offset, span))
    )
    return core.ReduceAxis(var, first, last, max(extent, 0), span)


def _plus(cx: Context, expr: core.Expr, offset: int, span: Span) -> core.Expr:
    return build.binary(cx, "add", expr, build.int_const(offset, span), DType.S32, span)


def _bound(cx: Context, scope: Scope, expr: surface.Expr, axis: str) -> Scalar | Poison:
    value = calls.scalar(cx, scope, expr)
    if value is POISON:
        return POISON
    number = isinstance(value, Number)
    is_float = isinstance(value.value, float) if number else value.dtype.is_float
    if is_float:
        text = coerce.show(expr)
        help = [f"`s32({text})`"]
        if isinstance(expr, surface.Binary) and expr.op == "/":
            help = [f"`{coerce.show(surface.Binary('//', expr.left, expr.right))}`"]
        return cx.error(
            rules.BOUNDS, f"the bound `{text}` of axis `{axis}` is a float", expr.span, help
        )
    if number:
        return value
    wide = coerce.widen(cx, value)
    return wide if wide.dtype is DType.S32 else build.cast(cx, wide, DType.S32, expr.span)


def reused(cx: Context, axis: surface.RangeAxis, taken: Index) -> None:
    name, bounds = axis.name, coerce.show(axis.hi)
    if axis.lo is not None:
        bounds = f"{coerce.show(axis.lo)}..{bounds}"
    what = f"the index of `{taken.loop.kind} {name}`" if taken.loop else "an axis in use here"
    cx.error(
        rules.AXIS_REUSED,
        f"`{name}` is already {what}",
        axis.span,
        [f"rename it: `{name}2: {bounds}`, and `{name}2` where it is used"],
    )


# ---------------------------------------------------------------- condition and body
def _where(
    cx: Context, scope: Scope, expr: surface.Reduction
) -> core.Expr | Number | Poison | None:
    if expr.where is None:
        return None
    return coerce.condition(cx, cx.expr(scope, expr.where), expr.where.span)


def _body(cx: Context, scope: Scope, expr: surface.Reduction, op: str) -> Scalar | Poison:
    if op in ("any", "all"):
        return coerce.condition(cx, cx.expr(scope, expr.body), expr.body.span)
    return calls.scalar(cx, scope, expr.body)


def _flat_fits(cx: Context, axes: list[core.ReduceAxis], expr: surface.Reduction) -> bool:
    box = 1
    for axis in axes:
        box *= max(axis.extent, 1)
    if box > _LARGEST:
        cx.error(
            rules.BOUNDS, f"{box} positions do not fit s32, the dtype of `{expr.op}`", expr.span
        )
    return box <= _LARGEST
