"""Recognises scatters: ``out[v] = sum[p: L where idx[p] == v](..)``.

Run as written, every output element looks at all p. As a scatter, every p adds to the one element
that it lands on.
"""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Reduce, Stage
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.rewrite import free_vars
from edgekernelbench.lowering.plan import Scatter, own_axes, reduce_axes

MIN_EXTENT = 4


def find_scatter(stage: Stage) -> Scatter | None:
    """How a stage can be computed as a scatter, None when it cannot (or gains nothing)."""
    reduce = stage.expr
    if not isinstance(reduce, Reduce) or reduce.where is None:
        return None
    if reduce.op in ("argmax", "argmin", "combine") or reduce.dtype is not stage.tensor.dtype:
        return None
    conditions = conjuncts(reduce.where)
    for k, condition in enumerate(conditions):
        found = _landing(stage, condition)
        if found is not None:
            axis, index = found
            rest = [*conditions[:k], *conditions[k + 1 :]]
            return Scatter(axis, index, _all(rest))
    return None


def conjuncts(expr: Expr) -> list[Expr]:
    if isinstance(expr, core.Binary) and expr.op == "and":
        return [*conjuncts(expr.left), *conjuncts(expr.right)]
    return [expr]


def _all(conditions: list[Expr]) -> Expr | None:
    out: Expr | None = None
    for condition in conditions:
        out = condition if out is None else core.Binary("and", out, condition, DType.BOOL)
    return out


def _landing(stage: Stage, condition: Expr) -> tuple[core.Var, Expr] | None:
    """The axis and what it is compared with, for ``axis == data``."""
    if not isinstance(condition, core.Binary) or condition.op != "eq":
        return None
    own, inner = own_axes(stage), set(reduce_axes(stage))
    for this, that in (
        (condition.left, condition.right),
        (condition.right, condition.left),
    ):
        if not isinstance(this, core.VarRef) or own.get(this.var, 0) < MIN_EXTENT:
            continue
        used = free_vars(that)
        moves = used & inner and this.var not in used
        if moves and that.dtype is DType.S32 and not isinstance(that, core.Block):
            return this.var, that
    return None
