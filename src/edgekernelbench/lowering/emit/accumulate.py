"""Reductions: where the accumulator lives, how it starts, is updated, folded and handed on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Reduce, Tensor, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.boxes import Box, Span
from edgekernelbench.lowering.emit.combine import (
    Parts,
    add_element,
    bind,
    merge_lanes,
    needed_parts,
)
from edgekernelbench.lowering.emit.context import Context, reload
from edgekernelbench.lowering.expr.linear import int_const, linear, to_expr
from edgekernelbench.lowering.nest import If, Seq, Stmt, Store

_BINARY: dict[str, core.ArithOp] = {
    "sum": "add", "prod": "mul", "max": "max", "min": "min", "any": "or", "all": "and",
}  # fmt: skip

Address = Callable[[Box, Expr | None], tuple[Tensor, tuple[Expr, ...]]]
"""Where the accumulator of a box is: (box, lane or None) -> buffer and indices."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a thread of a block keeps of one axis of a tile.

    Attributes:
        digits: of the loops of the axis, outermost first: the range that one cuts, its step, and
            how many of its iterations the thread has (one, where each thread has another).
    """

    digits: tuple[tuple[int, int, int], ...]

    @property
    def size(self) -> int:
        return prod(count for _, _, count in self.digits)

    def slot(self, offset: Expr) -> Expr:
        """Where the thread keeps the element that lies ``offset`` behind the first of the tile."""
        out: Expr = int_const(0)
        for reach, step, count in self.digits:
            if count > 1:
                digit = core.Binary("mod", offset, int_const(reach), DType.S32)
                digit = core.Binary("fdiv", digit, int_const(step), DType.S32)
                out = core.Binary("mul", out, int_const(count), DType.S32)
                out = core.Binary("add", out, digit, DType.S32)
        return out


@dataclass(frozen=True, slots=True)
class Tile:
    """A private accumulator: one element per value of ``axes`` from the entry box on, per lane.

    ``value`` holds the running result; ``position`` the index, for argmax and argmin; ``parts``
    the components that a combiner needs, of which the wanted one is ``value``. Of axes in
    ``shares`` each thread of a block keeps a part; ``simple`` simplifies where that is.
    """

    axes: tuple[Var, ...]
    entry: Box
    lanes: int
    value: Tensor
    position: Tensor | None
    parts: Parts = field(default_factory=dict)
    shares: Mapping[Var, Share] = field(default_factory=dict)
    simple: Callable[[Expr], Expr] = lambda expr: expr

    @property
    def buffers(self) -> tuple[Tensor, ...]:
        """All that a partial result consists of."""
        if self.parts:
            return tuple(self.parts.values())
        return (self.value,) if self.position is None else (self.value, self.position)

    def result(self, part: int | None = None) -> Tensor:
        """The buffer that holds what the reduction yields, or a further component of it."""
        if part is not None:
            return self.parts[part]
        return self.value if self.position is None else self.position

    def where(self, box: Box, lane: Expr | None) -> tuple[Expr, ...]:
        out: list[Expr] = []
        for axis in self.axes:
            offset = linear(box[axis].base).minus(linear(self.entry[axis].base))
            share = self.shares.get(axis)
            place = to_expr(offset)
            out.append(place if share is None else self.simple(share.slot(place)))
        if self.lanes > 1:
            out.append(int_const(0) if lane is None else lane)
        return tuple(out)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Where the results of one chunk of a reduction go, when it is split over threads.

    Attributes:
        tile: the partial results of all chunks; ``axis`` numbers them, ``index`` is this one's.
    """

    tile: Tile
    axis: Var
    index: Expr

    def where(self, box: Box) -> tuple[Expr, ...]:
        return self.tile.where({**box, self.axis: Span(self.index, 1)}, None)


Make = Callable[[str, DType], Tensor]
"""Provides a buffer: (name, dtype) -> buffer."""


