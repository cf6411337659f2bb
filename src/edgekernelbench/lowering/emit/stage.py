"""Emission of one stage over a box: its loops, its reduction, and what is placed inside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.emit.accumulate import (
    Tile,
    Updater,
    start_value,
)
from edgekernelbench.lowering.emit.boxes import Box, Span, image, whole, within
from edgekernelbench.lowering.emit.context import Context, Storage
from edgekernelbench.lowering.emit.cuts import cutter
from edgekernelbench.lowering.emit.lanes import chunks, map_lanes, partial_lanes
from edgekernelbench.lowering.emit.scatter import emit_scatter
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.emit.walk import Hook, Walker, at, plus
from edgekernelbench.lowering.expr.linear import const_value, int_const, linear, to_expr
from edgekernelbench.lowering.nest import Alloc, For, Seq, Stmt, Store
from edgekernelbench.lowering.plan import Attach, Piece, StagePlan, own_axes

MAX_TILE_BYTES = 32 * 1024
MAX_EPILOGUE_COPIES = 64


@dataclass(slots=True)
class Emitter:
    """Emits stages and everything placed inside them."""

    ctx: Context
    tree: Tree

    # ---------------------------------------------------------- entry
    def root(self, name: str) -> list[Stmt]:
        """The whole of a stage that is not placed."""
        axes = own_axes(self._plan(name).stage)
        return self.emit(name, {v: Span(int_const(0), n, v) for v, n in axes.items()}, False)

    def _plan(self, name: str) -> StagePlan:
        return self.ctx.plan.stages[name]

    def emit(self, name: str, box: Box, unrolled: bool) -> list[Stmt]:
        """The stage over a box of its spatial axes.

        Args:
            unrolled: unroll short loops: the stage reads an accumulator in registers.
        """
        plan = self._plan(name)
        if any(span.extent == 0 for span in box.values()):
            return []
        if plan.reduce is None:
            assert plan.value is not None
            return self._walker(plan, plan.pieces, self._map_leaf(plan), unrolled).walk(0, box)
        if plan.scatter is not None:
            return emit_scatter(self.ctx, plan, box)
        outer = plan.pieces[: plan.first_reduction]
        walker = self._walker(plan, outer, lambda inner, _: self._reduction(plan, inner), False)
        return walker.walk(0, box)

    def _walker(
        self,
        plan: StagePlan,
        pieces: tuple[Piece, ...],
        leaf: Callable[[Box, int], list[Stmt]],
        unrolled: bool,
    ) -> Walker:
        exprs = [e for e in (plan.value, plan.eager_body, plan.eager_where) if e is not None]
        return Walker(
            self.ctx,
            pieces,
            leaf,
            map_lanes(self.ctx.target),
            hook=self._hook(plan),
            cuts=cutter(exprs, self.ctx.ranges),
            unrolled=unrolled,
        )

    def _map_leaf(self, plan: StagePlan) -> Callable[[Box, int], list[Stmt]]:
        def leaf(box: Box, lanes: int) -> list[Stmt]:
            assert plan.value is not None
            values = {axis: span.base for axis, span in box.items()}
            lets, value = self.ctx.value(plan.value, values)
            return [*lets, self._store(plan, box, value)]

        return leaf

    def _store(self, plan: StagePlan, box: Box, value: Expr) -> Store:
        return self.ctx.store(plan.stage.tensor, self._lhs(plan, box), value)

    def _lhs(self, plan: StagePlan, box: Box) -> tuple[Expr, ...]:
        return tuple(box[var].base if var in box else core.VarRef(var) for var in plan.stage.lhs)

    # ---------------------------------------------------------- what is placed inside
    def _hook(self, plan: StagePlan) -> Hook | None:
        name = plan.stage.name
        if not self.tree.children.get(name):
            return None

        def hook(k: int, box: Box, inside: Callable[[], list[Stmt]]) -> list[Stmt]:
            return self._around(name, k, box, inside)

        return hook

    def _around(self, name: str, k: int, box: Box, inside: Callable[[], list[Stmt]]) -> list[Stmt]:
        """The inside of loop ``k`` of a stage with the stages that are placed in that loop."""
        here = [n for n in self.tree.children[name] if self.tree.attach[n].depth == k]
        homes = [n for n, h in self.tree.homes.items() if h and (h.target, h.depth) == (name, k)]
        if not here and not homes:
            return inside()
        boxes, unfit = self.tree.boxes(name, k, box, self.ctx.ranges)
        for member, reason in unfit.items():
            help = f"place what `{member}` reads in a loop of `{member}` instead"
            self.ctx.refuse(rules.NOT_TILEWISE, member, reason, help)
        for member in here:
            self._check_cover(member, boxes[member])
        out: list[Stmt] = []
        storages: dict[str, Storage] = {}
        for member in homes:
            if not (member == name and self._tile_serves(self._plan(name), k, box)):
                storages[member] = self._home(member, boxes[member], out)
        ranks = {n: self.tree.graph.places[n].rank for n in [name, *here]}
        with self.ctx.stored(storages):
            for member in [n for n in here if ranks[n] < ranks[name]]:
                out += self.emit(member, self._own(member, boxes[member]), False)
            out += inside()
            for member in [n for n in here if ranks[n] > ranks[name]]:
                short = self._reads_registers(member, name, boxes[member])
                out += self.emit(member, self._own(member, boxes[member]), short)
        return out

    def _check_cover(self, name: str, box: Box) -> None:
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
        root = self._plan(self.tree.root(name))
        threads = {piece.axis for piece in root.pieces if piece.kind == "parallel"}
        if threads - set(parts):
            self._not_covered(name, "several threads would compute the same elements")

    def _not_covered(self, name: str, reason: str) -> None:
        message = f"`{name}` is kept whole, and {reason}"
        help = f"leave `{name}` unplaced, or place it where its elements are computed once"
        self.ctx.refuse(rules.NOT_COVERED, name, message, help)

    def _own(self, name: str, box: Box) -> Box:
        return {var: box[var] for var in own_axes(self._plan(name).stage)}

    def _tile_serves(self, plan: StagePlan, k: int, box: Box) -> bool:
        """Whether the accumulator tile of a stage is its storage inside loop ``k``."""
        outside = plan.reduce is not None and k == plan.first_reduction - 1
        return outside and self._readable(plan) and self._has_tile(plan, box)

    def _reads_registers(self, member: str, target: str, box: Box) -> bool:
        plan = self._plan(target)
        if plan.reduce is None or target not in self.tree.graph.producers(member):
            return False
        plain = [
            box[piece.axis].extent
            for piece in self._plan(member).pieces
            if not piece.reduction and piece.last and piece.kind == "serial"
        ]
        copies = 1
        for extent in plain:
            copies *= extent
        return copies <= MAX_EPILOGUE_COPIES and _in_registers(plan)

    def _home(self, name: str, box: Box, out: list[Stmt]) -> Storage:
        """Allocates a tile that holds ``box`` of a stage."""
        stage = self._plan(name).stage
        tensor, layout = stage.tensor, self.ctx.plan.layouts.get(name)
        formals = layout.formals if layout else stage.lhs
        index = layout.index if layout else tuple(core.VarRef(v) for v in formals)
        shape = layout.shape if layout else tensor.shape
        part: dict[Var, Span] = {}
        for formal, var in zip(formals, stage.lhs, strict=True):
            part[formal] = box[var] if var in box else Span(core.VarRef(var), 1)
        spans = [
            within(image(e, part, self.ctx.ranges), n, self.ctx.ranges)
            for e, n in zip(index, shape, strict=True)
        ]
        buffer = self.ctx.tile(name, tensor.dtype, tuple(s.extent for s in spans), out)
        moved = tuple(
            to_expr(linear(e).minus(linear(s.base))) for e, s in zip(index, spans, strict=True)
        )
        return Storage(buffer, formals, moved)

    # ---------------------------------------------------------- reductions
    def _reduction(self, plan: StagePlan, box: Box) -> list[Stmt]:
        assert plan.reduce is not None and plan.eager_body is not None
        reduce, first = plan.reduce, plan.first_reduction
        inner = plan.pieces[first:]
        spatial = tuple(p for p in inner if not p.reduction)
        full = {**box, **{a.var: whole(a.extent) for a in reduce.axes}}
        out: list[Stmt] = []
        tile = self._tile(plan, full, out)
        updater = Updater(
            self.ctx,
            reduce,
            (reduce.body, reduce.where),
            (plan.eager_body, plan.eager_where),
            tile,
            self._address(plan, tile),
        )
        start = self._accumulator_walk(
            spatial, lambda b, _: self._start(plan, updater, tile, b), tile
        )
        out += start.walk(0, box)
        out += self._updates(plan, inner, full, updater, tile)
        if tile is not None:
            done = self._accumulator_walk(
                spatial, lambda b, _: self._finish(plan, updater, tile, b), tile
            )
            out += done.walk(0, box)
            self._expose(plan, tile)
        return out

    def _accumulator_walk(
        self,
        spatial: tuple[Piece, ...],
        leaf: Callable[[Box, int], list[Stmt]],
        tile: Tile | None,
    ) -> Walker:
        return Walker(
            self.ctx, spatial, leaf, map_lanes(self.ctx.target), keep_vectors=tile is not None
        )

    def _has_tile(self, plan: StagePlan, box: Box) -> bool:
        """Whether a reduction over ``box`` has a private accumulator."""
        assert plan.reduce is not None
        special = plan.reduce.op in ("argmax", "argmin") or _is_simd(plan)
        other = plan.reduce.dtype is not plan.stage.tensor.dtype
        return special or other or self._registers(plan, box)

    def _registers(self, plan: StagePlan, box: Box) -> bool:
        """Whether the accumulator is meant for registers (the stack, where it is larger)."""
        size = plan.stage.tensor.dtype.bytes
        for axis in _tile_axes(plan):
            size *= box[axis].extent
        return _in_registers(plan) and size <= MAX_TILE_BYTES

    def _tile(self, plan: StagePlan, box: Box, out: list[Stmt]) -> Tile | None:
        """A private accumulator, or None where the result's own storage serves."""
        assert plan.reduce is not None
        if not self._has_tile(plan, box):
            return None
        axes, reduce = _tile_axes(plan), plan.reduce
        shape = tuple(box[axis].extent for axis in axes)
        lanes = 1
        if _is_simd(plan):
            count = 1
            for extent in shape:
                count *= extent
            extent = box[plan.pieces[-1].axis].extent
            lanes = _largest_power(min(extent, partial_lanes(self.ctx.target, count)))
        shape += (lanes,) if lanes > 1 else ()
        arg = reduce.op in ("argmax", "argmin")
        local, name = self._registers(plan, box), plan.stage.name
        dtype = reduce.body.dtype if arg else reduce.dtype
        value = self._accumulator(f"{name}.acc", dtype, shape, local, out)
        position = None
        if arg:
            position = self._accumulator(f"{name}.at", DType.S32, shape, local, out)
        return Tile(axes, box, lanes, value, position)

    def _accumulator(
        self, name: str, dtype: DType, shape: tuple[int, ...], local: bool, out: list[Stmt]
    ) -> Tensor:
        if not local:
            return self.ctx.tile(name, dtype, shape, out)
        buffer = self.ctx.buffer(name, dtype, shape)
        out.append(Alloc(buffer, "local"))
        return buffer

    def _address(
        self, plan: StagePlan, tile: Tile | None
    ) -> Callable[[Box, Expr | None], tuple[Tensor, tuple[Expr, ...]]]:
        if tile is None:
            return lambda b, _: self.ctx.address(plan.stage.tensor, self._lhs(plan, b))
        return lambda b, lane: (tile.value, tile.where(b, lane))

    def _start(self, plan: StagePlan, updater: Updater, tile: Tile | None, box: Box) -> list[Stmt]:
        assert plan.reduce is not None
        value = start_value(plan.reduce)
        if tile is None:
            return [Store(*updater.target(box, None), value)]
        out: list[Stmt] = []
        lane: Expr | None = None
        if tile.lanes > 1:
            lane_var = self.ctx.loop_var("l", 0, tile.lanes - 1)
            lane = core.VarRef(lane_var)
        where = tile.where(box, lane)
        out.append(Store(tile.value, where, value))
        if tile.position is not None:
            out.append(Store(tile.position, where, int_const(-1)))
        if isinstance(lane, core.VarRef):
            return [self.ctx.loop(lane.var, tile.lanes, "vectorize", out)]
        return out

    def _finish(self, plan: StagePlan, updater: Updater, tile: Tile, box: Box) -> list[Stmt]:
        """Folds the lanes and hands the result on, unless the tile itself is the storage."""
        out = updater.fold(tile, box) if tile.lanes > 1 else []
        name, depth = plan.stage.name, plan.first_reduction - 1
        if self.tree.homes.get(name) != Attach(name, depth) or not self._readable(plan):
            out.append(self._store(plan, box, core.Load(tile.result, tile.where(box, None))))
        return out

    def _readable(self, plan: StagePlan) -> bool:
        """Whether readers may take the accumulator for the stage: it has the very dtype."""
        return plan.reduce is not None and plan.reduce.dtype is plan.stage.tensor.dtype

    def _expose(self, plan: StagePlan, tile: Tile) -> None:
        """Lets the stages that are placed around the reduction read its accumulator."""
        name, depth = plan.stage.name, plan.first_reduction - 1
        here = any(self.tree.attach[n].depth == depth for n in self.tree.children.get(name, ()))
        if not here or not self._readable(plan):
            return
        point = {
            var: Span(core.VarRef(var), 1) for var in plan.stage.lhs if var in own_axes(plan.stage)
        }
        where = tile.where({**tile.entry, **point}, None)
        self.ctx.storages[name] = Storage(tile.result, plan.stage.lhs, where)

    # ---------------------------------------------------------- updates
    def _updates(
        self,
        plan: StagePlan,
        inner: tuple[Piece, ...],
        box: Box,
        updater: Updater,
        tile: Tile | None,
    ) -> list[Stmt]:
        assert plan.reduce is not None
        simd = _is_simd(plan)
        ragged = {a.var: (a.lo, a.hi) for a in plan.reduce.axes if not a.is_constant}
        pieces = inner[:-1] if simd else inner
        exprs = [e for e in (plan.eager_body, plan.eager_where) if e is not None]
        walker = Walker(
            self.ctx,
            pieces,
            lambda b, lanes: updater.update(b, lanes),
            map_lanes(self.ctx.target),
            hook=self._hook(plan),
            cuts=cutter(exprs, self.ctx.ranges),
            ragged=ragged,
            keep_vectors=tile is not None,
            first=plan.first_reduction,
        )
        if simd and tile is not None:
            walker.leaf = lambda b, _: self._lanes(inner[-1], b, updater, tile, walker)
        return walker.walk(0, box)

    def _lanes(
        self, piece: Piece, box: Box, updater: Updater, tile: Tile, walker: Walker
    ) -> list[Stmt]:
        """The innermost, vectorised loop of a SIMD reduction; lane l of the tile takes part l."""
        if piece.axis in walker.ragged:
            return self._ragged_lanes(piece, box, updater, tile, walker)
        span = box[piece.axis]
        out: list[Stmt] = []
        for chunk in chunks(span.extent, tile.lanes, False):
            base = at(span, chunk.start)
            out += self._lane_block(piece, box, base, int_const(chunk.count), chunk.width, updater)
        return out

    def _lane_block(
        self, piece: Piece, box: Box, base: Expr, count: Expr, width: int, updater: Updater
    ) -> list[Stmt]:
        """``count`` vectors (or single elements) starting at ``base``."""
        number = const_value(count)
        block: Var | None = None
        if number != 1:
            most = (number or box[piece.axis].extent) - 1
            block = self.ctx.loop_var(f"{piece.name}_v", 0, max(0, most))
            base = plus(base, core.VarRef(block), width)
        if width > 1:
            lane = self.ctx.loop_var(f"{piece.name}_l", 0, width - 1)
            point = {**box, piece.axis: Span(plus(base, core.VarRef(lane)), 1)}
            step = updater.update(point, width, core.VarRef(lane))
            body: list[Stmt] = [self.ctx.loop(lane, width, "vectorize", step)]
        else:
            body = updater.update({**box, piece.axis: Span(base, 1)}, 1, int_const(0))
        if block is None:
            return body
        return [For(block, int_const(0), count, "serial", Seq(tuple(body)))]

    def _ragged_lanes(
        self, piece: Piece, box: Box, updater: Updater, tile: Tile, walker: Walker
    ) -> list[Stmt]:
        lets, low, extent = walker.bounds(piece.axis, box)
        dtype = extent.dtype
        lanes = int_const(tile.lanes)
        full = self.ctx.simple(core.Binary("fdiv", extent, lanes, dtype))
        done = self.ctx.simple(core.Binary("mul", full, lanes, dtype))
        rest = self.ctx.simple(core.Binary("sub", extent, done, dtype))
        tail = self.ctx.simple(core.Binary("add", low, done, dtype))
        return [
            *lets,
            *self._lane_block(piece, box, low, full, tile.lanes, updater),
            *self._lane_block(piece, box, tail, rest, 1, updater),
        ]


def _in_registers(plan: StagePlan) -> bool:
    """Whether all spatial loops inside the first reduction loop are unrolled or lanes."""
    inner = plan.pieces[plan.first_reduction :]
    return all(p.reduction or p.kind in ("unroll", "vectorize") for p in inner)


def _is_simd(plan: StagePlan) -> bool:
    """Whether the innermost loop is a vectorised reduction axis."""
    return plan.pieces[-1].reduction and plan.pieces[-1].kind == "vectorize"


def _tile_axes(plan: StagePlan) -> tuple[Var, ...]:
    """Spatial axes with loops inside the first reduction loop, in the order of the nest."""
    inner = plan.pieces[plan.first_reduction :]
    return tuple(p.axis for p in inner if p.last and not p.reduction)


def _largest_power(limit: int) -> int:
    return 1 << (max(1, limit).bit_length() - 1)
