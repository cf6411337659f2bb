"""The walk over the loops of a nest: steps, remainders, threads, lanes, border cuts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.borders import Bordered, Interior
from edgekernelbench.lowering.emit.boxes import Box, Span
from edgekernelbench.lowering.emit.context import MAX_LEAVES, Context, allocations, seq
from edgekernelbench.lowering.emit.lanes import chunks
from edgekernelbench.lowering.expr.linear import Linear, const_value, int_const, linear, to_expr
from edgekernelbench.lowering.gpu.device import kernel, one_thread
from edgekernelbench.lowering.gpu.spread import SPREAD, spread
from edgekernelbench.lowering.gpu.team import Team
from edgekernelbench.lowering.nest import For, If, LetValue, Seq, Stmt
from edgekernelbench.lowering.plan import Piece

Leaf = Callable[[Box, int], list[Stmt]]
"""Statements for a box with one value per axis; the second argument is the number of lanes."""

Hook = Callable[[int, Box, Callable[[], list[Stmt]]], list[Stmt]]
"""Wraps what is inside loop ``k``: (k, box there, makes the inside)."""

Fetch = Callable[[int, Box, Var, Expr], list[Stmt]]
"""Statements at the head of loop ``k``: (k, box there, its variable, the last value of that)."""

Ahead = Callable[
    [int, Callable[[Expr], Box], Var, int, Callable[[], list[Stmt]]],
    tuple[list[Stmt], list[Stmt]] | None,
]
"""(k, box by number of iteration, variable, last iteration, makes an iteration) -> statements in
front of the loop and its body; None: nothing is fetched ahead in it."""

Vector = Callable[[Box], list[Stmt] | None]
"""Statements for all lanes of a vectorised axis at once; None: a loop over the lanes is wanted."""

Cuts = Callable[[Var, Box], list[tuple[int, int]]]
"""Where a loop over an axis is cut so that conditions are decided: (start, count) parts."""

MAX_UNROLLED_LANES = 4


def at(span: Span, offset: int) -> Expr:
    """``span.base + offset``."""
    return to_expr(linear(span.base).shifted(offset), span.base.dtype)


def plus(base: Expr, term: Expr, factor: int = 1) -> Expr:
    return to_expr(linear(base).plus(Linear({term: factor})), base.dtype)


def no_cuts(axis: Var, box: Box) -> list[tuple[int, int]]:
    return [(0, box[axis].extent)]


def is_decided(span: Span) -> bool:
    """Whether the values of a span are all due or none, when it has a limit."""
    if span.extent == 1:
        return True
    base = linear(span.base)
    steps = (base.const, span.limit or 0, *base.terms.values())
    return all(step % span.extent == 0 for step in steps)


@dataclass(slots=True)
class Walker:
    """Emits the loops of ``pieces`` around a leaf.

    Attributes:
        ragged: bounds of reduction axes whose range is not constant.
        lanes: SIMD lanes to use for a vectorised piece.
        unrolled: unroll short plain loops (their results stay in registers then).
        vector: what stands in place of a loop over lanes.
        first: number of the first piece within the stage's whole nest, for ``hook``.
        threads: of a block, in a kernel that this walk launches.
        cooperative: the leaf spreads its work over the threads of a block by itself.
        team: the threads of a block that share the ``thread`` loops of the nest.
        ahead: makes a loop of a block in whose iterations something is fetched for the next one.
    """

    ctx: Context
    pieces: tuple[Piece, ...]
    leaf: Leaf
    lanes: int
    hook: Hook | None = None
    cuts: Cuts = no_cuts
    fetch: Fetch | None = None
    interior: Interior | None = None
    ragged: Mapping[Var, tuple[Expr, Expr]] = field(default_factory=dict)
    unrolled: bool = False
    keep_vectors: bool = False
    vector: Vector | None = None
    first: int = 0
    threads: int = 1
    cooperative: bool = False
    team: Team | None = None
    ahead: Ahead | None = None

    def walk(self, k: int, box: Box) -> list[Stmt]:
        """Statements of the loops from piece ``k`` inwards, over ``box``."""
        device = self.ctx.device
        if device is not None and device.level != "thread" and not self._spreads(k):
            return one_thread(self.ctx, lambda: self.walk(k, box))
        if device is not None and device.level == "host" and self._needs_block(k):
            return kernel(self.ctx, 1, self.threads, "block", lambda *_: self.walk(k, box))
        if k == len(self.pieces):
            return self._due(box, self._leaf) if self.ctx.spend() else []
        piece = self.pieces[k]
        if piece.kind in SPREAD:
            return self._parallel(k, box) if device is None else spread(self, k, box)
        if piece.axis in self.ragged:
            return self._ragged(k, box)
        if piece.kind == "vectorize" and device is None:
            return self._vector(k, box)
        return self.serial(k, box)

    def _spreads(self, k: int) -> bool:
        team = self.cooperative or self.team is not None
        return team or any(piece.kind in SPREAD for piece in self.pieces[k:])

    def _needs_block(self, k: int) -> bool:
        """Whether threads are to share what begins here, and nothing says in which block."""
        alone = k == len(self.pieces) or self.pieces[k].kind not in ("block", "parallel")
        return alone and (self.cooperative or self.team is not None)

    def _leaf(self, box: Box) -> list[Stmt]:
        return self.leaf(box, 1)

    def _inside(self, k: int, box: Box) -> list[Stmt]:
        if box[self.pieces[k].axis].limit is not None:
            return self._due(box, lambda exact: self._entered(k, exact))
        return self._entered(k, box)

    def _due(self, box: Box, make: Callable[[Box], list[Stmt]]) -> list[Stmt]:
        """Statements of a thread where what it has of the last tile is due at all.

        Values that are not due are known by themselves, or as the whole of what a thread has.
        """
        device = self.ctx.device
        open_axes = [v for v, s in box.items() if s.limit is not None and is_decided(s)]
        if device is None or device.level != "thread" or not open_axes:
            return make(box)
        exact = {**box, **{v: replace(box[v], limit=None) for v in open_axes}}
        body = make(exact)
        if not body:
            return []
        inside = seq(body)
        for axis in open_axes:
            last = int_const(box[axis].limit or 0)
            test = core.Binary("lt", box[axis].base, last, DType.BOOL)
            inside = If(self.ctx.simple(test), inside)
        return [inside]

    def _entered(self, k: int, box: Box) -> list[Stmt]:
        if self.hook is None:
            return self.walk(k + 1, box)
        return self.hook(self.first + k, box, lambda: self.walk(k + 1, box))

    # ---------------------------------------------------------- plain loops
    def serial(self, k: int, box: Box) -> list[Stmt]:
        """Piece ``k`` as a loop of its thread."""
        piece, span = self.pieces[k], box[self.pieces[k].axis]
        if span.limit is not None and not span.tried and self._one_thread():
            return self._whole_or_not(piece.axis, box, lambda inner: self.serial(k, inner))
        step = 1 if piece.last else min(piece.step, span.extent)
        parts = self.cuts(piece.axis, box) if piece.last else [(0, span.extent)]
        out: list[Stmt] = []
        for start, count in parts:
            full, rest = divmod(count, step)
            if self.ctx.leaves > MAX_LEAVES:
                return []
            out += self._loop(k, box, start, full, step)
            if rest:
                out += self._inside(k, self._part(box, piece, at(span, start + full * step), rest))
        return out

    def _one_thread(self) -> bool:
        return self.ctx.device is not None and self.ctx.device.level == "thread"

    def _whole_or_not(self, axis: Var, box: Box, make: Callable[[Box], list[Stmt]]) -> list[Stmt]:
        """Code without tests where all that a thread has of an axis is due, else with tests."""
        span = box[axis]
        end = core.Binary("add", span.base, int_const(span.extent), DType.S32)
        test = core.Binary("le", end, int_const(span.limit or 0), DType.BOOL)
        exact = make({**box, axis: replace(span, limit=None)})
        tested = make({**box, axis: replace(span, tried=True)})
        if not exact and not tested:
            return []
        return [If(self.ctx.simple(test), seq(exact), seq(tested))]

    def _part(self, box: Box, piece: Piece, base: Expr, extent: int) -> Box:
        whole = box[piece.axis]
        span = replace(whole, base=self.ctx.simple(base), extent=extent)
        if span.limit is not None and self.ctx.range_of(span.base)[1] + extent <= span.limit:
            span = replace(span, limit=None)
        return {**box, piece.axis: span}

    def _loop(self, k: int, box: Box, start: int, full: int, step: int) -> list[Stmt]:
        piece, span = self.pieces[k], box[self.pieces[k].axis]
        if full == 0:
            return []
        if full == 1:
            return self._inside(k, self._part(box, piece, at(span, start), step))
        var = self.ctx.loop_var(piece.name, 0, full - 1)

        def iteration(number: Expr) -> Box:
            return self._part(box, piece, plus(at(span, start), number, step), step)

        inner = iteration(core.VarRef(var))
        make = lambda: self._inside(k, inner)  # noqa: E731
        found = self.ahead and self.ahead(self.first + k, iteration, var, full - 1, make)
        if found:
            before, body = found
            return [*before, self.ctx.loop(var, full, piece.kind, body)]
        body = make()
        if not body:
            return []
        if self.fetch is not None:
            body = [*self.fetch(self.first + k, inner, var, int_const(full - 1)), *body]
        kind = piece.kind
        if self.unrolled and kind == "serial" and full <= 16:
            kind = "unroll"
        if kind == "vectorize" or kind in SPREAD:  # of one thread of a GPU
            kind = "unroll" if kind == "vectorize" else "serial"
        return [self.ctx.loop(var, full, kind, body)]

    def _ragged(self, k: int, box: Box) -> list[Stmt]:
        """A loop over lo..hi-1 that are known here; its variable is the axis itself."""
        piece = self.pieces[k]
        lets, low, extent = self.bounds(piece.axis, box)
        var = self.ctx.loop_var(piece.name, 0, box[piece.axis].extent - 1)
        inner = self._part(box, piece, core.VarRef(var), 1)
        body = self._inside(k, inner)
        if self.fetch is not None:
            last = core.Binary("sub", extent, int_const(1), extent.dtype)
            last = core.Binary("add", low, last, last.dtype)
            body = [*self.fetch(self.first + k, inner, var, self.ctx.simple(last)), *body]
        return [*lets, For(var, low, extent, "serial", Seq(tuple(body)))]

    def bounds(self, axis: Var, box: Box) -> tuple[list[Stmt], Expr, Expr]:
        """First value and number of values of a ragged axis at this point of the nest."""
        values = {var: span.base for var, span in box.items() if span.extent == 1}
        lets: list[Stmt] = []
        ends: list[Expr] = []
        for bound in self.ragged[axis]:
            more, value = self.ctx.value(bound, values)
            lets += more
            if not isinstance(value, core.Const):
                var = self.ctx.names.var(f"{axis.name}_end")
                lets.append(LetValue(var, value))
                value = core.VarRef(var)
            ends.append(value)
        low, high = ends
        length = self.ctx.simple(core.Binary("sub", high, low, DType.S32))
        extent = core.Binary("max", length, int_const(0), DType.S32)
        return lets, low, self.ctx.simple(extent)

    # ---------------------------------------------------------- threads
    def _parallel(self, k: int, box: Box) -> list[Stmt]:
        """Fuses the parallel pieces from ``k`` on into one loop."""
        count = k
        while count < len(self.pieces) and self.pieces[count].kind == "parallel":
            count += 1
        sizes = self.sizes(k, count, box)
        total = prod(sizes)
        names = [piece.name for piece in self.pieces[k:count]]
        var = self.ctx.loop_var("_".join(names), 0, total - 1)
        with self.ctx.frame() as mine:
            lets, indices = self.ctx.unfused(core.VarRef(var), names, sizes)
            body = lets + self.iteration(k, list(zip(indices, sizes, strict=True)), box)
        body = allocations(mine) + body
        return body if total == 1 else [self.ctx.loop(var, total, "parallel", body)]

    def sizes(self, k: int, end: int, box: Box) -> list[int]:
        """Iterations of the loops ``k`` to ``end``, exclusive."""
        out: list[int] = []
        extents = {piece.axis: box[piece.axis].extent for piece in self.pieces[k:end]}
        for piece in self.pieces[k:end]:
            step = min(piece.step, extents[piece.axis])
            out.append(-(-extents[piece.axis] // step))
            extents[piece.axis] = step
        return out

    def iteration(self, k: int, indices: list[tuple[Expr, int]], box: Box) -> list[Stmt]:
        """What one iteration of the fused loop does from piece ``k`` on.

        ``indices`` says for each parallel piece which iteration it is, and of how many.
        """
        if not indices:
            return self.walk(k, box)
        piece, span, (index, size) = self.pieces[k], box[self.pieces[k].axis], indices[0]
        step = min(piece.step, span.extent)
        full, rest = divmod(span.extent, step)

        def entered(part: Box) -> list[Stmt]:
            rest_of_it = lambda: self.iteration(k + 1, indices[1:], part)  # noqa: E731
            if self.hook is None:
                return rest_of_it()
            return self.hook(self.first + k, part, rest_of_it)

        def inside(base: Expr, extent: int) -> list[Stmt]:
            part = self._part(box, piece, base, extent)
            own = part[piece.axis]
            if own.limit is None or not self._one_thread():
                return entered(part)
            if is_decided(own):
                return self._due(part, entered)
            return entered(part) if own.tried else self._whole_or_not(piece.axis, part, entered)

        start = const_value(span.base)
        if piece.kind == "block" and rest and start is not None:
            # One code for all blocks: what the last one has not is left to its threads.
            reaching = replace(span, limit=start + span.extent)
            box = {**box, piece.axis: reaching}
            return inside(plus(span.base, index, step), step)
        parts = self.cuts(piece.axis, box) if piece.last and full == size else []
        if len(parts) > 1:
            return self._cut_threads(index, parts, span, inside)
        with self.ctx.below(index, full):
            main = inside(plus(span.base, index, step), step)
        if not rest and full == size:
            return main
        tail: list[Stmt] = inside(at(span, full * step), rest) if rest else []
        return self._full_or_rest(index, full, size, main, tail)

    @staticmethod
    def _full_or_rest(
        index: Expr, full: int, size: int, main: list[Stmt], tail: list[Stmt]
    ) -> list[Stmt]:
        """``main`` in the first ``full`` of ``size`` iterations, ``tail`` in the next one."""
        if tail and full + 1 < size:
            last = core.Binary("eq", index, int_const(full), DType.BOOL)
            tail = [If(last, seq(tail))]
        if not main and not tail:
            return []
        test = core.Binary("lt", index, int_const(full), DType.BOOL)
        return [If(test, seq(main), seq(tail) if tail else None)]

    def _cut_threads(
        self,
        index: Expr,
        parts: list[tuple[int, int]],
        span: Span,
        inside: Callable[[Expr, int], list[Stmt]],
    ) -> list[Stmt]:
        """One branch per part of the axis; each knows the range it is in."""
        out: Stmt | None = None
        for start, count in reversed(parts):
            var = self.ctx.loop_var("p", start, start + count - 1)
            body = seq([LetValue(var, index), *inside(plus(span.base, core.VarRef(var)), 1)])
            test = core.Binary("lt", index, int_const(start + count), DType.BOOL)
            out = body if out is None else If(test, body, out)
        return [] if out is None else [out]

    # ---------------------------------------------------------- lanes
    def _vector(self, k: int, box: Box) -> list[Stmt]:
        piece, span = self.pieces[k], box[self.pieces[k].axis]
        inside = None if self.interior is None else self.interior(piece.axis, box)
        if inside is not None and span.extent >= self.lanes:
            return Bordered(self.ctx, piece.axis, box, self.lanes, self.leaf).emit(*inside)
        out: list[Stmt] = []
        for start, count in self.cuts(piece.axis, box):
            for chunk in chunks(count, self.lanes, self.keep_vectors):
                if not self.ctx.spend():
                    return []
                base = at(span, start + chunk.start)
                out += self._lane_loops(piece, box, base, chunk.count, chunk.width)
        return out

    def _lane_loops(self, piece: Piece, box: Box, base: Expr, count: int, width: int) -> list[Stmt]:
        outer: Var | None = None
        if count > 1:
            outer = self.ctx.loop_var(f"{piece.name}_v", 0, count - 1)
            base = plus(base, core.VarRef(outer), width)
        whole: list[Stmt] | None = None
        if width > 1 and self.vector is not None:
            whole = self.vector(self._part(box, piece, base, width))
        if whole is not None:
            body: list[Stmt] = whole
        elif width > 1:
            lane = self.ctx.loop_var(f"{piece.name}_l", 0, width - 1)
            leaf = self.leaf(self._part(box, piece, plus(base, core.VarRef(lane)), 1), width)
            body = [self.ctx.loop(lane, width, "vectorize", leaf)] if leaf else []
        else:
            body = self.leaf(self._part(box, piece, base, 1), 1)
        if outer is None or not body:
            return body
        short = (self.keep_vectors or self.unrolled) and count <= MAX_UNROLLED_LANES
        return [self.ctx.loop(outer, count, "unroll" if short else "serial", body)]
