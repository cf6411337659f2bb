"""Emission of the reduction of a stage over a box: accumulator, updates, result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Reduce, Stage, Tensor, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.emit.accumulate import (
    Chunk,
    Share,
    Tile,
    Updater,
    accumulator,
    start_value,
)
from edgekernelbench.lowering.emit.boxes import Box, Span, whole
from edgekernelbench.lowering.emit.combine import start
from edgekernelbench.lowering.emit.context import Context, Storage
from edgekernelbench.lowering.emit.cuts import cutter
from edgekernelbench.lowering.emit.dots import DotLanes
from edgekernelbench.lowering.emit.lanes import map_lanes, partial_lanes
from edgekernelbench.lowering.emit.prefetch import fetcher
from edgekernelbench.lowering.emit.simd import LaneLoops
from edgekernelbench.lowering.emit.walk import Ahead, Hook, Walker, no_cuts
from edgekernelbench.lowering.emit.widen import widened
from edgekernelbench.lowering.expr.linear import int_const
from edgekernelbench.lowering.gpu.merging import Merging
from edgekernelbench.lowering.gpu.team import Team, iterations
from edgekernelbench.lowering.gpu.tensor_cores import TensorCores, on_tensor_cores
from edgekernelbench.lowering.nest import Alloc, Stmt, Store
from edgekernelbench.lowering.plan import Piece, StagePlan, extents_of, own_axes

MAX_TILE_BYTES = 32 * 1024


def is_simd(plan: StagePlan) -> bool:
    """Whether the innermost loop is a vectorised reduction axis."""
    return plan.pieces[-1].reduction and plan.pieces[-1].kind == "vectorize"


def in_registers(plan: StagePlan) -> bool:
    """Whether all spatial loops inside the first reduction loop are unrolled or lanes."""
    inner = plan.pieces[plan.first_reduction :]
    return all(p.reduction or p.kind in ("unroll", "vectorize", "thread") for p in inner)


def teamed(plan: StagePlan) -> bool:
    """Whether the threads of a block run a part of the reduction's loops each."""
    inner = plan.pieces[plan.first_reduction :]
    return not plan.cooperative and any(p.kind == "thread" for p in inner)


def readable(plan: StagePlan) -> bool:
    """Whether readers may take the accumulator for the stage: it has the very dtype."""
    return plan.reduce is not None and plan.reduce.dtype is plan.stage.tensor.dtype


def has_tile(plan: StagePlan, box: Box) -> bool:
    """Whether the reduction over ``box`` has a private accumulator."""
    assert plan.reduce is not None
    special = plan.reduce.op in ("argmax", "argmin", "combine") or is_simd(plan)
    return special or not readable(plan) or teamed(plan) or _fits_registers(plan, box)


def _fits_registers(plan: StagePlan, box: Box) -> bool:
    """Whether the accumulator is meant for registers (the stack, where it is larger)."""
    size = plan.stage.tensor.dtype.bytes * prod(box[axis].extent for axis in tile_axes(plan))
    return in_registers(plan) and size <= MAX_TILE_BYTES


def tile_axes(plan: StagePlan) -> tuple[Var, ...]:
    """Spatial axes with loops inside the first reduction loop, in the order of the nest."""
    inner = plan.pieces[plan.first_reduction :]
    return tuple(p.axis for p in inner if p.last and not p.reduction)


@dataclass(frozen=True, slots=True)
class Also:
    """A stage that is component ``part`` of a reduction that another stage carries out.

    ``keeps_tile``: its accumulator is its storage here, nothing is copied out.
    """

    stage: Stage
    part: int
    keeps_tile: bool = False


