"""Tails of a register tile as whole vectors.

Thirteen columns left over take three vectors of 8, 4 and 1 lanes. Two of 8 do it as well: where
storage goes on behind the last column (padded tiles of a layout, a padded copy), lanes too many
compute on what is there; where it does not, the tile begins a few columns earlier and computes
these again. Either way only the columns that are due leave the accumulator.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Var
from edgekernelbench.lowering.emit.boxes import Box, Span
from edgekernelbench.lowering.emit.context import Context
from edgekernelbench.lowering.emit.lanes import chunks, map_lanes, native_lanes
from edgekernelbench.lowering.expr.linear import const_value, int_const, linear
from edgekernelbench.lowering.expr.ranges import range_of_linear
from edgekernelbench.lowering.expr.rewrite import free_vars, substitute
from edgekernelbench.lowering.plan import StagePlan, extents_of


def widened(ctx: Context, plan: StagePlan, box: Box, fixed: bool) -> Box:
    """The box to accumulate over: the given one, or one with a better number of lanes.

    Args:
        box: of the reduction, its axes included.
        fixed: stages are placed inside the reduction, for just this box.
    """
    lane = plan.pieces[-1]
    if lane.kind != "vectorize" or lane.reduction or fixed:
        return box
    extent, base = box[lane.axis].extent, const_value(box[lane.axis].base)
    width = _better(ctx, extent)
    if width == extent or base is None:
        return box
    # Vectors of quads keep to the tiles of a layout: those do not begin earlier.
    starts = (base,) if plan.dot is not None else (base, base - (width - extent))
    for start in starts:
        span = Span(int_const(start), width)
        if start >= 0 and _Reads(ctx, plan, {**box, lane.axis: span}, lane.axis).are_vectors():
            return {**box, lane.axis: span}
    return box


def _better(ctx: Context, extent: int) -> int:
    """A number of lanes, the given one or more, that takes the fewest vectors."""
    native = native_lanes(ctx.target)
    least = -(-extent // native)
    ladder = chunks(extent, map_lanes(ctx.target), True)
    taken = sum(chunk.count * -(-chunk.width // native) for chunk in ladder)
    return extent if taken <= least else least * native


@dataclass(slots=True)
class _Reads:
    """The reads of a reduction over a box that may reach beyond the lane axis."""

    ctx: Context
    plan: StagePlan
    box: Box
    lane: Var

    def are_vectors(self) -> bool:
        """Whether all are in bounds, stand still or run along the lanes, and no division could
        fail on what the lanes too many find."""
        values = self._values()
        probe = values[self.lane]
        assert isinstance(probe, core.VarRef)
        start = None if self.plan.reduce is None else self.plan.reduce.start
        for expr in (*self.plan.exprs, *(() if start is None else (start,))):
            for node in core.walk(expr):
                if isinstance(node, core.Load) and not self._fits(node, values, probe.var):
                    return False
                if isinstance(node, core.Binary) and not _divides_safely(node):
                    return False
        return True

    def _values(self) -> dict[Var, Expr]:
        """For each axis a variable that runs over its part of the box."""
        out: dict[Var, Expr] = {}
        for axis in extents_of(self.plan.stage):
            span = self.box[axis]
            low, high = range_of_linear(linear(span.base), self.ctx.ranges)
            out[axis] = core.VarRef(self.ctx.loop_var(axis.name, low, high + span.extent - 1))
        return out

    def _fits(self, load: core.Load, values: dict[Var, Expr], probe: Var) -> bool:
        indices = tuple(substitute(index, values) for index in load.indices)
        buffer, where = self.ctx.address(load.tensor, indices)
        for dim, (index, size) in enumerate(zip(where, buffer.shape, strict=True)):
            if not free_vars(index) <= self.ctx.ranges.keys():
                return False  # a let of the expression
            low, high = self.ctx.range_of(index)
            if low < 0 or high >= size:
                return False
            if probe not in free_vars(index) or self.plan.dot is not None:
                continue
            last = dim == len(where) - 1
            if not last or linear(index).terms.get(core.VarRef(probe)) != 1:
                return False
        return True


def _divides_safely(node: core.Binary) -> bool:
    if node.op not in ("fdiv", "mod") or node.dtype.is_float:
        return True
    divisor = const_value(node.right)
    return divisor is not None and divisor > 0
