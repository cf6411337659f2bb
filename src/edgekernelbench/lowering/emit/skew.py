"""Storage of the histories of a wave: where it runs along diagonals, by diagonals, too.

Element (u, v) lies in row ``(factor * u + v) % slabs``, in the column of one of its loops: what a
diagonal reads and writes is contiguous along the lanes. The order of a wave finishes diagonals one
by one, so ``age + 1`` slabs do when nothing older than ``age`` diagonals is read. Square tiles on
one diagonal of tiles reach over ``2 * side - 1`` diagonals of elements, all of which are written
at once; other tiles keep all.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Loop, Stage, Var
from edgekernelbench.lowering.expr.linear import Linear, int_const, linear, to_expr
from edgekernelbench.lowering.expr.ranges import range_of_linear
from edgekernelbench.lowering.graph import Graph, Place, axis_ranges
from edgekernelbench.lowering.plan import Plan, Wave, extents_of, own_axes

MIN_ELEMENTS = 16


@dataclass(frozen=True, slots=True)
class Grid:
    """The iterations of a wave, counted from 0 in the direction of each loop."""

    wave: Wave
    outer: Loop
    inner: Loop

    @classmethod
    def around(cls, wave: Wave, place: Place) -> Grid:
        """The grid of the wave that a stage stands in."""
        at = next(k for k, loop in enumerate(place.loops) if loop.var == wave.outer)
        return cls(wave, place.loops[at], place.loops[at + 1])

    @property
    def rows(self) -> int:
        return self.outer.hi - self.outer.lo

    @property
    def columns(self) -> int:
        return self.inner.hi - self.inner.lo

    @property
    def diagonals(self) -> int:
        return self.wave.factor * (self.rows - 1) + self.columns

    @property
    def by_u(self) -> bool:
        """Whether the outer loop is what runs along a diagonal."""
        if self.wave.lanes is not None:
            return self.wave.lanes == self.wave.outer
        return self.wave.factor > 1

    @property
    def in_runs(self) -> bool:
        """Whether the iterations of a diagonal follow each other, as lanes or as plain values."""
        wave = self.wave
        if wave.lanes is not None:
            return True
        return wave.tile is None and not wave.parallel and self.is_single_valued

    @property
    def is_single_valued(self) -> bool:
        """Whether all stages inside are one value without a reduction."""
        return all(isinstance(x, Stage) and not extents_of(x) for x in self.inner.body)

    @property
    def run(self) -> Loop:
        """The loop that runs along a diagonal: its iterations are neighbours in storage."""
        return self.outer if self.by_u else self.inner

    def diagonal(self, outer: Expr, inner: Expr) -> Linear:
        """The number of the diagonal that a pair of indices is on."""
        scaled = count(outer, self.outer).times(self.wave.factor)
        return scaled.plus(count(inner, self.inner))


def count(index: Expr, loop: Loop) -> Linear:
    """How many iterations of a loop come before the one with this index."""
    form = linear(index)
    return Linear({}, loop.hi - 1).minus(form) if loop.reverse else form.shifted(-loop.lo)


@dataclass(frozen=True, slots=True)
class Skew:
    """The dimensions of the two loops become a row, that of the diagonal, and a column.

    Attributes:
        row, column: where an element is, over the indices of the loops.
        shape: of both dimensions.
    """

    wave: Wave
    row: Expr
    column: Expr
    shape: tuple[int, int]

    def applied(
        self, formals: tuple[Var, ...], index: tuple[Expr, ...], shape: tuple[int, ...]
    ) -> tuple[tuple[Expr, ...], tuple[int, ...]]:
        """Index and shape of a stage with these dimensions."""
        places: list[Expr] = []
        extents: list[int] = []
        both = self.wave.outer in formals
        for var, expr, extent in zip(formals, index, shape, strict=True):
            if var == self.wave.outer:
                places, extents = [*places, self.row], [*extents, self.shape[0]]
            elif var == self.wave.inner:
                places += [self.column] if both else [self.row, self.column]
                extents += self.shape[1:] if both else self.shape
            else:
                places, extents = [*places, expr], [*extents, extent]
        return tuple(places), tuple(extents)


def lives_in_lanes(plan: Plan, name: str) -> bool:
    """Whether a stage is one value for each lane of a wave."""
    wave = plan.wave_around(name)
    if wave is None or wave.lanes is None:
        return False
    return wave.inner not in plan.graph.stage(name).lhs


def skewed(plan: Plan, name: str, wave: Wave) -> Skew | None:
    """How a stage in the body of a wave is stored, None where it is as its left side says.

    Rows of diagonals cost index arithmetic where iterations do not run along them: there they pay
    for elements that are long vectors, and where they save memory.
    """
    place = plan.graph.places[name]
    stage = place.stage
    if wave.inner not in stage.lhs:
        return None
    grid = Grid.around(wave, place)
    slabs, run = _slabs(plan.graph, name, grid), grid.run
    shape = slabs, run.hi - run.lo
    plain = grid.rows, grid.columns
    short = prod(own_axes(stage).values()) < MIN_ELEMENTS
    if not grid.in_runs and (short or prod(plain) <= prod(shape)):
        if wave.outer in stage.lhs:
            return None
        row, column = ((core.VarRef(x.var), x) for x in (grid.outer, grid.inner))
        return Skew(wave, to_expr(count(*row)), to_expr(count(*column)), plain)
    diagonal = to_expr(grid.diagonal(core.VarRef(wave.outer), core.VarRef(wave.inner)))
    if slabs < grid.diagonals:
        diagonal = core.Binary("mod", diagonal, int_const(slabs), diagonal.dtype)
    return Skew(wave, diagonal, to_expr(count(core.VarRef(run.var), run)), shape)


def _pair(wave: Wave) -> tuple[Var, Var]:
    return wave.outer, wave.inner


def _slabs(graph: Graph, name: str, grid: Grid) -> int:
    """How many diagonals must be kept."""
    place, tile = graph.places[name], grid.wave.tile
    age = 0
    for found in graph.reads[name]:
        reader = graph.places[found.reader]
        age = max(age, _age(place, reader, found.load, grid))
    at_once = 1
    if tile is not None:
        side = max(tile)
        at_once = 2 * side - 1 if min(tile) == side else grid.diagonals
    return min(grid.diagonals, age + at_once)


def _age(place: Place, reader: Place, load: core.Load, grid: Grid) -> int:
    """How many diagonals ago what is read was computed, at most."""
    then = [core.VarRef(var) for var in _pair(grid.wave)]
    for k, var in enumerate(_pair(grid.wave)):
        if var in place.stage.lhs:
            then[k] = load.indices[place.stage.lhs.index(var)]  # type: ignore[call-overload]
    now = Linear({}, grid.diagonals - 1)
    if _is_current(place, reader, load, grid):
        now = grid.diagonal(*(core.VarRef(var) for var in _pair(grid.wave)))
    ranges = axis_ranges(reader)
    _, most = range_of_linear(now.minus(grid.diagonal(*then)), ranges)
    return most


def _is_current(place: Place, reader: Place, load: core.Load, grid: Grid) -> bool:
    """Whether the read stays in the running iteration of the loops around the wave."""
    if grid.wave.outer not in reader.body:
        return False
    for loop in place.loops[: place.loops.index(grid.outer)]:
        if loop.var in place.stage.lhs:
            index = load.indices[place.stage.lhs.index(loop.var)]
            if not (isinstance(index, core.VarRef) and index.var == loop.var):
                return False
    return True
