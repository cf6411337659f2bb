"""What a placed stage must hold to: computed once, copied to be read, kept where it is read."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from edgekernelbench.ir.core import Var
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.emit.boxes import Box, lies_in
from edgekernelbench.lowering.emit.context import Context
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.expr.rewrite import loads
from edgekernelbench.lowering.gpu.spread import SPREAD
from edgekernelbench.lowering.gpu.team import Team
from edgekernelbench.lowering.plan import StagePlan, extents_of, own_axes

MAX_COPIED = 4
SMALL_COPY = 1024


@dataclass(frozen=True, slots=True)
class PlacedChecks:
    """Refuses placements that turn out not to work where the stage is emitted."""

    ctx: Context
    tree: Tree

    def _plan(self, name: str) -> StagePlan:
        return self.ctx.plan.stages[name]

    def cover(self, name: str, box: Box) -> None:
        """A stage that is kept whole must be computed everywhere, once."""
        if self.tree.homes[name] is not None:
            return
        parts: list[Var] = []
        for axis, extent in own_axes(self._plan(name).stage).items():
            span = box[axis]
            if span.of is not None:
                parts.append(span.of)
            elif not span.is_whole(extent):
                self._not_covered(name, f"the loops do not cover its axis `{axis.name}`")
        if len(set(parts)) < len(parts):
            self._not_covered(name, "the loops reach only a diagonal of it")
        threads: set[Var] = set()
        for stage, depth in self.tree.path(name):
            plan = self._plan(stage)
            extents = extents_of(plan.stage)
            threads |= {
                piece.axis
                for piece in plan.pieces[: depth + 1]
                if piece.kind in SPREAD and piece.step < extents[piece.axis]
            }
        if threads - set(parts):
            self._not_covered(name, "several threads would compute the same elements")

    def one_thread(self, name: str, target: str, depth: int, team: Team | None) -> None:
        """What is placed in a loop of a thread is that thread's business alone: threads of further
        loops inside have results of the target that it cannot read, and would write what it does.
        """
        if self.ctx.device is None or self.ctx.device.level != "thread" or team is None:
            return
        if self.tree.homes[name] is not None and not self.tree.consumes(target, name):
            return  # each makes what it needs
        nest = self._plan(target).pieces
        shared = zip(team.pieces, team.counts, strict=True)
        inside = [piece for piece, n in shared if n > 1 and piece in nest[depth + 1 :]]
        if inside:
            loop, inner = nest[depth].name, inside[-1].name
            message = (
                f"`{name}` is placed in `{target}.{loop}`, whose elements are several threads'"
            )
            help = (
                f"place it in `{target}.{inner}`, the last of its `thread` loops, or outside them"
            )
            self.ctx.refuse(rules.GPU_LOOPS, name, message, help)

    def reuse(self, name: str, copy: Box, box: Box) -> None:
        """A cache must be read about as often as it is written; ``box``: of its reader."""
        reader = self.ctx.plan.caches[name]
        stage = self._plan(reader).stage
        reads = sum(load.tensor.name == name for load in loads(stage.expr))
        for axis, extent in extents_of(stage).items():
            reads *= box[axis].extent if axis in box else extent
        written = prod(span.extent for span in copy.values())
        if written <= max(SMALL_COPY, MAX_COPIED * reads):
            return
        message = (
            f"`{name}` would copy {written} elements each time for {reads} reads: which part of "
            f"it `{reader}` reads there is not known, or it reads few of many"
        )
        help = "drop the line, or name a loop further outside"
        self.ctx.refuse(rules.CACHE_SIZE, name, message, help)

    def tile(self, name: str, box: Box, tile: Box) -> None:
        """What is computed of a stage must lie in the tile from which its readers take it."""
        home, own = self.tree.homes[name], self.tree.together.get(name, name)
        if home is None or home.target == own:  # kept whole; only read in loops of its own
            return
        for axis, extent in own_axes(self._plan(name).stage).items():
            kept = tile[axis]
            if not (kept.is_whole(extent) or lies_in(box[axis], kept, self.ctx.ranges)):
                target = self.tree.attach[name].target
                message = f"`{target}` makes more of `{name}` along `{axis.name}` than is kept"
                help = f"place `{name}` where `{target}` is placed, or leave it unplaced"
                self.ctx.refuse(rules.OUTSIDE_TILE, name, message, help)

    def _not_covered(self, name: str, reason: str) -> None:
        message = f"`{name}` is kept whole, and {reason}"
        help = f"leave `{name}` unplaced, or place it where its elements are computed once"
        self.ctx.refuse(rules.NOT_COVERED, name, message, help)
