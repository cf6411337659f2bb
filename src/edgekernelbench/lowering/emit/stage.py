"""Emission of one stage over a box: its loops, its reduction, and what is placed inside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Stage, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.emit.accumulate import Chunk
from edgekernelbench.lowering.emit.boxes import Box, Span, image, within
from edgekernelbench.lowering.emit.checks import PlacedChecks
from edgekernelbench.lowering.emit.context import Context, Storage
from edgekernelbench.lowering.emit.cuts import cutter
from edgekernelbench.lowering.emit.lanes import map_lanes, native_lanes
from edgekernelbench.lowering.emit.prefetch import fetcher
from edgekernelbench.lowering.emit.reduction import (
    Also,
    ReductionEmitter,
    has_tile,
    in_registers,
    readable,
)
from edgekernelbench.lowering.emit.scatter import emit_scatter
from edgekernelbench.lowering.emit.slots import flat_index
from edgekernelbench.lowering.emit.split import Partials
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.emit.walk import Ahead, Hook, Walker
from edgekernelbench.lowering.expr.linear import int_const, linear, to_expr
from edgekernelbench.lowering.gpu.banks import rows_apart
from edgekernelbench.lowering.gpu.cooperate import Cooperation
from edgekernelbench.lowering.gpu.device import device_of
from edgekernelbench.lowering.gpu.fetch import Doubled, Fetch, is_spread
from edgekernelbench.lowering.gpu.own import reads_own
from edgekernelbench.lowering.gpu.spread import block_threads
from edgekernelbench.lowering.gpu.team import Team
from edgekernelbench.lowering.nest import Stmt, Store
from edgekernelbench.lowering.plan import Attach, Piece, StagePlan, extents_of, own_axes

MAX_EPILOGUE_COPIES = 64


@dataclass(slots=True)
class Emitter:
    """Emits stages and everything placed inside them.

    Attributes:
        also: the stages whose components the stages being emitted compute with their own.
        tiles: what part of each stage the tile holds that it has at this point.
        teams: the threads of a block that share the loops of each stage being emitted.
        counts: of stages that are computed by the threads of another one's team: how many of them
            each ``thread`` loop takes.
        flowing: copies that are fetched an iteration ahead, in the loop being emitted.
        apart: stages whose results are read by other threads than those that have them.
    """

    ctx: Context
    tree: Tree
    also: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tiles: dict[str, Box] = field(default_factory=dict)
    teams: dict[str, Team | None] = field(default_factory=dict)
    counts: dict[str, tuple[int, ...]] = field(default_factory=dict)
    apart: set[str] = field(default_factory=set)
    flowing: frozenset[str] = frozenset()

    # ---------------------------------------------------------- entry
    def root(self, name: str) -> list[Stmt]:
        """The whole of a stage that is not placed."""
        axes = own_axes(self._plan(name).stage)
        box: Box = {v: Span(int_const(0), n, v) for v, n in axes.items()}
        return self.emit(name, box, False, self.tree.led_by(name))

    def _plan(self, name: str) -> StagePlan:
        return self.ctx.plan.stages[name]

    def emit(self, name: str, box: Box, unrolled: bool, others: Sequence[str] = ()) -> list[Stmt]:
        """The stage over a box of its spatial axes.

        Args:
            unrolled: unroll short loops: the stage reads an accumulator in registers.
            others: components of the same reduction to compute with it.
        """
        if any(span.extent == 0 for span in box.values()):
            return []
        self.also[name] = tuple(others)
        self.ctx.stages.append(name)
        out = self._emit(self._plan(name), box, unrolled)
        self.ctx.stages.pop()
        return out

    def _emit(self, plan: StagePlan, box: Box, unrolled: bool) -> list[Stmt]:
        self.teams[plan.stage.name] = self._team(plan, box)
        if self._by_block(plan, box):
            return Fetch.of(self.ctx, plan, box).copy()
        if plan.reduce is None:
            assert plan.value is not None
            return self._walker(plan, plan.pieces, self._map_leaf(plan), unrolled).walk(0, box)
        if plan.scatter is not None:
            return emit_scatter(self.ctx, plan, box)
        outer = plan.pieces[: plan.first_reduction]
        if plan.split is not None:
            return self._split(plan, plan.split, outer, box)
        walker = self._walker(plan, outer, lambda inner, _: self._reduce(plan, inner), False)
        return walker.walk(0, box)

    def _by_block(self, plan: StagePlan, box: Box) -> bool:
        """Whether the threads of a block take the elements of a stage as they come."""
        device = self.ctx.device
        copies = plan.stage.name in self.ctx.plan.caches or isinstance(plan.value, core.Load)
        limited = any(span.limit is not None for span in box.values())
        if device is None or device.level != "block" or limited:
            return False
        return copies and is_spread(plan)

    def _team(self, plan: StagePlan, box: Box) -> Team | None:
        """The threads that share the loops of a stage over a box."""
        device = self.ctx.device
        if device is None or device.level == "thread":
            return None
        extents = {**extents_of(plan.stage), **{v: span.extent for v, span in box.items()}}
        team = Team.of(plan, extents)
        counts = self.counts.get(plan.stage.name)
        if team is not None and counts is not None:
            return replace(team, counts=counts)
        return team

    def _reduce(self, plan: StagePlan, box: Box, chunk: Chunk | None = None) -> list[Stmt]:
        if plan.cooperative and device_of(self.ctx).level == "block":
            return Cooperation(self.ctx, plan, self._parts(plan), chunk).emit(box)
        return self._reduction(plan, box, chunk)

    def _split(
        self, plan: StagePlan, split: Piece, outer: tuple[Piece, ...], box: Box
    ) -> list[Stmt]:
        """A reduction in chunks that several threads compute, then merged in order."""
        assert plan.reduce is not None
        partials = Partials.of(self.ctx, plan, split, box, self._parts(plan))

        def one(inner: Box, _: int) -> list[Stmt]:
            return self._reduce(plan, inner, partials.chunk(inner))

        full = {**box, split.axis: Span(int_const(0), partials.extent, split.axis)}
        chunks = self._walker(plan, outer, one, False).walk(0, full)
        return [*chunks, *partials.merge(box)]

    def _parts(self, plan: StagePlan) -> list[tuple[int, Stage]]:
        """The components of its reduction that a stage computes, with their stages."""
        names = (plan.stage.name, *self.also[plan.stage.name])
        stages = [self._plan(name) for name in names]
        return [(p.reduce.part, p.stage) for p in stages if p.reduce is not None]

    def _walker(
        self,
        plan: StagePlan,
        pieces: tuple[Piece, ...],
        leaf: Callable[[Box, int], list[Stmt]],
        unrolled: bool,
    ) -> Walker:
        if self.ctx.device is not None:
            placed = [self._plan(name) for name in self.tree.below(plan.stage.name, 0)]
            return Walker(
                self.ctx, pieces, leaf, 1,
                hook=self._hook(plan), unrolled=unrolled, cooperative=plan.cooperative,
                threads=block_threads([plan, *placed], self.ctx.device.gpu),
                team=self.teams[plan.stage.name], ahead=self._ahead(plan),
            )  # fmt: skip
        cuts = cutter(plan.exprs, self.ctx.ranges)
        return Walker(
            self.ctx,
            pieces,
            leaf,
            map_lanes(self.ctx.target),
            hook=self._hook(plan),
            cuts=cuts,
            interior=cuts.interior if plan.reduce is None else None,
            fetch=fetcher(self.ctx, plan),
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
        here, homes = ([n for n in found if n not in self.flowing] for found in (here, homes))
        if not here and not homes:
            return inside()
        boxes, unfit = self.tree.boxes(name, k, box, self.ctx.ranges)
        for member, reason in unfit.items():
            help = f"place what `{member}` reads in a loop of `{member}` instead"
            self.ctx.refuse(rules.NOT_TILEWISE, member, reason, help)
        self.tiles |= {member: boxes[member] for member in homes}
        checks = PlacedChecks(self.ctx, self.tree)
        for member in here:
            checks.cover(member, boxes[member])
            checks.one_thread(member, name, k, self.teams.get(name))
            if self.ctx.plan.caches.get(member) is not None:
                checks.reuse(member, boxes[member], box)
            checks.tile(member, boxes[member], self.tiles.get(member, boxes[member]))
        out: list[Stmt] = []
        storages: dict[str, Storage] = {}
        self._assign_results(name, k)
        for member in homes:
            own = member in self.tree.group(name)
            if not (own and self._tile_serves(self._plan(member), k, boxes[member])):
                storages[member] = self._home(member, boxes[member], out)
        # Not by the order of the text: a stage written after this one may feed what is placed
        # further inside.
        after = [n for n in here if self.tree.consumes(name, n)]
        with self.ctx.stored(storages):
            done: set[str] = set()
            for member in [n for n in here if n not in after]:
                out += self._member(member, boxes, False, done)
            out += inside()
            for member in after:
                short = self._reads_registers(member, name, boxes[member])
                out += self._member(member, boxes, short, done)
        return out

    def _assign_results(self, name: str, k: int) -> None:
        """Decides whether results of a reduction stay with the threads of a block that have them.
        What reads them there runs on the very same threads."""
        device = self.ctx.device
        for member in self.tree.group(name):
            plan = self._plan(member)
            self.apart.discard(member)
            if device is None or device.level != "block" or plan.first_reduction - 1 != k:
                continue
            team = self.teams.get(name)
            if team is None or not self._own_only(member):
                self.apart.add(member)
                continue
            for reader in self.tree.children.get(member, ()):
                if member in self.tree.graph.producers(reader):
                    self.counts[reader] = team.counts

    def _member(
        self, name: str, boxes: Mapping[str, Box], short: bool, done: set[str]
    ) -> list[Stmt]:
        """A stage placed here, with the components it leads that are needed in the same box."""
        if name in done:
            return []
        own = list(self._own(name, boxes[name]).values())
        led = [n for n in self.tree.led_by(name) if list(self._own(n, boxes[n]).values()) == own]
        done.update(led)
        return self.emit(name, self._own(name, boxes[name]), short, led)

    def _own(self, name: str, box: Box) -> Box:
        return {var: box[var] for var in own_axes(self._plan(name).stage)}

    def _tile_serves(self, plan: StagePlan, k: int, box: Box) -> bool:
        """Whether the accumulator tile of a stage is its storage inside loop ``k``."""
        outside = plan.reduce is not None and k == plan.first_reduction - 1
        served = plan.stage.name not in self.apart
        return outside and served and readable(plan) and has_tile(plan, box)

    def _own_only(self, name: str) -> bool:
        """Whether what is placed around a reduction of a block finds its results in registers:
        each thread reads no other ones than it has."""
        plan = self._plan(name)
        here = Attach(name, plan.first_reduction - 1)
        inside = set(self.tree.below(name, 0))
        return all(
            self.tree.attach[reader] == here and reads_own(self._plan(reader), plan, here.depth)
            for reader in self.tree.graph.readers(name)
            if reader in inside
        )

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
        return copies <= MAX_EPILOGUE_COPIES and in_registers(plan)

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
        extents = tuple(s.extent for s in spans)
        if name in self.ctx.plan.caches and extents and self.ctx.device is None:
            extents = (*extents[:-1], self._padded(extents[-1]))
        moved = tuple(
            to_expr(linear(e).minus(linear(s.base))) for e, s in zip(index, spans, strict=True)
        )
        device = self.ctx.device
        if device is not None and device.level == "block":
            extents = rows_apart(self.ctx, name, extents)
            buffer = device.tile(self.ctx, name, tensor.dtype, prod(extents))
            return Storage(buffer, formals, (flat_index(moved, extents),))
        buffer = self.ctx.tile("stage", name, tensor.dtype, extents, out)
        return Storage(buffer, formals, moved)

    def _padded(self, extent: int) -> int:
        """The length of a row of a copy: whole vectors, unless it is much shorter than one."""
        lanes = native_lanes(self.ctx.target)
        return extent if 2 * extent <= lanes else -(-extent // lanes) * lanes

    # ---------------------------------------------------------- reductions
    def _reduction(self, plan: StagePlan, box: Box, chunk: Chunk | None = None) -> list[Stmt]:
        name, depth = plan.stage.name, plan.first_reduction - 1
        children = self.tree.children.get(name, ())
        around = any(self.tree.attach[child].depth == depth for child in children)
        within = any(self.tree.attach[child].depth > depth for child in children)
        hook = self._hook(plan) if within else None
        here = Attach(name, depth)
        keeps = {
            stage.name: readable(self._plan(stage.name))
            and self.tree.homes.get(stage.name) == here
            and stage.name not in self.apart
            for _, stage in self._parts(plan)
        }
        around = around and name not in self.apart
        also = tuple(Also(stage, part, keeps[stage.name]) for part, stage in self._parts(plan)[1:])
        return ReductionEmitter(
            self.ctx, plan, hook, keeps[name], around, also, chunk,
            self.teams[name], self._ahead(plan),
        ).emit(box)  # fmt: skip

    # ---------------------------------------------------------- copies fetched ahead
    def _ahead(self, plan: StagePlan) -> Ahead | None:
        """What makes the loops of a stage in which copies are fetched an iteration ahead."""
        name, device = plan.stage.name, self.ctx.device
        wanted = [n for n in self.tree.children.get(name, ()) if n in self.ctx.plan.doubled]
        if device is None or not wanted:
            return None

        def loop(
            k: int, part: Callable[[Expr], Box], var: Var, last: int, make: Callable[[], list[Stmt]]
        ) -> tuple[list[Stmt], list[Stmt]] | None:
            members = [n for n in wanted if self.tree.attach[n].depth == k]
            if not members or device.level != "block":
                return None

            found, _ = self.tree.boxes(name, k, part(core.VarRef(var)), self.ctx.ranges)
            boxes = {n: self._own(n, found[n]) for n in members}
            homes = {n: self._half(n, boxes[n], var) for n in members}
            plans = [self._plan(n) for n in members]
            doubled = Doubled(self.ctx, plans, var, boxes, homes)
            before = self.flowing
            self.flowing = before | frozenset(members)
            made = doubled.first(), doubled.around(last, make)
            self.flowing = before
            return made

        return loop

    def _half(self, name: str, box: Box, turn: Var) -> Storage:
        """The half of a double buffer that an iteration uses, as the tile that holds ``box`` of a
        stage."""
        whole = self._home(name, box, [])
        size = whole.buffer.size
        buffer = device_of(self.ctx).tile(self.ctx, name, whole.buffer.dtype, 2 * size)
        half = core.Binary("mod", core.VarRef(turn), int_const(2), DType.S32)
        first = core.Binary("mul", half, int_const(size), DType.S32)
        (index,) = whole.index
        return Storage(buffer, whole.formals, (core.Binary("add", first, index, DType.S32),))
