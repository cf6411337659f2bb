"""Emission of waves: two ``seq`` loops whose iterations run by diagonals.

Iterations are counted (u, v) from 0 in the direction of the loops. On a diagonal
``d = factor * u + v`` one of them runs, and the other follows: ``u = d - v`` with factor 1, or
``v = d - factor * u``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Loop, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.boxes import ZERO, Box, Span
from edgekernelbench.lowering.emit.context import Context, Storage, allocations, seq
from edgekernelbench.lowering.emit.cuts import cutter
from edgekernelbench.lowering.emit.lanes import map_lanes
from edgekernelbench.lowering.emit.skew import Grid
from edgekernelbench.lowering.expr.arith import (
    divided,
    larger,
    minus,
    plus,
    shifted,
    smaller,
    times,
)
from edgekernelbench.lowering.expr.linear import int_const
from edgekernelbench.lowering.nest import Alloc, For, If, LetValue, Seq, Stmt
from edgekernelbench.lowering.plan import Wave

Body = Callable[[], list[Stmt]]
Inside = Callable[[Expr, Expr], list[Stmt]]
"""What one iteration or tile does, at (u, v)."""


@dataclass(frozen=True, slots=True)
class Part:
    """Iterations ``u0 <= u < u1``, ``v0 <= v < v1``; ``rows`` and ``columns`` at most."""

    u0: Expr
    u1: Expr
    v0: Expr
    v1: Expr
    rows: int
    columns: int

    @classmethod
    def whole(cls, rows: int, columns: int) -> Part:
        return cls.fixed(range(rows), range(columns))

    @classmethod
    def fixed(cls, u: range, v: range) -> Part:
        top, bottom = int_const(u.start), int_const(u.stop)
        left, right = int_const(v.start), int_const(v.stop)
        return cls(top, bottom, left, right, len(u), len(v))

    def within(self, other: Part) -> Part:
        """What both have in common; it may be empty."""
        return Part(
            larger(self.u0, other.u0),
            smaller(self.u1, other.u1),
            larger(self.v0, other.v0),
            smaller(self.v1, other.v1),
            min(self.rows, other.rows),
            min(self.columns, other.columns),
        )

    def run(self, d: Expr, factor: int, by_u: bool) -> tuple[Expr, Expr]:
        """First value of what runs on a diagonal, u or v, and the one behind its last."""
        if by_u:
            low = shifted(divided(minus(d, self.v1), factor), 1)
            high = shifted(divided(minus(d, self.v0), factor), 1)
            return larger(self.u0, low), smaller(self.u1, high)
        low, high = shifted(minus(d, self.u1), 1), shifted(minus(d, self.u0), 1)
        return larger(self.v0, low), smaller(self.v1, high)

    def longest(self, factor: int) -> int:
        """Most iterations that a diagonal can have."""
        return min(self.rows, -(-self.columns // factor))


@dataclass(frozen=True, slots=True)
class WaveEmitter:
    """Emits one wave.

    Attributes:
        body: the statements of one iteration.
        own: allocations that each tile (or iteration) of a parallel wave has for itself.
        exprs: what an iteration evaluates, where that is single values; none otherwise.
        temporaries: stages that live for one iteration, where iterations are lanes.
    """

    ctx: Context
    grid: Grid
    body: Body
    own: Body
    exprs: tuple[Expr, ...]
    temporaries: tuple[core.Stage, ...]

    @property
    def wave(self) -> Wave:
        return self.grid.wave

    def emit(self) -> list[Stmt]:
        grid, wave = self.grid, self.wave
        if grid.rows <= 0 or grid.columns <= 0:
            return []
        for loop in (grid.outer, grid.inner):
            self.ctx.ranges[loop.var] = (loop.lo, loop.hi - 1)
        everything = Part.whole(grid.rows, grid.columns)
        if wave.tile is not None:
            rows, columns = -(-grid.rows // wave.tile[0]), -(-grid.columns // wave.tile[1])
            return self._diagonals(Part.whole(rows, columns), self._tile)
        if grid.in_runs:
            return self._runs(everything)
        return self._diagonals(everything, self._one)

    def _var(self, name: str, low: int, high: int) -> Var:
        return self.ctx.loop_var(name, low, high)

    def _let(
        self, name: str, value: Expr, out: list[Stmt], known: tuple[int, int] | None = None
    ) -> Expr:
        """The value as a scalar; ``known``: a range that it lies in wherever the scalar exists."""
        simple = self.ctx.simple(value)
        if isinstance(simple, core.Const | core.VarRef):
            return simple
        var = self._var(name, *(known or self.ctx.range_of(simple)))
        out.append(LetValue(var, simple))
        return core.VarRef(var)

    def _steps(self, var: Var, low: Expr, count: Expr, body: list[Stmt]) -> Stmt:
        return For(var, self.ctx.simple(low), self.ctx.simple(count), "serial", Seq(tuple(body)))

    # ---------------------------------------------------------- diagonals of single things
    def _diagonals(self, part: Part, inside: Inside) -> list[Stmt]:
        """All diagonals of a grid in their order; on each of them one iteration after another, or
        all at once."""
        factor = self.wave.factor
        last = factor * (part.rows - 1) + part.columns - 1
        d = self._var("diagonal", 0, last)
        by_u, here = self.grid.by_u, core.VarRef(d)
        most = (part.rows if by_u else part.columns) - 1
        out: list[Stmt] = []
        low, high = part.run(here, factor, by_u)
        first = self._let("first", low, out, (0, most))
        behind = self._let("behind", high, out, (1, most + 1))
        k = self._var("k", 0, part.longest(factor) - 1)
        run = self._var("u" if by_u else "v", 0, most)
        at = LetValue(run, self.ctx.simple(plus(first, core.VarRef(k))))
        if self.wave.parallel:
            test = core.Binary("lt", core.VarRef(run), behind, DType.BOOL)
            with self.ctx.frame() as mine:
                body = [*self.own(), *inside(*self._point(here, run, by_u))]
            one = [*allocations(mine), at, If(test, seq(body))]
            longest = part.longest(factor)
            kind = "parallel" if longest > 1 else "serial"
            out.append(self.ctx.loop(k, longest, kind, one))
        else:
            one = [at, *inside(*self._point(here, run, by_u))]
            out.append(self._steps(k, ZERO, minus(behind, first), one))
        return [self.ctx.loop(d, last + 1, "serial", out)]

    def _point(self, d: Expr, run: Var, by_u: bool) -> tuple[Expr, Expr]:
        here = core.VarRef(run)
        other = plus(d, here, -self.wave.factor)
        return (here, other) if by_u else (other, here)

    def _one(self, u: Expr, v: Expr) -> list[Stmt]:
        """One iteration, its indices bound as scalars."""
        pairs = (self.grid.outer, u), (self.grid.inner, v)
        lets = [LetValue(loop.var, self.ctx.simple(index_of(loop, e))) for loop, e in pairs]
        return [*lets, *self.body()]

    # ---------------------------------------------------------- tiles
    def _tile(self, u: Expr, v: Expr) -> list[Stmt]:
        assert self.wave.tile is not None
        height, width = self.wave.tile
        grid, out = self.grid, list[Stmt]()
        u0, u1 = self._side("u", u, height, grid.rows, out)
        v0, v1 = self._side("v", v, width, grid.columns, out)
        part = Part(u0, u1, v0, v1, height, width)
        if self.wave.lanes is not None:
            return [*out, *self._runs(part)]
        for region in self._regions():
            with self._known(region):
                out += self._in_order(region.within(part))
        return out

    def _side(
        self, name: str, number: Expr, step: int, count: int, out: list[Stmt]
    ) -> tuple[Expr, Expr]:
        """First iteration of one loop in a tile, and the one behind the last."""
        first = self._let(f"{name}_first", times(number, step), out, (0, count - 1))
        behind = smaller(shifted(first, step), int_const(count))
        return first, self._let(f"{name}_behind", behind, out, (1, count))

    def _in_order(self, part: Part) -> list[Stmt]:
        """The iterations of a tile in the order of the program."""
        out: list[Stmt] = []
        u0 = self._let("u0", part.u0, out, (0, self.grid.rows - 1))
        v0 = self._let("v0", part.v0, out, (0, self.grid.columns - 1))
        height, width = (larger(minus(*x), ZERO) for x in ((part.u1, u0), (part.v1, v0)))
        columns = self._let("columns", width, out)
        u, v = self._var("u", 0, self.grid.rows - 1), self._var("v", 0, self.grid.columns - 1)
        body = self._one(core.VarRef(u), core.VarRef(v))
        inner = self._steps(v, v0, columns, body)
        return [*out, self._steps(u, u0, height, [inner])]

    # ---------------------------------------------------------- diagonals as runs
    def _regions(self) -> list[Part]:
        """The grid cut where conditions on the indices are decided.

        Earlier ones lie above or left of later ones, so tiles may run region by region.
        """
        cuts = cutter(list(self.exprs), self.ctx.ranges)
        loops = (self.grid.outer, self.grid.inner)
        box: Box = {x.var: Span(int_const(x.lo), x.hi - x.lo) for x in loops}
        cut = ([_counted(x, *p) for p in cuts(x.var, box)] for x in loops)
        u, v = (sorted(parts, key=lambda part: part.start) for parts in cut)
        return [Part.fixed(rows, columns) for rows in u for columns in v]

    def _runs(self, part: Part) -> list[Stmt]:
        """The diagonals of a part one by one, each of them a run, in lanes if there are any."""
        factor = self.wave.factor
        d = self._var("diagonal", 0, self.grid.diagonals - 1)
        low = plus(part.v0, part.u0, factor)
        count = plus(minus(part.v1, low), shifted(part.u1, -1), factor)
        body: list[Stmt] = []
        for region in self._regions():
            body += self._region(core.VarRef(d), region.within(part), region)
        return [self._steps(d, low, count, body)]

    def _region(self, d: Expr, part: Part, region: Part) -> list[Stmt]:
        """What a diagonal has in one region, in vectors: full ones, then narrower ones."""
        by_u = self.grid.by_u
        out: list[Stmt] = []
        longest = part.longest(self.wave.factor)
        low, high = part.run(d, self.wave.factor, by_u)
        first = self._let("first", low, out)  # beyond the region where that has no iteration
        left = larger(minus(high, first), ZERO)
        count = self._let("count", left, out, (0, longest))
        lanes = 1 if self.wave.lanes is None else map_lanes(self.ctx.target)
        width = 1 << (min(lanes, longest).bit_length() - 1)
        with self._known(region):
            out += self._vectors(d, first, count, width, longest)
            while width > 1:
                width //= 2
                start = plus(first, divided(count, 2 * width), 2 * width)
                body = self._vector(d, start, width)
                odd = core.Binary("mod", divided(count, width), int_const(2), DType.S32)
                test = core.Binary("eq", odd, int_const(1), DType.BOOL)
                out.append(If(self.ctx.simple(test), seq(body)))
        return [seq(out)]

    def _vectors(self, d: Expr, first: Expr, count: Expr, width: int, longest: int) -> list[Stmt]:
        """As many vectors of the full width as there are."""
        if longest < 2 * width:
            test = core.Binary("ge", count, int_const(width), DType.BOOL)
            return [If(test, seq(self._vector(d, first, width)))]
        k = self._var("k", 0, longest // width - 1)
        body = self._vector(d, plus(first, core.VarRef(k), width), width)
        return [self._steps(k, ZERO, divided(count, width), body)]

    @contextmanager
    def _known(self, region: Part) -> Iterator[None]:
        """Within the block the indices lie in a region."""
        saved = dict(self.ctx.ranges)
        pairs = (self.grid.outer, region.u0, region.u1), (self.grid.inner, region.v0, region.v1)
        for loop, first, behind in pairs:
            assert isinstance(first, core.Const) and isinstance(behind, core.Const)
            ends = [_index(loop, int(first.value)), _index(loop, int(behind.value) - 1)]
            self.ctx.ranges[loop.var] = (min(ends), max(ends))
        try:
            yield
        finally:
            for loop in (self.grid.outer, self.grid.inner):
                self.ctx.ranges[loop.var] = saved[loop.var]

    def _vector(self, d: Expr, start: Expr, width: int) -> list[Stmt]:
        """The iterations ``start ..`` of a diagonal, all stages of them, in lanes."""
        ctx, grid = self.ctx, self.grid
        lane = self._var("lane", 0, width - 1) if width > 1 else None
        run = start if lane is None else plus(start, core.VarRef(lane))
        other = plus(d, run, -self.wave.factor)
        u, v = (run, other) if grid.by_u else (other, run)
        here = ZERO if lane is None else core.VarRef(lane)
        out: list[Stmt] = []
        storages: dict[str, Storage] = {}
        for stage in self.temporaries:
            buffer = ctx.buffer(stage.name, stage.tensor.dtype, (width,))
            out.append(Alloc(buffer, "local"))
            storages[stage.name] = Storage(buffer, stage.lhs, (here,))
        ctx.derived.update({grid.outer.var: index_of(grid.outer, u)})
        ctx.derived.update({grid.inner.var: index_of(grid.inner, v)})
        with ctx.stored(storages):
            body = self.body()
        del ctx.derived[grid.outer.var], ctx.derived[grid.inner.var]
        return [*out, *body] if lane is None else [*out, ctx.loop(lane, width, "vectorize", body)]


def index_of(loop: Loop, number: Expr) -> Expr:
    """The index of an iteration counted from 0 in the direction of the loop."""
    if loop.reverse:
        return minus(int_const(loop.hi - 1), number)
    return shifted(number, loop.lo)


def _index(loop: Loop, number: int) -> int:
    return loop.hi - 1 - number if loop.reverse else loop.lo + number


def _counted(loop: Loop, start: int, count: int) -> range:
    """The iterations whose index is ``start`` .. above the lowest, counted in its direction."""
    if loop.reverse:
        start = loop.hi - loop.lo - start - count
    return range(start, start + count)