def accumulator(
    reduce: Reduce, name: str, wanted: Iterable[int], make: Make
) -> tuple[Tensor, Tensor | None, Parts]:
    """The buffers of a `Tile`: value, position, parts.

    Args:
        wanted: further components of the reduction that are asked for.
    """
    combiner = reduce.combiner
    if combiner is None:
        arg = reduce.op in ("argmax", "argmin")
        value = make(f"{name}.acc", reduce.body.dtype if arg else reduce.dtype)
        return value, make(f"{name}.at", DType.S32) if arg else None, {}
    parts = {
        k: make(f"{name}.{combiner.left[k].name}", combiner.init[k].dtype)
        for k in needed_parts(combiner, [reduce.part, *wanted])
    }
    return parts[reduce.part], None, parts


def start_value(reduce: Reduce) -> core.Const:
    """What the accumulator starts from; for argmax the lowest value."""
    if reduce.op in ("argmax", "argmin"):
        op = "max" if reduce.op == "argmax" else "min"
        return core.Const(core.identity(op, reduce.body.dtype), reduce.body.dtype)
    if reduce.combiner is not None:
        return reduce.combiner.init[reduce.part]
    return core.Const(core.identity(reduce.op, reduce.dtype), reduce.dtype)


def combine(reduce: Reduce, old: Expr, new: Expr) -> Expr:
    """One step of a reduction that is not argmax or argmin."""
    return core.Binary(_BINARY[reduce.op], old, new, reduce.dtype)


@dataclass(slots=True)
class Updater:
    """Emits the innermost statement of a reduction.

    Attributes:
        plain: components of an element and condition, to be evaluated only where it holds.
        eager: the same, safe to evaluate anywhere.
        in_order: the terms of one accumulator come in the order of their positions.
    """

    ctx: Context
    reduce: Reduce
    plain: tuple[tuple[Expr, ...], Expr | None]
    eager: tuple[tuple[Expr, ...], Expr | None]
    tile: Tile | None
    target: Address
    in_order: bool

    def update(self, box: Box, lanes: int, lane: Expr | None = None) -> list[Stmt]:
        values = {axis: span.base for axis, span in box.items()}
        lazy = lanes == 1
        body, where = self.plain if lazy else self.eager
        before: list[Stmt] = []
        cond: Expr | None = None
        if where is not None:
            before, cond = self.ctx.value(where, values)
        if cond is not None and lazy and not isinstance(cond, core.Const):
            inside = self._element(body, box, lane, None, values)
            return [*before, If(cond, Seq(tuple(inside)))]
        if isinstance(cond, core.Const):
            if not cond.value:
                return []
            cond = None
        return [*before, *self._element(body, box, lane, cond, values)]

    def _element(
        self,
        items: tuple[Expr, ...],
        box: Box,
        lane: Expr | None,
        cond: Expr | None,
        values: dict[Var, Expr],
    ) -> list[Stmt]:
        combiner, tile = self.reduce.combiner, self.tile
        if combiner is None or tile is None:
            lets, new = self.ctx.value(items[0], values)
            return [*lets, *self._step(box, lane, new, cond, values)]
        out: list[Stmt] = []
        element: dict[int, Expr] = {}
        for k in tile.parts:
            lets, element[k] = self.ctx.value(items[k], values)
            out += lets
        where = tile.where(box, lane)
        return out + add_element(self.ctx, combiner, tile.parts, where, element, cond)

    def _step(
        self, box: Box, lane: Expr | None, new: Expr, cond: Expr | None, values: dict[Var, Expr]
    ) -> list[Stmt]:
        if self.tile is not None and self.tile.position is not None:
            return self._arg_step(self.tile, box, lane, new, cond, values)
        buffer, where = self.target(box, lane)
        if cond is not None:
            new = core.Select(cond, new, start_value(self.reduce), new.dtype)
        old = reload(buffer, where)
        return [Store(buffer, where, combine(self.reduce, old, new))]

    def _arg_step(
        self,
        tile: Tile,
        box: Box,
        lane: Expr | None,
        new: Expr,
        cond: Expr | None,
        values: dict[Var, Expr],
    ) -> list[Stmt]:
        assert tile.position is not None
        where = tile.where(box, lane)
        old, old_at = reload(tile.value, where), core.Load(tile.position, where)
        out: list[Stmt] = []
        value = bind(self.ctx, "v", new, out)
        here = self.ctx.simple(core.Cast(self._position(values), DType.S32))
        if self.in_order:
            test = _first_or_better(self.reduce.op, value, old, old_at)
        else:
            test = _wins(self.reduce.op, old, value, old_at, here)
        better = bind(self.ctx, "better", test, out)
        if cond is not None:
            better = core.Binary("and", cond, better, DType.BOOL)
        out.append(Store(tile.value, where, core.Select(better, value, old, value.dtype)))
        out.append(Store(tile.position, where, core.Select(better, here, old_at, DType.S32)))
        return out

    def _position(self, values: dict[Var, Expr]) -> Expr:
        flat: Expr = int_const(0)
        for axis in self.reduce.axes:
            scaled = core.Binary("mul", flat, int_const(axis.extent), DType.S32)
            flat = core.Binary("add", scaled, values[axis.var], DType.S32)
        return flat

    # ---------------------------------------------------------- SIMD partial results
    def fold(self, tile: Tile, box: Box) -> list[Stmt]:
        """Brings the lanes of one accumulator together in lane 0, as a tree."""
        out: list[Stmt] = []
        width = tile.lanes // 2
        while width:
            lane = self.ctx.loop_var("l", 0, width - 1)
            here: Expr = core.VarRef(lane) if width > 1 else int_const(0)
            there = self.ctx.simple(core.Binary("add", here, int_const(width), DType.S32))
            places = tile.where(box, here), tile.where(box, there)
            body = merge_step(self.ctx, self.reduce, tile, *places)
            out += [self.ctx.loop(lane, width, "vectorize", body)] if width > 1 else body
            width //= 2
        return out


