"""Vectorised loops over a part of an axis that begins anywhere, with a border somewhere in it.

Where the tile of a stencil lies is known only when it runs, so its loops cannot be cut at the
border beforehand as `cuts` does. They are cut when they run instead: single elements up to the
interior, vectors without a test inside it, single elements behind it.
"""

from __future__ import annotations

from collections.abc import Callable

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Var
from edgekernelbench.lowering.emit.boxes import Box, Span
from edgekernelbench.lowering.emit.context import Context
from edgekernelbench.lowering.expr.linear import const_value, int_const
from edgekernelbench.lowering.nest import For, LetValue, Seq, Stmt

Interior = Callable[[Var, Box], tuple[int, int] | None]
"""First and last value of an axis between which no test is open; None: no need to cut."""

Leaf = Callable[[Box, int], list[Stmt]]


class Bordered:
    """Emits the loops over one vectorised axis of a box."""

    def __init__(self, ctx: Context, axis: Var, box: Box, lanes: int, leaf: Leaf) -> None:
        self._ctx = ctx
        self._axis = axis
        self._box = box
        self._lanes = lanes
        self._leaf = leaf
        self._base = box[axis].base
        self._extent = box[axis].extent

    def emit(self, first: int, last: int) -> list[Stmt]:
        """The axis' span, with its interior ``first .. last``."""
        out: list[Stmt] = []
        low, high = self._ctx.range_of(self._base)
        zero, end = int_const(0), int_const(self._extent)
        start = self._let("start", self._between(self._minus(first), zero, end), out)
        stop = self._let("stop", self._between(self._minus(last + 1), start, end), out)
        out += self._singles(zero, start, (low, first - 1))
        done: Expr = start
        if last - first + 1 >= self._lanes:
            inner = core.Binary("sub", stop, start, stop.dtype)
            lanes = int_const(self._lanes)
            full = self._let("full", core.Binary("fdiv", inner, lanes, inner.dtype), out)
            out += self._vectors(start, full, first, last)
            size = core.Binary("mul", full, lanes, full.dtype)
            done = self._let("done", core.Binary("add", start, size, size.dtype), out)
        out += self._singles(done, stop, (first, last))
        out += self._singles(stop, end, (last + 1, high + self._extent - 1))
        return out

    def _minus(self, value: int) -> Expr:
        """How far ``value`` lies behind the first value of the span."""
        return core.Binary("sub", int_const(value), self._base, self._base.dtype)

    @staticmethod
    def _between(value: Expr, low: Expr, high: Expr) -> Expr:
        least = core.Binary("max", value, low, value.dtype)
        return core.Binary("min", least, high, value.dtype)

    def _let(self, name: str, value: Expr, out: list[Stmt]) -> Expr:
        value = self._ctx.simple(value)
        if const_value(value) is not None:
            return value
        var = self._ctx.loop_var(name, 0, self._extent)
        out.append(LetValue(var, value))
        return core.VarRef(var)

    def _point(self, offset: Expr, least: int, most: int) -> tuple[Stmt, Var]:
        """Binds the axis' value at an offset of the span, with what is known about it."""
        var = self._ctx.loop_var(self._axis.name, least, most)
        value = core.Binary("add", self._base, offset, self._base.dtype)
        return LetValue(var, self._ctx.simple(value)), var

    def _singles(self, start: Expr, stop: Expr, known: tuple[int, int]) -> list[Stmt]:
        low, high = known
        count = self._ctx.simple(core.Binary("sub", stop, start, stop.dtype))
        if low > high or const_value(count) == 0 or not self._ctx.spend():
            return []
        var = self._ctx.loop_var(f"{self._axis.name}_s", 0, self._extent - 1)
        offset = core.Binary("add", start, core.VarRef(var), start.dtype)
        let, point = self._point(offset, low, high)
        body = self._leaf({**self._box, self._axis: Span(core.VarRef(point), 1)}, 1)
        return [For(var, int_const(0), count, "serial", Seq((let, *body)))]

    def _vectors(self, start: Expr, count: Expr, first: int, last: int) -> list[Stmt]:
        ctx, lanes = self._ctx, self._lanes
        if not ctx.spend():
            return []
        block = ctx.loop_var(f"{self._axis.name}_v", 0, (self._extent - 1) // lanes)
        moved = core.Binary("mul", core.VarRef(block), int_const(lanes), start.dtype)
        offset = core.Binary("add", start, moved, start.dtype)
        let, point = self._point(offset, first, last - lanes + 1)
        lane = ctx.loop_var(f"{self._axis.name}_l", 0, lanes - 1)
        here = core.Binary("add", core.VarRef(point), core.VarRef(lane), point.dtype)
        step = self._leaf({**self._box, self._axis: Span(here, 1)}, lanes)
        body = ctx.loop(lane, lanes, "vectorize", step)
        return [For(block, int_const(0), count, "serial", Seq((let, body)))]
