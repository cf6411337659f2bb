"""Reductions whose terms the threads of a block share: partial results, merged as a tree."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Reduce, Stage, Tensor
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.accumulate import (
    Chunk,
    Make,
    Tile,
    Updater,
    accumulator,
    merge_step,
    start_value,
)
from edgekernelbench.lowering.emit.boxes import Box, Span, whole
from edgekernelbench.lowering.emit.combine import start
from edgekernelbench.lowering.emit.context import Context
from edgekernelbench.lowering.emit.walk import plus
from edgekernelbench.lowering.expr.linear import int_const
from edgekernelbench.lowering.gpu.device import device_of, first_thread, region, strided
from edgekernelbench.lowering.gpu.team import below
from edgekernelbench.lowering.nest import Alloc, If, LetValue, Seq, Stmt, Store
from edgekernelbench.lowering.plan import StagePlan


@dataclass(slots=True)
class Cooperation:
    """Computes one result of a stage by all threads of a block.

    Attributes:
        components: the components of the reduction to hand on, that of ``plan`` first.
        chunk: where the result goes when the reduction is split over blocks too.
    """

    ctx: Context
    plan: StagePlan
    components: list[tuple[int, Stage]]
    chunk: Chunk | None = None

    @property
    def _reduce(self) -> Reduce:
        assert self.plan.reduce is not None
        return self.plan.reduce

    def emit(self, box: Box) -> list[Stmt]:
        full = {**{a.var: whole(a.extent) for a in self._reduce.axes}, **box}
        out: list[Stmt] = []
        mine = self._tile(full, 1, lambda name, dtype: self._register(name, dtype, out))
        out += region(self.ctx, self._start(mine))
        out += self._partial(full, mine)
        ours = self._shared(full)
        here = device_of(self.ctx).thread_index
        pairs = zip(mine.buffers, ours.buffers, strict=True)
        out += region(
            self.ctx, [Store(shared, (here,), core.Load(own, ())) for own, shared in pairs]
        )
        out += [
            *self._tree(ours),
            *region(self.ctx, [first_thread(self.ctx, self._result(ours, full))]),
        ]
        return out

    def _register(self, name: str, dtype: DType, out: list[Stmt]) -> Tensor:
        buffer = self.ctx.buffer(name, dtype, ())
        out.append(Alloc(buffer, "local"))
        return buffer

    def _shared(self, full: Box) -> Tile:
        """The partial results of all threads; stages of one kernel share them in turn."""
        lanes, scratch = device_of(self.ctx).threads, device_of(self.ctx).scratch
        number = count()
        return self._tile(
            full,
            lanes,
            lambda _, dtype: scratch(self.ctx, f"shared{next(number)}", dtype, (lanes,)),
        )

    def _tile(self, full: Box, lanes: int, make: Make) -> Tile:
        wanted = [part for part, _ in self.components[1:]]
        return Tile((), full, lanes, *accumulator(self._reduce, self.plan.stage.name, wanted, make))

    def _start(self, tile: Tile) -> list[Stmt]:
        if self._reduce.combiner is not None:
            return start(self._reduce.combiner, tile.parts, ())
        out: list[Stmt] = [Store(tile.value, (), start_value(self._reduce))]
        if tile.position is not None:
            out.append(Store(tile.position, (), int_const(-1)))
        return out

    def _partial(self, full: Box, tile: Tile) -> list[Stmt]:
        """Every thread takes the terms whose number leaves its own as the remainder."""
        plan, reduce = self.plan, self._reduce
        assert plan.eager_body is not None
        eager = ((plan.eager_body, *plan.eager_more), plan.eager_where)
        updater = Updater(
            self.ctx, reduce, (reduce.items, reduce.where), eager, tile,
            lambda _box, _lane: (tile.value, ()), plan.in_order,
        )  # fmt: skip
        axes = [p.axis for p in plan.pieces if p.reduction and p.last]
        sizes = [full[axis].extent for axis in axes]

        def term(number: Expr) -> list[Stmt]:
            lets, indices = self.ctx.unfused(number, [axis.name for axis in axes], sizes)
            point = {
                axis: Span(self.ctx.simple(plus(full[axis].base, index)), 1)
                for axis, index in zip(axes, indices, strict=True)
            }
            body = updater.update({**full, **point}, 1)
            for axis in axes:
                limit = full[axis].limit
                if limit is not None:  # the last chunk reaches beyond the end
                    body = below(point[axis].base, int_const(limit), body)
            return lets + body

        return strided(self.ctx, prod(sizes), term)

    def _tree(self, tile: Tile) -> list[Stmt]:
        """Halves the number of partial results until one is left, that of thread 0."""
        device = device_of(self.ctx)
        here, half = device.thread_index, device.threads // 2
        if half == 0:
            return []
        step = self.ctx.loop_var("step", 0, half.bit_length() - 1)
        width = self.ctx.loop_var("width", 1, half)
        there = core.Binary("add", here, core.VarRef(width), DType.S32)
        with device.at("thread"), self.ctx.below(here, half):
            body = merge_step(self.ctx, self._reduce, tile, (here,), (there,))
        halved = core.Binary("shr", int_const(half), core.VarRef(step), DType.S32)
        mine = core.Binary("lt", here, core.VarRef(width), DType.BOOL)
        inside = [LetValue(width, halved), *region(self.ctx, [If(mine, Seq(tuple(body)))])]
        return [self.ctx.loop(step, half.bit_length(), "serial", inside)]

    def _result(self, tile: Tile, box: Box) -> list[Stmt]:
        first = (int_const(0),)
        if self.chunk is not None:
            there = self.chunk.where(box)
            pairs = zip(self.chunk.tile.buffers, tile.buffers, strict=True)
            return [Store(result, there, core.Load(own, first)) for result, own in pairs]
        out: list[Stmt] = []
        own = self.plan.stage.lhs
        where = tuple(box[v].base if v in box else core.VarRef(v) for v in own)
        for k, (part, stage) in enumerate(self.components):
            value = core.Load(tile.result(part if k else None), first)
            out.append(self.ctx.store(stage.tensor, where, value))
        return out
