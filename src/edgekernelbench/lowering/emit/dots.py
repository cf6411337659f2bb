"""Emission of dot products: vectors of lanes whose bytes lie where an instruction takes them.

At the innermost point of such a nest stand up to four values of one reduction axis. A vector of
lanes with four of them is a `Dot`; where that cannot be formed (fewer lanes than any instruction
has, three values left over whose fourth is out of bounds) the products are added one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor, Var
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.dots.instructions import WORDS, Instruction, rows_for
from edgekernelbench.lowering.dots.product import WIDTH, Factor, Factors, factors, sides
from edgekernelbench.lowering.emit.accumulate import Updater
from edgekernelbench.lowering.emit.boxes import Box, Span
from edgekernelbench.lowering.emit.context import Context
from edgekernelbench.lowering.emit.walk import at, plus
from edgekernelbench.lowering.expr.linear import Linear, int_const, linear
from edgekernelbench.lowering.expr.ranges import range_of_linear
from edgekernelbench.lowering.expr.rewrite import free_vars, substitute
from edgekernelbench.lowering.nest import Dot, Quads, Stmt
from edgekernelbench.lowering.plan import StagePlan


class Apart(ValueError):
    """The bytes of an operand do not lie together. The message names the tensor."""

    def __init__(self, factor: Factor, message: str) -> None:
        super().__init__(message)
        self.factor = factor


@dataclass(slots=True)
class DotLanes:
    """The innermost statements of a nest that ends in ``vectorize j, dot4 k``."""

    ctx: Context
    plan: StagePlan
    updater: Updater

    # ---------------------------------------------------------- one by one
    def single(self, box: Box, lanes: int) -> list[Stmt]:
        """All products at a point, each with a statement of its own."""
        axis = self._axis
        out: list[Stmt] = []
        for q in range(box[axis].extent):
            here = {**box, axis: Span(self.ctx.simple(at(box[axis], q)), 1)}
            out += self.updater.update(here, lanes)
        return out

    @property
    def _axis(self) -> Var:
        assert self.plan.dot is not None
        return self.plan.dot

    @property
    def _factors(self) -> Factors:
        assert self.plan.reduce is not None
        found = factors(self.plan.reduce)
        assert found is not None
        return found

    # ---------------------------------------------------------- vectors
    def vector(self, box: Box) -> list[Stmt] | None:
        """The statements for all lanes of the vectorised axis in ``box``; None where the loop over
        the lanes must be an ordinary one.

        What has no bytes in place is refused on every target, whatever its instructions are.
        """
        lane = self.plan.pieces[-1].axis
        moving, still = sides(self._factors, lane)
        if still is None:
            moving, still = self._factors
        kinds = rows_for(self.ctx.target, moving.dtype, still.dtype)
        rows = [*((row.lanes, row) for row in kinds), *((n, WORDS) for n in (16, 8, 4, 2))]
        out: list[Stmt] = []
        start, width = 0, box[lane].extent
        while start < width:
            part = {**box, lane: Span(at(box[lane], start), width - start)}
            made = self._widest(part, rows, moving, still)
            if made is None:
                return None
            out.append(made)
            start += made.lanes
        return out

    def _widest(
        self, box: Box, rows: list[tuple[int, Instruction]], moving: Factor, still: Factor
    ) -> Dot | None:
        """The first lanes of a part, as many as an instruction takes and a tile of the layout
        holds."""
        lane, reason = self.plan.pieces[-1].axis, None
        for lanes, row in rows:
            if lanes > box[lane].extent:
                continue
            try:
                return self._dot(box, lanes, row, moving, still)
            except Apart as found:
                reason = found
        if reason is not None and box[self._axis].extent == WIDTH:
            self._refuse(reason, lane)
        return None

    def _dot(
        self, box: Box, lanes: int, row: Instruction, moving: Factor, still: Factor
    ) -> Dot | None:
        lane, count = self.plan.pieces[-1].axis, box[self._axis].extent
        along = self.ctx.loop_var("lane", 0, lanes - 1)
        byte = self.ctx.loop_var("byte", 0, WIDTH - 1)
        values = {axis: span.base for axis, span in box.items()}
        values[lane] = plus(box[lane].base, core.VarRef(along))
        values[self._axis] = plus(box[self._axis].base, core.VarRef(byte))
        run = _Run(self.ctx, along, byte, values)
        target, where = self._accumulator(box, along)
        form = run.form(target, where)
        if form is None or form.terms.get(core.VarRef(along)) != 1:
            return None
        operands = [run.quads(factor, lanes, count) for factor in (moving, still)]
        if any(o is None for o in operands):
            return None
        a, b = (o for o in operands if o is not None)
        if count < WIDTH and a.moving and b.moving:
            return None  # nothing to put zeros in
        return Dot(target, run.first(where), a, b, lanes, count, row)

    def _accumulator(self, box: Box, lane: Var) -> tuple[Tensor, tuple[Expr, ...]]:
        axis = self.plan.pieces[-1].axis
        here = {**box, axis: Span(plus(box[axis].base, core.VarRef(lane)), 1)}
        target, where = self.updater.target(here, None)
        return target, tuple(self.ctx.simple(index) for index in where)

    def _refuse(self, reason: Apart, lane: Var) -> None:
        axis, load = self._axis.name, reason.factor.load
        dims = [i.var.name if isinstance(i, core.VarRef) else "" for i in load.indices]
        help = f"store it with the four values of `{axis}` last, behind those of `{lane.name}`"
        if axis in dims and all(dims):
            layout = _layout(dims, axis, lane.name if lane.name in dims else "")
            help = f"write `layout {_label(reason.factor)} {layout}`"
        self.ctx.refuse(rules.DOT_LAYOUT, self.plan.stage.name, str(reason), help)


@dataclass(slots=True)
class _Run:
    """Addresses as they run along the lanes and the four values of the reduction axis."""

    ctx: Context
    lane: Var
    byte: Var
    values: dict[Var, Expr]

    def form(self, buffer: Tensor, where: tuple[Expr, ...]) -> Linear | None:
        """The position in memory as a linear form, None if it jumps within the run."""
        out = Linear()
        for dim, index in enumerate(where):
            out = out.plus(linear(index).times(prod(buffer.shape[dim + 1 :])))
        hidden = (atom for atom in out.terms if not isinstance(atom, core.VarRef))
        jumps = any({self.lane, self.byte} & free_vars(atom) for atom in hidden)
        return None if jumps else out

    def first(self, where: tuple[Expr, ...]) -> tuple[Expr, ...]:
        zero = {self.lane: int_const(0), self.byte: int_const(0)}
        return tuple(self.ctx.simple(substitute(index, zero)) for index in where)

    def quads(self, factor: Factor, lanes: int, count: int) -> Quads | None:
        """The bytes of an operand; None when they are out of bounds for fewer than four values.

        Raises:
            Apart: they do not lie together.
        """
        load = factor.load
        indices = tuple(substitute(index, self.values) for index in load.indices)
        buffer, where = self.ctx.address(load.tensor, indices)
        form = self.form(buffer, where)
        if form is None:
            raise Apart(factor, f"`{_label(factor)}` has tiles that the vectors do not fit")
        steps = tuple(form.terms.get(core.VarRef(var), 0) for var in (self.lane, self.byte))
        if steps[1] != 1 or steps[0] not in (0, WIDTH):
            along = f"{steps[0]} elements along the lanes and by {steps[1]} along the four values"
            raise Apart(factor, f"`{_label(factor)}` moves by {along}, not by {WIDTH} and 1")
        moving = steps[0] == WIDTH
        if count < WIDTH and moving:
            low, high = range_of_linear(form, self.ctx.ranges)
            if low < 0 or high >= buffer.size:
                return None
        return Quads(buffer, self.first(where), moving, factor.bias)


def _label(factor: Factor) -> str:
    """The tensor as its author knows it."""
    return factor.load.tensor.name.removesuffix(".packed")


def _layout(dims: list[str], axis: str, lane: str) -> str:
    """``[k, j] -> [j // 16, k // 4, j % 16, k % 4]``; without a lane ``[k, i] -> [i, k]``."""
    rest = [d for d in dims if d not in (axis, lane)]
    target = [*rest, axis]
    if lane:
        target = [f"{lane} // 16", *rest, f"{axis} // {WIDTH}", f"{lane} % 16", f"{axis} % {WIDTH}"]
    return f"[{', '.join(dims)}] -> [{', '.join(target)}]"
