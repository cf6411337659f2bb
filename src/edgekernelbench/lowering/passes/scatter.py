"""Recognises scatters: ``out[v] = sum[p: L where idx[p] == v](..)``.

Run as written, every output element looks at all p. As a scatter, every p adds to the one element
that it lands on.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Reduce, Stage, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.linear import int_const, is_index, linear
from edgekernelbench.lowering.expr.rewrite import free_vars
from edgekernelbench.lowering.plan import Scatter, own_axes, reduce_axes

MIN_EXTENT = 4
MAX_SHIFT = 1 << 30


def find_scatter(stage: Stage) -> Scatter | None:
    """How a stage is computed as a scatter by rule, None when it cannot be (or gains nothing)."""
    extents = own_axes(stage)
    found = (s for axis, s in scatters(stage).items() if extents[axis] >= MIN_EXTENT)
    return next(found, None)


def scatters(stage: Stage) -> dict[Var, Scatter]:
    """The axes that elements can land along, in the order of the condition."""
    reduce = stage.expr
    if not isinstance(reduce, Reduce) or reduce.where is None:
        return {}
    if reduce.op in ("argmax", "argmin", "combine") or reduce.dtype is not stage.tensor.dtype:
        return {}
    conditions = conjuncts(reduce.where)
    bounds = {v for axis in reduce.axes for e in (axis.lo, axis.hi) for v in free_vars(e)}
    out: dict[Var, Scatter] = {}
    for k, condition in enumerate(conditions):
        for axis, index in _landings(stage, condition):
            if axis not in out and axis not in bounds:
                rest = [*conditions[:k], *conditions[k + 1 :]]
                out[axis] = Scatter(axis, index, condition, _all(rest))
    return out


def conjuncts(expr: Expr) -> list[Expr]:
    if isinstance(expr, core.Binary) and expr.op == "and":
        return [*conjuncts(expr.left), *conjuncts(expr.right)]
    return [expr]


def _all(conditions: list[Expr]) -> Expr | None:
    out: Expr | None = None
    for condition in conditions:
        out = condition if out is None else core.Binary("and", out, condition, DType.BOOL)
    return out


def _landings(stage: Stage, condition: Expr) -> Iterator[tuple[Var, Expr]]:
    """Each axis that is compared with data, and that data, for ``axis == data``.

    ``axis + 1 == data`` is how a comparison with ``data - 1`` is written, lest that overflows.
    """
    if not isinstance(condition, core.Binary) or condition.op != "eq":
        return
    inner = set(reduce_axes(stage))
    for this, that in (
        (condition.left, condition.right),
        (condition.right, condition.left),
    ):
        found = _shifted_axis(stage, this)
        if found is None:
            continue
        axis, shift = found
        used = free_vars(that)
        moves = used & inner and axis not in used
        if moves and that.dtype is DType.S32 and not isinstance(that, core.Block):
            yield axis, that if not shift else core.Binary("sub", that, int_const(shift), DType.S32)


def _shifted_axis(stage: Stage, expr: Expr) -> tuple[Var, int] | None:
    """The axis and the number of ``axis + number``.

    The number is small, so that data minus it, if that wraps around, is no index.
    """
    if not is_index(expr):
        return None
    form, own = linear(expr), own_axes(stage)
    if len(form.terms) != 1 or abs(form.const) > MAX_SHIFT:
        return None
    (atom, factor), *_ = form.terms.items()
    if not isinstance(atom, core.VarRef) or factor != 1:
        return None
    if own.get(atom.var, MAX_SHIFT) >= MAX_SHIFT:
        return None
    return atom.var, form.const
