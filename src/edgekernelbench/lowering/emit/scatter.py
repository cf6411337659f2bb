"""Emission of scatters: every element is added where it lands."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.accumulate import combine, start_value
from edgekernelbench.lowering.emit.boxes import Box, Span, whole
from edgekernelbench.lowering.emit.context import Context, reload, seq
from edgekernelbench.lowering.emit.lanes import map_lanes
from edgekernelbench.lowering.emit.walk import Walker
from edgekernelbench.lowering.expr.linear import int_const
from edgekernelbench.lowering.expr.ranges import range_of
from edgekernelbench.lowering.expr.rewrite import free_vars
from edgekernelbench.lowering.nest import Barrier, If, LetValue, Stmt, Store
from edgekernelbench.lowering.plan import Part, StagePlan, name_pieces, own_axes


def emit_scatter(ctx: Context, plan: StagePlan, box: Box) -> list[Stmt]:
    """The whole stage: all elements set to the identity, then one pass over what lands on them."""
    assert plan.reduce is not None and plan.scatter is not None
    start = start_value(plan.reduce)
    own = own_axes(plan.stage)
    parts = [Part(axis, kind="serial" if ctx.device is None else "parallel") for axis in own]
    if ctx.device is None and parts and plan.stage.lhs[-1] == parts[-1].axis:
        parts[-1] = Part(parts[-1].axis, kind="vectorize")

    def clear(point: Box, _: int) -> list[Stmt]:
        return [ctx.store(plan.stage.tensor, _where(plan, point), start)]

    first = Walker(ctx, name_pieces(parts), clear, map_lanes(ctx.target)).walk(0, box)
    full = {**box, **{a.var: whole(a.extent) for a in plan.reduce.axes}}
    outer = plan.pieces[: _inner(plan)]
    ragged = {a.var: (a.lo, a.hi) for a in plan.reduce.axes if not a.is_constant}
    walker = Walker(ctx, outer, lambda b, _: _land(ctx, plan, b), map_lanes(ctx.target))
    walker.ragged = ragged
    between = [Barrier()] if ctx.device is not None and ctx.device.level == "block" else []
    return [*first, *between, *walker.walk(0, full)]


def _inner(plan: StagePlan) -> int:
    """Number of the first piece inside all reduction loops."""
    return 1 + max(k for k, piece in enumerate(plan.pieces) if piece.reduction)


def _where(plan: StagePlan, point: Box) -> tuple[Expr, ...]:
    return tuple(point[v].base if v in point else core.VarRef(v) for v in plan.stage.lhs)


def _settled(box: Box) -> dict[Var, Expr]:
    return {var: span.base for var, span in box.items() if span.extent == 1}


def _land(ctx: Context, plan: StagePlan, box: Box) -> list[Stmt]:
    """What one point of the reduction adds, if it lands inside."""
    scatter = plan.scatter
    assert scatter is not None
    extent = own_axes(plan.stage)[scatter.axis]
    values = {v: e for v, e in _settled(box).items() if v != scatter.axis}
    lets, index = ctx.value(scatter.index, values)
    raw = ctx.loop_var("to", *range_of(index, ctx.ranges))
    at = ctx.loop_var(scatter.axis.name, 0, extent - 1)
    here = {**box, scatter.axis: Span(core.VarRef(at), 1)}
    inside = _guarded(ctx, plan, here)
    inside.insert(0, LetValue(at, core.VarRef(raw)))
    low = core.Binary("ge", core.VarRef(raw), int_const(0), DType.BOOL)
    high = core.Binary("lt", core.VarRef(raw), int_const(extent), DType.BOOL)
    test = ctx.simple(core.Binary("and", low, high, DType.BOOL))
    landed = inside if isinstance(test, core.Const) and test.value else [If(test, seq(inside))]
    return [*lets, LetValue(raw, index), *landed]


def _guarded(ctx: Context, plan: StagePlan, box: Box) -> list[Stmt]:
    """The update of all elements with the landing index, under the rest of the condition."""
    assert plan.scatter is not None and plan.reduce is not None
    inner = plan.pieces[_inner(plan) :]
    where = plan.scatter.where
    outside: Expr | None = None
    settled = set(_settled(box))
    if where is not None and not _depends(where, box, settled):
        outside, where = where, None

    def update(point: Box, lanes: int) -> list[Stmt]:
        return _update(ctx, plan, point, where)

    body = Walker(ctx, inner, update, map_lanes(ctx.target)).walk(0, box)
    if outside is None:
        return body
    lets, cond = ctx.value(outside, _settled(box))
    return [*lets, If(cond, seq(body))]


def _depends(where: Expr, box: Box, settled: set[Var]) -> bool:
    return bool(free_vars(where) & (set(box) - settled))


def _update(ctx: Context, plan: StagePlan, point: Box, where: Expr | None) -> list[Stmt]:
    assert plan.reduce is not None and plan.eager_body is not None
    values = {axis: span.base for axis, span in point.items()}
    out: list[Stmt] = []
    cond: Expr | None = None
    if where is not None:
        lets, cond = ctx.value(where, values)
        out += lets
    lets, new = ctx.value(plan.eager_body, values)
    out += lets
    if cond is not None:
        new = core.Select(cond, new, start_value(plan.reduce), new.dtype)
    buffer, at = ctx.address(plan.stage.tensor, _where(plan, point))
    old = reload(buffer, at)
    return [*out, Store(buffer, at, combine(plan.reduce, old, new))]
