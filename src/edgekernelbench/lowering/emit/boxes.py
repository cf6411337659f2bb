"""Boxes: which part of a stage is needed, and what an index expression covers over one.

A box gives each axis a first value (an expression in outer loop variables) and a constant number
of values. All sizes are exact for affine indices; what cannot be analysed covers the dimension.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.linear import (
    Linear,
    Ranges,
    const_value,
    int_const,
    is_index,
    linear,
    to_expr,
)
from edgekernelbench.lowering.expr.ranges import range_of_linear
from edgekernelbench.lowering.expr.rewrite import free_vars, substitute
from edgekernelbench.lowering.expr.simplify import simplify


@dataclass(frozen=True, slots=True)
class Span:
    """The values ``base .. base + extent - 1`` of one axis or dimension.

    Attributes:
        of: the axis of an outermost nest whose loops divide it into such spans without gaps or
            overlaps, None when it is no such part.
        limit: values from here on are not due: the last tile of a block reaches beyond the end.
        tried: whether a thread's part lies below the limit as a whole was asked, in vain.
    """

    base: Expr
    extent: int
    of: Var | None = None
    limit: int | None = None
    tried: bool = False

    def is_whole(self, size: int) -> bool:
        """Whether it covers 0..size-1."""
        return self.extent == size and const_value(self.base) == 0


Box = Mapping[Var, Span]

ZERO = int_const(0)


def whole(extent: int) -> Span:
    return Span(ZERO, extent)


def image(index: Expr, box: Box, ranges: Ranges) -> Span | None:
    """The values of an index expression while the axes run over ``box``; None if unknown."""
    if isinstance(index, core.VarRef) and index.var in box:
        return box[index.var]
    if any(var not in box and var not in ranges for var in free_vars(index)):
        return None  # a let of the expression: what it is, is known inside only
    moving = {var for var, span in box.items() if span.extent > 1}
    fixed = {var: span.base for var, span in box.items() if span.extent == 1}
    found = _image(substitute(index, fixed), box, moving, ranges)
    if found is None:
        return None
    low, extent = found
    return Span(simplify(to_expr(low, index.dtype), ranges), extent)


def _image(index: Expr, box: Box, moving: set[Var], ranges: Ranges) -> tuple[Linear, int] | None:
    if not free_vars(index) & moving:
        return linear(simplify(index, ranges)), 1
    match index:
        case core.VarRef(var=var):
            return linear(box[var].base), box[var].extent
        case core.Binary(op="add" | "sub" | "mul") | core.Unary(op="neg") if is_index(index):
            return _image_sum(linear(index), box, moving, ranges)
        case core.Binary(op="fdiv" | "mod" as op, left=left, right=right):
            step = const_value(right)
            inner = _image(left, box, moving, ranges)
            if step is None or step < 1 or inner is None:
                return None
            return _image_divided(op, inner, step, index.dtype, ranges)
        case core.Binary(op="min" | "max" as op, left=left, right=right):
            return _image_clamped(op, left, right, box, moving, ranges)
        case _:
            return None


def _image_sum(
    form: Linear, box: Box, moving: set[Var], ranges: Ranges
) -> tuple[Linear, int] | None:
    low, spread = Linear({}, form.const), 0
    for atom, factor in form.terms.items():
        if isinstance(atom, core.Binary) and atom.op in ("add", "sub", "mul"):
            return None  # a product of variables
        found = _image(atom, box, moving, ranges)
        if found is None:
            return None
        start, extent = found
        if factor < 0:
            start = start.shifted(extent - 1)
        low = low.plus(start.times(factor))
        spread += abs(factor) * (extent - 1)
    return low, spread + 1


def _image_divided(
    op: str, inner: tuple[Linear, int], step: int, dtype: DType, ranges: Ranges
) -> tuple[Linear, int] | None:
    low, extent = inner
    start, width = to_expr(low, dtype), int_const(step, dtype)
    aligned = low.const % step == 0 and all(c % step == 0 for c in low.terms.values())
    if op == "fdiv":
        expr = simplify(core.Binary("fdiv", start, width, dtype), ranges)
        count = (extent - 1) // step + 1 if aligned else (extent + step - 2) // step + 1
        return linear(expr), count
    if aligned and extent <= step:
        return Linear(), extent
    form = linear(simplify(core.Binary("mod", start, width, dtype), ranges))
    _, high = range_of_linear(form, ranges)
    if high + extent - 1 < step:
        return form, extent
    return Linear(), step


def _image_clamped(
    op: core.ArithOp, left: Expr, right: Expr, box: Box, moving: set[Var], ranges: Ranges
) -> tuple[Linear, int] | None:
    """min and max with something that does not move shift the span; they never widen it."""
    if free_vars(left) & moving:
        left, right = right, left
    if free_vars(left) & moving:
        return None
    inner = _image(right, box, moving, ranges)
    if inner is None:
        return None
    low, extent = inner
    bound = simplify(left, ranges)
    start = to_expr(low, bound.dtype)
    clamped = simplify(core.Binary(op, start, bound, bound.dtype), ranges)
    return linear(clamped), extent


def union(a: Span | None, b: Span | None, ranges: Ranges) -> Span | None:
    """The smallest known span that covers both."""
    if a is None or b is None:
        return None
    if a == b:
        return a
    first, second = linear(a.base), linear(b.base)
    low, high = range_of_linear(second.minus(first), ranges)  # how far b starts behind a
    if low < -(1 << 30) or high > 1 << 30:
        return None
    base = first.shifted(min(0, low))
    extent = max(a.extent, high + b.extent) - min(0, low)
    return Span(simplify(to_expr(base), ranges), extent)


def lies_in(part: Span, span: Span, ranges: Ranges) -> bool:
    """Whether all values of ``part`` are known to be among those of ``span``."""
    low, high = range_of_linear(linear(part.base).minus(linear(span.base)), ranges)
    return low >= 0 and high + part.extent <= span.extent


def within(span: Span | None, size: int, ranges: Ranges) -> Span:
    """The span as part of a dimension 0..size-1: shifted inwards where it sticks out.

    It keeps its constant extent, so that what lies inside stays covered.
    """
    if span is None or span.extent >= size:
        return whole(size)
    low, high = range_of_linear(linear(span.base), ranges)
    last = size - span.extent
    if low >= 0 and high <= last:
        return span
    base = span.base
    if low < 0:
        base = core.Binary("max", base, ZERO, base.dtype)
    if high > last:
        base = core.Binary("min", base, int_const(last), base.dtype)
    return Span(simplify(base, ranges), span.extent)