def merge_step(
    ctx: Context, reduce: Reduce, tile: Tile, here: tuple[Expr, ...], there: tuple[Expr, ...]
) -> list[Stmt]:
    """Takes the partial result at ``there`` into the one at ``here``."""
    if reduce.combiner is not None:
        return merge_lanes(ctx, reduce.combiner, tile.parts, here, there)
    a, b = reload(tile.value, here), reload(tile.value, there)
    if tile.position is None:
        return [Store(tile.value, here, combine(reduce, a, b))]
    i, j = core.Load(tile.position, here), core.Load(tile.position, there)
    out: list[Stmt] = []
    a, b = bind(ctx, "a", a, out), bind(ctx, "b", b, out)
    i, j = bind(ctx, "i", i, out), bind(ctx, "j", j, out)
    there_wins = bind(ctx, "wins", _there_wins(reduce.op, a, b, i, j), out)
    out.append(Store(tile.value, here, core.Select(there_wins, b, a, a.dtype)))
    out.append(Store(tile.position, here, core.Select(there_wins, j, i, DType.S32)))
    return out


def _any(first: Expr, *more: Expr) -> Expr:
    for test in more:
        first = core.Binary("or", first, test, DType.BOOL)
    return first


def _both(a: Expr, b: Expr) -> Expr:
    return core.Binary("and", a, b, DType.BOOL)


def _test(op: core.CompareOp, a: Expr, b: Expr) -> Expr:
    return core.Binary(op, a, b, DType.BOOL)


def _first_or_better(op: str, new: Expr, old: Expr, old_at: Expr) -> Expr:
    """Whether a later element takes over: the first does, a better one, a number from a NaN."""
    better = _test("gt" if op == "argmax" else "lt", new, old)
    first = _test("lt", old_at, int_const(0))
    if not new.dtype.is_float:
        return _any(better, first)
    return _any(better, first, _both(_test("ne", old, old), _test("eq", new, new)))


def _there_wins(op: str, a: Expr, b: Expr, i: Expr, j: Expr) -> Expr:
    """Whether (b, j) beats (a, i), and there is one."""
    return _both(_test("ge", j, int_const(0)), _wins(op, a, b, i, j))


def _wins(op: str, a: Expr, b: Expr, i: Expr, j: Expr) -> Expr:
    """Whether (b, j) beats (a, i): there is no (a, i), or it is better, or as good and earlier."""
    better = _test("gt" if op == "argmax" else "lt", b, a)
    earlier = _test("lt", j, i)
    wins = _any(_test("lt", i, int_const(0)), better, _both(_test("eq", a, b), earlier))
    if a.dtype.is_float:
        over_nan = _both(_test("ne", a, a), _any(_test("eq", b, b), earlier))
        wins = _any(wins, over_nan)
    return wins
