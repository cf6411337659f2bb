"""Ways to schedule one stage on a GPU, best guess first: tiles of blocks and threads, terms that
threads share, elements dealt out to them.

As on CPUs, everything here is a guess by rules; whether it keeps within the device's limits is
decided by the lowering.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from edgekernelbench.agents.tuner.choices import Choice, best_spread, loops_line, piece
from edgekernelbench.agents.tuner.groups import loop_names
from edgekernelbench.agents.tuner.views import AxisView, StageView
from edgekernelbench.ir import surface as s
from edgekernelbench.targets.model import Target

_BLOCK_TILES = (8, 16, 32, 64, 128)
_THREAD_TILES = (1, 2, 4, 8)
_DEPTHS = (8, 16, 32)
_TEAMS = (32, 64, 128, 256, 512)
_LEAST_THREADS = 32
_MOST_THREADS = 512
_KEPT_RESULTS = 64
"""Results that a thread may keep in registers."""
_BUSY = 512
"""Threads that keep a multiprocessor busy, roughly."""


@dataclass(frozen=True, slots=True)
class Team:
    """The few figures of a GPU that shape a nest."""

    max_threads: int
    units: int

    @classmethod
    def of(cls, target: Target) -> Team:
        assert target.gpu is not None
        return cls(target.gpu.max_threads, target.gpu.units)

    def idle(self, blocks: int, threads: int) -> float:
        """How many times longer work takes for want of threads: 1 where there are enough."""
        want = max(1.0, self.units * _BUSY / (blocks * threads))
        return want**0.7 * max(1.0, self.units / blocks) ** 0.3


# ---------------------------------------------------------------- tiles
@dataclass(frozen=True, slots=True)
class _Side:
    """Of a tile along an axis: what a block takes, and each thread of it."""

    axis: AxisView
    block: int
    own: int

    @property
    def threads(self) -> int:
        return math.ceil(self.block / self.own)

    @property
    def blocks(self) -> int:
        return math.ceil(self.axis.extent / self.block)

    @property
    def waste(self) -> float:
        return self.blocks * self.threads * self.own / self.axis.extent

    def outer(self) -> list[s.Piece]:
        whole = self.block >= self.axis.extent
        return [] if whole else [piece(self.axis.name, self.block, "block")]

    def thread(self) -> s.Piece:
        return piece(self.axis.name, self.own if self.own > 1 else None, "thread")

    def inner(self) -> list[s.Piece]:
        return [piece(self.axis.name, None, "unroll")] if self.own > 1 else []


def tile_choices(view: StageView, team: Team) -> Iterator[Choice]:
    """Each thread keeps a small tile of results; operands come through shared memory or not."""
    if view.kind != "reduce" or not view.rectangular or not view.spatial:
        return
    lane = view.spatial[-1]
    rows: list[AxisView | None] = [a for a in view.spatial[:-1] if a.extent > 1]
    for row in rows or [None]:
        for sides in _sides(row, lane):
            threads = math.prod(side.threads for side in sides)
            kept = math.prod(side.own for side in sides)
            if threads <= min(team.max_threads, _MOST_THREADS) and kept <= _KEPT_RESULTS:
                yield from _tiled(view, sides, team)


def _sides(row: AxisView | None, lane: AxisView) -> Iterator[tuple[_Side, ...]]:
    lanes = list(_side(lane))
    rows = [(side,) for side in _side(row)] if row is not None else [()]
    for above, beside in itertools.product(rows, lanes):
        if math.prod(side.threads for side in (*above, beside)) >= _LEAST_THREADS:
            yield (*above, beside)


def _side(axis: AxisView) -> Iterator[_Side]:
    """Blocks larger than the axis are as good as one that has all of it."""
    sizes = dict.fromkeys(min(size, axis.extent) for size in _BLOCK_TILES)
    for block, own in itertools.product(sizes, _THREAD_TILES):
        if own <= block:
            yield _Side(axis, block, own)


def _tiled(view: StageView, sides: tuple[_Side, ...], team: Team) -> Iterator[Choice]:
    taken = {side.axis.uid for side in sides}
    blocks = [piece(a.name, None, "block") for a in view.spatial if a.uid not in taken]
    blocks += [one for side in sides for one in side.outer()]
    if not blocks:
        return
    threads = [side.thread() for side in sides]
    unrolled = [one for side in sides for one in side.inner()]
    terms = [piece(a.name) for a in view.reduction]
    grid = math.prod(a.extent for a in view.spatial if a.uid not in taken)
    grid *= math.prod(side.blocks for side in sides)
    cost = math.prod(side.waste for side in sides) * team.idle(
        grid, math.prod(side.threads for side in sides)
    )
    label = " x ".join(f"{side.axis.name} {side.block}/{side.own}" for side in sides)
    direct = loops_line(view.name, [*blocks, *threads, *terms, *unrolled])
    yield _choice(f"tile {label}", view, direct, (), cost * _loads(view, sides, False))
    for axis, depth in itertools.product(view.reduction[:1], _DEPTHS):
        if depth >= axis.extent and axis.extent > 1:
            continue
        step = [piece(axis.name, depth)]
        line = loops_line(view.name, [*blocks, *step, *threads, *terms, *unrolled])
        through = cost * _loads(view, sides, True) * (1 + 2 / depth)
        for extra, memory in _caches(view, line, axis):
            yield _choice(f"tile {label}, depth {depth}, {extra}", view, line, memory, through)


def _loads(view: StageView, sides: tuple[_Side, ...], cached: bool) -> float:
    """Cost of a term: one operation, and what is fetched for it from near and from afar."""
    near = far = 0.0
    for read in view.reads:
        moving = [side for side in sides if any(read.strides(side.axis.uid))]
        still = [side for side in sides if side not in moving]
        again = math.prod(side.own for side in still)
        near += 1 / again
        bad = sides[-1] in moving and read.lane_form(sides[-1].axis.uid) in ("strided", "gather")
        block = math.prod(side.block for side in still)
        far += 8 / block if cached else (4.0 if bad else 1.0) / again
    return 1 + (0.5 * near if cached else near) + far


def _caches(
    view: StageView, line: s.LoopsLine, axis: AxisView
) -> Iterator[tuple[str, tuple[s.MemoryLine, ...]]]:
    """Copies of what a tile reads; turned round where terms lie side by side; fetched ahead."""
    loop = loop_names(line)[[p.axis for p in line.pieces].index(axis.name)]
    reads = {r.tensor.name: r for r in view.reads if None not in r.dims}
    names = [n for n, r in reads.items() if r.tensor.kind != "table" and len(r.tensor.shape) > 1]
    if not names:
        return
    target = s.Ref(view.name)
    cache = s.CacheLine(tuple(s.Cached(s.Ref(n)) for n in names), target, loop)
    turned = tuple(
        _turned(n, len(reads[n].tensor.shape))
        for n in names
        if reads[n].lane_form(axis.uid) == "contiguous"
    )
    ahead = s.PrefetchLine(tuple(map(s.Ref, names)), target, loop, s.Num(1))
    yield "cached", (cache,)
    yield "fetched ahead", (cache, ahead)
    if turned:
        yield "turned", (cache, *turned)
        yield "turned, fetched ahead", (cache, ahead, *turned)


def _turned(tensor: str, rank: int) -> s.LayoutLine:
    names = tuple(f"a{d}" for d in range(rank))
    order = tuple(s.Name(n) for n in (names[-1], *names[:-1]))
    return s.LayoutLine(s.Ref(f"{tensor}.cache"), names, order)


# ---------------------------------------------------------------- shared terms
def shared_choices(view: StageView, team: Team) -> Iterator[Choice]:
    """Threads add up terms of one result, several results a block or one."""
    if view.kind != "reduce" or not view.rectangular or not view.reduction:
        return
    *others, axis = view.reduction
    results = math.prod(a.extent for a in view.spatial)
    bad = sum(r.lane_form(axis.uid) in ("strided", "gather") for r in view.reads)
    for threads, group in itertools.product(_TEAMS, (1, 2, 4, 8, 16)):
        team_size = threads * group
        if team_size > min(team.max_threads, _MOST_THREADS) or threads > 2 * axis.extent:
            continue
        if group > 1 and (not view.spatial or view.spatial[-1].extent < group):
            continue
        pieces = [piece(a.name, None, "block") for a in view.spatial]
        if group > 1:
            last = view.spatial[-1].name
            pieces[-1:] = [piece(last, group, "block"), piece(last, None, "thread")]
        pieces += [piece(a.name) for a in others]
        pieces += [piece(axis.name, threads)] if threads < axis.extent else []
        pieces.append(piece(axis.name, None, "thread"))
        waste = math.ceil(axis.extent / threads) * threads / axis.extent
        cost = waste * (2.0 + len(view.reads) + 4.0 * bad) * (1 + math.log2(threads) / 32)
        cost *= team.idle(max(1, results // group), team_size)
        label = f"{threads} threads a result" + (f", {group} a block" if group > 1 else "")
        yield _choice(label, view, loops_line(view.name, pieces), (), cost)


# ---------------------------------------------------------------- maps
def map_choices(view: StageView, team: Team) -> Iterator[Choice]:
    """Elements side by side to threads side by side, one or several each."""
    if view.kind != "map" or not view.spatial or view.loops:
        return
    last = view.spatial[-1]
    points = math.prod(a.extent for a in view.spatial)
    for threads, own in itertools.product(_TEAMS[1:4], (1, 2, 4)):
        if threads > team.max_threads or threads * own > 2 * last.extent:
            continue
        outer = [piece(a.name, None, "block") for a in view.spatial[:-1]]
        chunk = [piece(last.name, threads * own, "block")] if threads * own < last.extent else []
        if not outer and not chunk:
            continue
        inner = [piece(last.name, threads, "unroll")] if own > 1 else []
        line = loops_line(view.name, [*outer, *chunk, *inner, piece(last.name, None, "thread")])
        waste = math.ceil(last.extent / (threads * own)) * threads * own / last.extent
        cost = waste * team.idle(max(1, points // (threads * own)), threads) * (1 + 0.1 / own)
        yield _choice(f"{threads} threads, {own} each", view, line, (), cost)


def _choice(
    label: str, view: StageView, line: s.LoopsLine, memory: tuple[s.MemoryLine, ...], cost: float
) -> Choice:
    return Choice(label, view.name, (line,), (), frozenset({view.name}), cost, memory)


def own_choices(view: StageView, team: Team) -> list[Choice]:
    """All of these for a stage outside of loops of the program, best guess first."""
    if view.loops:
        return []
    found = (tile_choices(view, team), shared_choices(view, team), map_choices(view, team))
    return best_spread(itertools.chain(*found))
