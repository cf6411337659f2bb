"""Emission of scatters: every element is added where it lands.

A scatter whose source axis is parallel is privatised: each chunk of the axis lands in a copy of
its own, and the copies merge in their order, as the partial results of `split` do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Reduce, Tensor, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.accumulate import combine, start_value
from edgekernelbench.lowering.emit.boxes import Box, Span, whole
from edgekernelbench.lowering.emit.context import Context, reload, seq
from edgekernelbench.lowering.emit.lanes import map_lanes
from edgekernelbench.lowering.emit.split import Partials
from edgekernelbench.lowering.emit.walk import Walker
from edgekernelbench.lowering.expr.linear import int_const
from edgekernelbench.lowering.expr.ranges import range_of
from edgekernelbench.lowering.expr.rewrite import free_vars
from edgekernelbench.lowering.gpu.device import device_of
from edgekernelbench.lowering.gpu.spread import block_threads
from edgekernelbench.lowering.gpu.team import Team
from edgekernelbench.lowering.nest import Atomic, If, LetValue, Stmt, Store
from edgekernelbench.lowering.plan import (
    Part,
    Piece,
    Scatter,
    StagePlan,
    extents_of,
    name_pieces,
    own_axes,
)

Address = Callable[[Box], tuple[Tensor, tuple[Expr, ...]]]
"""Where the element at a point is."""


def emit_scatter(ctx: Context, plan: StagePlan, box: Box) -> list[Stmt]:
    """The whole stage: all elements set to the identity, then one pass over what lands on them."""
    assert plan.reduce is not None
    full = {**box, **{a.var: whole(a.extent) for a in plan.reduce.axes}}
    if plan.split is None:
        own = plan.stage.tensor
        emitter = ScatterEmitter(ctx, plan, lambda b: ctx.address(own, _where(plan, b)))
        if plan.scatter is not None and plan.scatter.atomic:
            return emitter.at_once(box, full)
        return emitter.threads(full, emitter.pass_over)
    components = [(plan.reduce.part, plan.stage)]
    partials = Partials.of(ctx, plan, plan.split, box, components)
    value = partials.tile.value

    def one(inner: Box) -> list[Stmt]:
        chunk = partials.chunk(inner)
        return ScatterEmitter(ctx, plan, lambda b: (value, chunk.where(b))).pass_over(inner)

    chunks = ScatterEmitter(ctx, plan, lambda b: (value, ())).threads(full, one)
    return [*chunks, *partials.merge(box)]


def _where(plan: StagePlan, point: Box) -> tuple[Expr, ...]:
    return tuple(point[v].base if v in point else core.VarRef(v) for v in plan.stage.lhs)


def _settled(box: Box) -> dict[Var, Expr]:
    return {var: span.base for var, span in box.items() if span.extent == 1}


@dataclass(frozen=True, slots=True)
class ScatterEmitter:
    """Emits one scatter into the elements that ``address`` says."""

    ctx: Context
    plan: StagePlan
    address: Address

    @property
    def _reduce(self) -> Reduce:
        assert self.plan.reduce is not None
        return self.plan.reduce

    @property
    def _scatter(self) -> Scatter:
        assert self.plan.scatter is not None
        return self.plan.scatter

    @property
    def _parallel(self) -> int:
        """Number of the loops, all outermost, that run on several threads."""
        return sum(piece.kind == "parallel" for piece in self.plan.pieces)

    def _walker(self, pieces: tuple[Piece, ...], leaf: Callable[[Box], list[Stmt]]) -> Walker:
        ragged = {a.var: (a.lo, a.hi) for a in self._reduce.axes if not a.is_constant}
        lanes = map_lanes(self.ctx.target)
        return Walker(self.ctx, pieces, lambda b, _: leaf(b), lanes, ragged=ragged)

    def threads(self, box: Box, leaf: Callable[[Box], list[Stmt]]) -> list[Stmt]:
        """The parallel loops around what each of their iterations does."""
        return self._walker(self.plan.pieces[: self._parallel], leaf).walk(0, box)

    def pass_over(self, box: Box) -> list[Stmt]:
        """Clears the elements of a box, and lets everything land that does so there."""
        own = own_axes(self.plan.stage)
        parts = [Part(axis) for axis in own]
        if self.ctx.device is None and parts and self.plan.stage.lhs[-1] == parts[-1].axis:
            parts[-1] = Part(parts[-1].axis, kind="vectorize")
        first = self._walker(name_pieces(parts), self._clear).walk(0, box)
        outer = self.plan.pieces[self._parallel : self._scatter.depth]
        return [*first, *self._walker(outer, self._land).walk(0, box)]

    def at_once(self, box: Box, full: Box) -> list[Stmt]:
        """The same on a GPU: one kernel clears all elements, in a second one all threads land."""
        device, plan = device_of(self.ctx), self.plan
        cleared = name_pieces([Part(v, kind="parallel") for v in own_axes(plan.stage)])
        first = self._walker(cleared, self._clear).walk(0, box)
        walker = self._walker(plan.pieces[: self._scatter.depth], self._land)
        walker.team = Team.of(plan, extents_of(plan.stage))
        walker.threads = block_threads([plan], device.gpu)
        return [*first, *walker.walk(0, full)]

    def _clear(self, point: Box) -> list[Stmt]:
        return [Store(*self.address(point), start_value(self._reduce))]

    def _land(self, box: Box) -> list[Stmt]:
        """What one point of the reduction adds, if it lands inside."""
        ctx, scatter = self.ctx, self._scatter
        extent = own_axes(self.plan.stage)[scatter.axis]
        values = {v: e for v, e in _settled(box).items() if v != scatter.axis}
        lets, index = ctx.value(scatter.index, values)
        raw = ctx.loop_var("to", *range_of(index, ctx.ranges))
        at = ctx.loop_var(scatter.axis.name, 0, extent - 1)
        here = {**box, scatter.axis: Span(core.VarRef(at), 1)}
        inside = self._guarded(here)
        inside.insert(0, LetValue(at, core.VarRef(raw)))
        low = core.Binary("ge", core.VarRef(raw), int_const(0), DType.BOOL)
        high = core.Binary("lt", core.VarRef(raw), int_const(extent), DType.BOOL)
        test = ctx.simple(core.Binary("and", low, high, DType.BOOL))
        landed = inside if isinstance(test, core.Const) and test.value else [If(test, seq(inside))]
        return [*lets, LetValue(raw, index), *landed]

    def _guarded(self, box: Box) -> list[Stmt]:
        """The update of all elements with the landing index, under the rest of the condition."""
        inner = self.plan.pieces[self._scatter.depth :]
        where = self._scatter.where
        outside: Expr | None = None
        settled = _settled(box)
        if where is not None and not free_vars(where) & (box.keys() - settled.keys()):
            outside, where = where, None
        body = self._walker(inner, lambda point: self._update(point, where)).walk(0, box)
        if outside is None:
            return body
        lets, cond = self.ctx.value(outside, settled)
        return [*lets, If(cond, seq(body))]

    def _update(self, point: Box, where: Expr | None) -> list[Stmt]:
        assert self.plan.eager_body is not None
        values = {axis: span.base for axis, span in point.items()}
        out: list[Stmt] = []
        cond: Expr | None = None
        if where is not None:
            lets, cond = self.ctx.value(where, values)
            out += lets
        lets, new = self.ctx.value(self.plan.eager_body, values)
        out += lets
        if cond is not None:
            new = core.Select(cond, new, start_value(self._reduce), new.dtype)
        buffer, at = self.address(point)
        if self._scatter.atomic:
            op = self._reduce.op
            assert op == "sum" or op == "min" or op == "max"
            return [*out, Atomic(buffer, at, op, new)]
        return [*out, Store(buffer, at, combine(self._reduce, reload(buffer, at), new))]
