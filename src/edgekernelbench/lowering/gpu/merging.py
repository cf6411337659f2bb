"""Partial results of the threads of a block, merged as a tree in shared memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Reduce, Tensor
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.accumulate import Tile, merge_step
from edgekernelbench.lowering.emit.boxes import Box
from edgekernelbench.lowering.emit.context import Context
from edgekernelbench.lowering.expr.linear import int_const
from edgekernelbench.lowering.gpu.device import device_of
from edgekernelbench.lowering.gpu.team import Team, below
from edgekernelbench.lowering.nest import LetValue, Stmt, Store

Each = Callable[[Callable[[Box], list[Stmt]]], list[Stmt]]
"""Statements for each result that a thread has, in a region of the team."""

HandOn = Callable[[Tile, Box, Expr | None], list[Stmt]]


@dataclass(slots=True)
class Merging:
    """Brings together what the threads of a team made of their terms.

    Attributes:
        tile: the partial results of one thread.
        each: runs a statement for each of its results.
    """

    ctx: Context
    reduce: Reduce
    team: Team
    tile: Tile
    each: Each

    def emit(self, hand_on: HandOn) -> list[Stmt]:
        assert device_of(self.ctx).level == "block", "one thread cannot wait for others"
        ours = self._shared()
        out = self.team.region(self.ctx, lambda: self.each(lambda box: self._lay_out(ours, box)))
        out += self._tree(ours)
        return out + self.team.region(self.ctx, lambda: self._result(ours, hand_on))

    def _shared(self) -> Tile:
        """The partial results of all threads, those of one result side by side."""
        device, number = device_of(self.ctx), count()
        shape = (*self.tile.value.shape, self.team.total)
        made: dict[str, Tensor] = {}
        for buffer in self.tile.buffers:
            role = f"shared{next(number)}"
            made[buffer.name] = device.scratch(self.ctx, role, buffer.dtype, shape)
        position = self.tile.position
        return replace(
            self.tile,
            lanes=self.team.total,
            value=made[self.tile.value.name],
            position=None if position is None else made[position.name],
            parts={k: made[part.name] for k, part in self.tile.parts.items()},
        )

    def _place(self) -> Expr:
        """Where the thread lays its partial results."""
        group = core.Binary(
            "mul", self.team.rank(self.ctx, False), int_const(self.team.sharing), DType.S32
        )
        mine = core.Binary("add", group, self.team.rank(self.ctx, True), DType.S32)
        return self.ctx.simple(mine)

    def _lay_out(self, ours: Tile, box: Box) -> list[Stmt]:
        here, there = self.tile.where(box, None), ours.where(box, self._place())
        pairs = zip(self.tile.buffers, ours.buffers, strict=True)
        return [Store(shared, there, core.Load(own, here)) for own, shared in pairs]

    def _tree(self, ours: Tile) -> list[Stmt]:
        """Halves the number of partial results of each group, until one is left."""
        rounds = (self.team.sharing - 1).bit_length()
        step = self.ctx.loop_var("step", 0, rounds - 1)
        width = self.ctx.loop_var("width", 1, 1 << rounds - 1)
        halved = core.Binary("shr", int_const(1 << rounds - 1), core.VarRef(step), DType.S32)
        body = self.team.region(self.ctx, lambda: self._round(ours, core.VarRef(width)))
        return [self.ctx.loop(step, rounds, "serial", [LetValue(width, halved), *body])]

    def _round(self, ours: Tile, width: Expr) -> list[Stmt]:
        here = self._place()
        there = core.Binary("add", here, width, DType.S32)

        def step(box: Box) -> list[Stmt]:
            return merge_step(
                self.ctx, self.reduce, ours, ours.where(box, here), ours.where(box, there)
            )

        rank = self.team.rank(self.ctx, True)
        partner = core.Binary("add", rank, width, DType.S32)
        inside = below(partner, int_const(self.team.sharing), self.each(step))
        return below(rank, width, inside)

    def _result(self, ours: Tile, hand_on: HandOn) -> list[Stmt]:
        """The first thread of each group has the result."""
        place = self._place()
        stores = self.each(lambda box: hand_on(ours, box, place))
        return below(self.team.rank(self.ctx, True), int_const(1), stores)