@dataclass(slots=True)
class ReductionEmitter:
    """Emits the reduction of one stage; its spatial loops outside are done already.

    Attributes:
        hook: for stages placed inside the reduction loops, None when there are none.
        keeps_tile: the accumulator is the stage's storage here, nothing is copied out.
        exposed: stages placed around the reduction read its accumulator.
        also: stages that are other components of the same reduction.
        chunk: where the results go when the reduction is split over threads.
        team: the threads of a block that run its loops together.
        ahead: makes the loops in which something is fetched an iteration ahead.
    """

    ctx: Context
    plan: StagePlan
    hook: Hook | None
    keeps_tile: bool
    exposed: bool
    also: tuple[Also, ...] = ()
    chunk: Chunk | None = None
    team: Team | None = None
    ahead: Ahead | None = None

    @property
    def _reduce(self) -> Reduce:
        assert self.plan.reduce is not None
        return self.plan.reduce

    def emit(self, box: Box) -> list[Stmt]:
        plan, reduce = self.plan, self._reduce
        assert plan.eager_body is not None
        self._check_team()
        full = {**{a.var: whole(a.extent) for a in reduce.axes}, **box}
        out: list[Stmt] = []
        due = box
        if has_tile(plan, full) and not is_simd(plan) and self.ctx.device is None:
            full = widened(self.ctx, plan, full, self.hook is not None)
            box = {axis: full[axis] for axis in box}
        tile = self._tile(full, out)
        plain = (reduce.items, reduce.where)
        eager = ((plan.eager_body, *plan.eager_more), plan.eager_where)
        address = self._address(tile)
        updater = Updater(self.ctx, reduce, plain, eager, tile, address, plan.in_order)
        out += self._each(tile, box, lambda b: self._start(updater, tile, b))
        out += self._updates(full, updater, tile)
        if tile is not None:
            out += self._finished(updater, tile, due)
            if self.exposed:
                self._expose(tile)
        return out

    def _each(self, tile: Tile | None, box: Box, leaf: Callable[[Box], list[Stmt]]) -> list[Stmt]:
        """Statements for each result, by the thread that has it."""
        walker = self._results(tile, lambda b, _: leaf(b))
        return self._by_team(lambda: walker.walk(0, box))

    def _by_team(self, make: Callable[[], list[Stmt]]) -> list[Stmt]:
        device = self.ctx.device
        if self.team is None or device is None or device.level == "thread":
            return make()
        return self.team.region(self.ctx, make)

    def _check_team(self) -> None:
        """Threads that keep partial results from one region to the next must all be there."""
        team, device = self.team, self.ctx.device
        if team is None or device is None or device.level == "thread":
            return
        if team.total > device.threads:
            name = self.plan.stage.name
            terms = " x ".join(
                f"{n} (`{p.name}`)" for p, n in zip(team.pieces, team.counts, strict=True)
            )
            message = (
                f"`{name}` takes {terms} = {team.total} threads; the block has {device.threads}"
            )
            help = "let a thread cover more, by a loop inside it, or give the block more threads"
            self.ctx.refuse(rules.TEAM, name, message, help)

    def _finished(self, updater: Updater, tile: Tile, due: Box) -> list[Stmt]:
        if self.team is None or self.team.sharing == 1:
            return self._each(tile, due, lambda b: self._finish(updater, tile, b))

        def each(leaf: Callable[[Box], list[Stmt]]) -> list[Stmt]:
            return self._results(tile, lambda b, _: leaf(b)).walk(0, due)

        return Merging(self.ctx, self._reduce, self.team, tile, each).emit(self._hand_on)

    def _results(self, tile: Tile | None, leaf: Callable[[Box, int], list[Stmt]]) -> Walker:
        """A walk over the results inside the reduction loops, without these."""
        inner = self.plan.pieces[self.plan.first_reduction :]
        spatial = tuple(p for p in inner if not p.reduction)
        lanes = map_lanes(self.ctx.target)
        return Walker(self.ctx, spatial, leaf, lanes, keep_vectors=tile is not None)

    # ---------------------------------------------------------- the accumulator
    def _tile(self, box: Box, out: list[Stmt]) -> Tile | None:
        plan, reduce = self.plan, self._reduce
        if not has_tile(plan, box):
            return None
        axes = tile_axes(plan)
        shares = self._shares(box)
        shape = tuple(shares[a].size if a in shares else box[a].extent for a in axes)
        lanes = 1
        if is_simd(plan):
            extent = box[plan.pieces[-1].axis].extent
            lanes = _largest_power(min(extent, partial_lanes(self.ctx.target, prod(shape))))
        shape += (lanes,) if lanes > 1 else ()
        local = _fits_registers(plan, box)

        def make(name: str, dtype: DType) -> Tensor:
            return self._buffer(name, dtype, shape, local, out)

        wanted = [other.part for other in self.also]
        buffers = accumulator(reduce, plan.stage.name, wanted, make)
        return Tile(axes, box, lanes, *buffers, shares, self.ctx.simple)

    def _shares(self, box: Box) -> dict[Var, Share]:
        """What a thread keeps of the axes that threads share, inside the reduction loops."""
        if not teamed(self.plan):
            return {}
        inner = [p for p in self.plan.pieces[self.plan.first_reduction :] if not p.reduction]
        left = {axis: box[axis].extent for axis in tile_axes(self.plan)}
        digits: dict[Var, list[tuple[int, int, int]]] = {}
        for piece, count in zip(inner, iterations(tuple(inner), left), strict=True):
            reach = left[piece.axis]
            left[piece.axis] = min(piece.step, reach)
            own = 1 if piece.kind == "thread" else count
            digits.setdefault(piece.axis, []).append((reach, left[piece.axis], own))
        shared = {piece.axis for piece in inner if piece.kind == "thread"}
        return {axis: Share(tuple(digits[axis])) for axis in shared}

    def _buffer(
        self, name: str, dtype: DType, shape: tuple[int, ...], local: bool, out: list[Stmt]
    ) -> Tensor:
        if teamed(self.plan):
            return self.ctx.private(name, dtype, shape, out)
        if not local:
            return self.ctx.tile("accumulator", name, dtype, shape, out)
        buffer = self.ctx.buffer(name, dtype, shape)
        out.append(Alloc(buffer, "local"))
        return buffer

    def _address(
        self, tile: Tile | None
    ) -> Callable[[Box, Expr | None], tuple[Tensor, tuple[Expr, ...]]]:
        chunk = self.chunk
        if tile is not None:
            return lambda b, lane: (tile.value, tile.where(b, lane))
        if chunk is not None:
            return lambda b, _: (chunk.tile.value, chunk.where(b))
        return lambda b, _: self.ctx.address(self.plan.stage.tensor, self._lhs(b))

    def _lhs(self, box: Box) -> tuple[Expr, ...]:
        return tuple(box[v].base if v in box else core.VarRef(v) for v in self.plan.stage.lhs)

    def _start(self, updater: Updater, tile: Tile | None, box: Box) -> list[Stmt]:
        lets, first = self._first(box)
        if tile is None:
            return [*lets, Store(*updater.target(box, None), first)]
        lane_var = self.ctx.loop_var("l", 0, tile.lanes - 1) if tile.lanes > 1 else None
        where = tile.where(box, None if lane_var is None else core.VarRef(lane_var))
        out: list[Stmt] = [*lets, Store(tile.value, where, first)]
        if self._reduce.combiner is not None:
            out = start(self._reduce.combiner, tile.parts, where)
        if tile.position is not None:
            out.append(Store(tile.position, where, int_const(-1)))
        if lane_var is None:
            return out
        return [self.ctx.loop(lane_var, tile.lanes, "vectorize", out)]

    def _first(self, box: Box) -> tuple[list[Stmt], Expr]:
        """What an accumulator starts from; of several chunks one takes what the sum begins with."""
        identity = start_value(self._reduce)
        if self._reduce.start is None:
            return [], identity
        lets, value = self.ctx.value(self._reduce.start, {a: s.base for a, s in box.items()})
        if self.chunk is None:
            return lets, value
        begins = core.Binary("eq", self.chunk.index, int_const(0), DType.BOOL)
        value = core.Select(begins, value, identity, value.dtype)
        return lets, self.ctx.simple(value)

    def _finish(self, updater: Updater, tile: Tile, box: Box) -> list[Stmt]:
        """Folds the lanes and hands the result on, unless the tile itself is the storage."""
        out = updater.fold(tile, box) if tile.lanes > 1 else []
        return [*out, *self._hand_on(tile, box, None)]

    def _hand_on(self, tile: Tile, box: Box, lane: Expr | None) -> list[Stmt]:
        """Stores what lane ``lane`` of an accumulator holds as the result."""
        out: list[Stmt] = []
        here = tile.where(box, lane)
        if self.chunk is not None:
            there = self.chunk.where(box)
            pairs = zip(self.chunk.tile.buffers, tile.buffers, strict=True)
            return [Store(result, there, core.Load(own, here)) for result, own in pairs]
        for part, stage, kept in self._components():
            if not kept:
                value = core.Load(tile.result(part), here)
                out.append(self.ctx.store(stage.tensor, self._lhs(box), value))
        return out

    def _components(self) -> Iterator[tuple[int | None, Stage, bool]]:
        """What the reduction yields: (component of `Tile.result`, stage, its tile is kept)."""
        yield None, self.plan.stage, self.keeps_tile
        for other in self.also:
            yield other.part, other.stage, other.keeps_tile

    def _expose(self, tile: Tile) -> None:
        """Lets the stages that are placed around the reduction read its accumulator."""
        for part, stage, _ in self._components():
            buffer, own = tile.result(part), own_axes(stage)
            if buffer.dtype is not stage.tensor.dtype:
                continue
            pairs = zip(extents_of(self.plan.stage), extents_of(stage), strict=True)
            point = {axis: Span(core.VarRef(var), 1) for axis, var in pairs if var in own}
            where = tile.where({**tile.entry, **point}, None)
            self.ctx.storages[stage.name] = Storage(buffer, stage.lhs, where)

    # ---------------------------------------------------------- updates
    def _updates(self, box: Box, updater: Updater, tile: Tile | None) -> list[Stmt]:
        plan, first = self.plan, self.plan.first_reduction
        if tile is not None and is_simd(plan):
            return self._simd_updates(box, updater, tile)
        if plan.dot is not None:
            dots = DotLanes(self.ctx, plan, updater)
            walker = self._walker(plan.pieces[first:], dots.single, tile)
            walker.vector = dots.vector
            return walker.walk(0, box)
        if on_tensor_cores(self.ctx, plan):
            cores = TensorCores(self.ctx, plan, updater.target)
            leaf = lambda b, _: self._by_team(lambda: cores.emit(b))  # noqa: E731
            return self._walker(plan.pieces[first : plan.first_fragment], leaf, tile).walk(0, box)
        walker = self._walker(plan.pieces[first:], updater.update, tile)
        return walker.walk(0, box)

    def _walker(
        self,
        pieces: tuple[Piece, ...],
        leaf: Callable[[Box, int], list[Stmt]],
        tile: Tile | None,
    ) -> Walker:
        return Walker(
            self.ctx,
            pieces,
            leaf,
            map_lanes(self.ctx.target),
            hook=self.hook,
            cuts=cutter(self.plan.exprs, self.ctx.ranges) if self.ctx.device is None else no_cuts,
            fetch=fetcher(self.ctx, self.plan),
            ragged={a.var: (a.lo, a.hi) for a in self._reduce.axes if not a.is_constant},
            keep_vectors=tile is not None,
            first=self.plan.first_reduction,
            team=self.team,
            ahead=self.ahead,
        )

    def _simd_updates(self, box: Box, updater: Updater, tile: Tile) -> list[Stmt]:
        plan, first = self.plan, self.plan.first_reduction
        inner = plan.pieces[first:-1]
        split = len(inner) if self.hook is not None else plan.first_shared - first
        unrolled = inner[split:]

        def around(point: Box, inside: Callable[[Box], list[Stmt]]) -> list[Stmt]:
            lanes = map_lanes(self.ctx.target)
            return Walker(self.ctx, unrolled, lambda b, _: inside(b), lanes).walk(0, point)

        loops = LaneLoops(self.ctx, plan.pieces[-1], tile, updater, around)
        walker = self._walker(inner[:split], updater.update, tile)
        walker.leaf = lambda b, _: loops.emit(b, walker)
        return walker.walk(0, box)


def _largest_power(limit: int) -> int:
    return 1 << (max(1, limit).bit_length() - 1)
