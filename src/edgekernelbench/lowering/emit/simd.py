"""Vectorised reduction axes: partial results in the lanes of the accumulator, folded at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Var
from edgekernelbench.lowering.emit.accumulate import Tile, Updater
from edgekernelbench.lowering.emit.boxes import Box, Span
from edgekernelbench.lowering.emit.context import Context
from edgekernelbench.lowering.emit.lanes import chunks
from edgekernelbench.lowering.emit.walk import Walker, at, plus
from edgekernelbench.lowering.expr.linear import const_value, int_const
from edgekernelbench.lowering.nest import For, Seq, Stmt
from edgekernelbench.lowering.plan import Piece

Around = Callable[[Box, Callable[[Box], list[Stmt]]], list[Stmt]]
"""Emits the unrolled tile loops: (box, what stands inside them for a point of the tile)."""


@dataclass(slots=True)
class LaneLoops:
    """The loops over vectors of one reduction axis.

    They stand outside the unrolled loops of the tile (``around``), which the author wrote further
    outside: all accumulators of the tile then advance together and share what they read.
    """

    ctx: Context
    piece: Piece
    tile: Tile
    updater: Updater
    around: Around

    def emit(self, box: Box, walker: Walker) -> list[Stmt]:
        if self.piece.axis in walker.ragged:
            return self._ragged(box, walker)
        span = box[self.piece.axis]
        out: list[Stmt] = []
        for chunk in chunks(span.extent, self.tile.lanes, False):
            base = at(span, chunk.start)
            out += self._block(box, base, int_const(chunk.count), chunk.width)
        return out

    def _ragged(self, box: Box, walker: Walker) -> list[Stmt]:
        """Full vectors, then single elements: their numbers are known when the loop starts."""
        lets, low, extent = walker.bounds(self.piece.axis, box)
        dtype, lanes = extent.dtype, int_const(self.tile.lanes)
        full = self.ctx.simple(core.Binary("fdiv", extent, lanes, dtype))
        done = self.ctx.simple(core.Binary("mul", full, lanes, dtype))
        rest = self.ctx.simple(core.Binary("sub", extent, done, dtype))
        tail = self.ctx.simple(core.Binary("add", low, done, dtype))
        main = self._block(box, low, full, self.tile.lanes)
        return [*lets, *main, *self._block(box, tail, rest, 1)]

    def _block(self, box: Box, base: Expr, count: Expr, width: int) -> list[Stmt]:
        """``count`` vectors (or single elements) starting at ``base``."""
        axis, name = self.piece.axis, self.piece.name
        number = const_value(count)
        block: Var | None = None
        if number != 1:
            most = (number or box[axis].extent) - 1
            block = self.ctx.loop_var(f"{name}_v", 0, max(0, most))
            base = plus(base, core.VarRef(block), width)

        def inside(point: Box) -> list[Stmt]:
            if width == 1:
                return self.updater.update({**point, axis: Span(base, 1)}, 1, int_const(0))
            lane = self.ctx.loop_var(f"{name}_l", 0, width - 1)
            here = {**point, axis: Span(plus(base, core.VarRef(lane)), 1)}
            step = self.updater.update(here, width, core.VarRef(lane))
            return [self.ctx.loop(lane, width, "vectorize", step)] if step else []

        body = self.around(box, inside)
        if block is None or not body:
            return body
        return [For(block, int_const(0), count, "serial", Seq(tuple(body)))]
