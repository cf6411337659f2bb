"""Reductions split over threads: each chunk of an axis leaves a partial result, then they merge.

The chunks are those of the nest, whatever the number of threads, and merge in their order: a
program gives the same result on every run. What brings two partial results together is the law of
the operation itself, or the author's combiner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Reduce, Stage, Tensor, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.accumulate import Chunk, Tile, accumulator, merge_step
from edgekernelbench.lowering.emit.boxes import Box, Span
from edgekernelbench.lowering.emit.context import Context
from edgekernelbench.lowering.emit.lanes import map_lanes
from edgekernelbench.lowering.emit.walk import Walker
from edgekernelbench.lowering.expr.linear import int_const
from edgekernelbench.lowering.nest import Stmt
from edgekernelbench.lowering.plan import Piece, StagePlan, chunk_count, extents_of, own_axes

Components = Sequence[tuple[int, Stage]]
"""What a reduction yields: a component of its combiner, and the stage that it is stored in."""


@dataclass(frozen=True, slots=True)
class Partials:
    """The partial results of one reduction.

    Attributes:
        split: the loop over the chunks.
        count: number of chunks, counted by ``axis`` in the tile.
        extent: of the axis that is cut.
    """

    ctx: Context
    plan: StagePlan
    split: Piece
    axis: Var
    count: int
    extent: int
    tile: Tile
    components: Components

    @classmethod
    def of(
        cls, ctx: Context, plan: StagePlan, split: Piece, box: Box, components: Components
    ) -> Partials:
        """Takes workspace for the results over ``box``, that of all threads."""
        assert plan.reduce is not None
        extent = extents_of(plan.stage)[split.axis]
        count = chunk_count(split, extent)
        axis = ctx.loop_var("chunk", 0, count - 1)
        axes = tuple(own_axes(plan.stage))
        entry = {**{v: box[v] for v in axes}, axis: Span(int_const(0), count)}
        shape = (count, *(box[v].extent for v in axes))

        def make(name: str, dtype: DType) -> Tensor:
            return ctx.workspace("partial", f"{name}.parts", dtype, shape)

        wanted = [part for part, _ in components[1:]]
        buffers = accumulator(plan.reduce, plan.stage.name, wanted, make)
        tile = Tile((axis, *axes), entry, 1, *buffers)
        return cls(ctx, plan, split, axis, count, extent, tile, components)

    @property
    def _reduce(self) -> Reduce:
        assert self.plan.reduce is not None
        return self.plan.reduce

    def chunk(self, box: Box) -> Chunk:
        """Where the results of the chunk that ``box`` lies in go."""
        first = box[self.split.axis].base
        step = int_const(min(self.split.step, self.extent))
        number = core.Binary("fdiv", first, step, DType.S32)
        return Chunk(self.tile, self.axis, self.ctx.simple(number))

    def merge(self, box: Box) -> list[Stmt]:
        """Takes the later chunks into the first one, in order, and stores what that makes."""
        pieces, lanes = self.plan.merge, map_lanes(self.ctx.target)
        inner = tuple(piece for piece in pieces if piece.kind == "vectorize")
        outer = pieces[: len(pieces) - len(inner)]
        chunks = Piece(self.axis, self.axis.name, 1, "serial", True, True)
        first, later = Span(int_const(0), 1), Span(int_const(1), self.count - 1)

        def leaf(here: Box, _: int) -> list[Stmt]:
            out: list[Stmt] = []
            if self.count > 1:
                steps = Walker(self.ctx, (chunks, *inner), lambda b, _: self._step(b), lanes)
                out += steps.walk(0, {**here, self.axis: later})
            results = Walker(self.ctx, inner, lambda b, _: self._store(b), lanes)
            return out + results.walk(0, {**here, self.axis: first})

        return Walker(self.ctx, outer, leaf, lanes).walk(0, box)

    def _step(self, box: Box) -> list[Stmt]:
        start = {**box, self.axis: Span(int_const(0), 1)}
        here, there = self.tile.where(start, None), self.tile.where(box, None)
        return merge_step(self.ctx, self._reduce, self.tile, here, there)

    def _store(self, box: Box) -> list[Stmt]:
        here, own = self.tile.where(box, None), self.plan.stage.lhs
        point = tuple(box[v].base if v in box else core.VarRef(v) for v in own)
        out: list[Stmt] = []
        for k, (part, stage) in enumerate(self.components):
            buffer = self.tile.result(part if k else None)
            out.append(self.ctx.store(stage.tensor, point, core.Load(buffer, here)))
        return out
