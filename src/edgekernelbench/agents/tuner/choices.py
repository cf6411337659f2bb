"""Ways to schedule one stage, best guess first.

A `Choice` is a bundle of schedule and memory lines about one root stage and the stages that are
placed into its nest. Everything here is a guess by rules; whether it is legal is decided by the
lowering, and whether it is fast by the device.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from edgekernelbench.agents.tuner.dots import dot_axis, dot_layouts, dot_pieces
from edgekernelbench.agents.tuner.views import AxisView, Read, StageView
from edgekernelbench.ir import surface as s
from edgekernelbench.targets.model import Target

_VECTOR_MULTIPLES = (1, 2, 3, 4, 6, 8)
_UNROLLS = (1, 2, 3, 4, 6, 7, 8, 12, 14, 16)
_KEEP = 40
_DOT_COST = 0.6
"""Of a step with dot products beside one without: on AVX2 about this, on newer CPUs less."""
_OPERATIONS_A_BYTE = 3.0
"""Operations that take as long as fetching a byte from beyond the private caches, roughly."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Lines about ``root``; ``claims`` are the stages whose place or nest they settle.

    ``cost`` orders guesses: arithmetic cost per operation relative to a perfect nest. ``memory``:
    what it says of memory beside layouts of tensors.
    """

    label: str
    root: str
    lines: tuple[s.ScheduleLine, ...]
    layouts: tuple[s.LayoutLine, ...]
    claims: frozenset[str]
    cost: float
    memory: tuple[s.MemoryLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    """The few figures of a target that shape a nest. Lanes hold 32-bit values; bytes."""

    lanes: int
    registers: int
    threads: int
    private_cache: int

    @classmethod
    def of(cls, target: Target) -> Machine:
        wide = target.vector_bits >= 512
        cache = (*target.cache_bytes[:2], 256 << 10)[1] if target.cache_bytes else 256 << 10
        return cls(max(4, target.vector_bits // 32), 32 if wide else 16, target.threads, cache)


def piece(axis: str, step: int | None = None, annotation: s.Annotation | None = None) -> s.Piece:
    return s.Piece(annotation, axis, None if step is None else s.Num(step))


def loops_line(stage: str, pieces: list[s.Piece]) -> s.LoopsLine:
    return s.LoopsLine(s.Ref(stage), tuple(pieces))


# ---------------------------------------------------------------- reductions
@dataclass(frozen=True, slots=True)
class _Tile:
    """A register tile: ``vector`` lanes along one axis, ``unroll`` rows along another."""

    lane: AxisView
    lanes: int
    row: AxisView | None
    rows: int


def reduction_choices(view: StageView, machine: Machine, inner: bool) -> list[Choice]:
    """Register-tiled nests and SIMD row reductions for a reduction, best guess first.

    Args:
        inner: the nest may not be parallel (the stage stands inside a ``seq``, or is placed).
    """
    found: dict[tuple[object, ...], Choice] = {}
    tiled = itertools.chain(_tiled(view, machine, inner), _dotted(view, machine, inner))
    for choice in itertools.chain(tiled, _rows(view, machine, inner)):
        key = (*choice.lines, *choice.layouts)
        if key not in found or choice.cost < found[key].cost:
            found[key] = choice
    return best_spread(found.values())


def best_spread(choices: Iterable[Choice]) -> list[Choice]:
    """The best by cost, but a tile's variations (order of loops, unrolling) behind other tiles."""
    seen: dict[str, int] = {}
    ranked = []
    for choice in sorted(choices, key=lambda c: c.cost):
        number = seen.get(choice.label, 0)
        seen[choice.label] = number + 1
        ranked.append((choice.cost * (1 + 0.12 * number), len(ranked), choice))
    return [choice for _, _, choice in sorted(ranked, key=lambda r: r[:2])][:_KEEP]


def _tiled(view: StageView, machine: Machine, inner: bool) -> Iterator[Choice]:
    if not view.rectangular and not view.spatial:
        return
    for tile in _tiles(view, machine):
        outer = _outer_pieces(view, tile)
        for order, unroll_k in itertools.product(_orders(outer, tile), (False, True)):
            reduction = _reduction_pieces(view, unroll_k)
            if reduction is None:
                continue
            pieces = [*_parallel(order, machine, inner), *reduction]
            if tile.row is not None and tile.rows > 1:
                pieces.append(piece(tile.row.name, None, "unroll"))
            pieces.append(piece(tile.lane.name, None, "vectorize"))
            layouts = tuple(_lane_layouts(view, tile))
            yield Choice(
                f"tile {tile.rows}x{tile.lanes} on {tile.lane.name}",
                view.name,
                (loops_line(view.name, pieces),),
                layouts,
                frozenset({view.name}),
                _tile_cost(view, tile, machine, bool(layouts))
                * (0.97 if unroll_k else 1.0)
                * (1 + _streaming(view, order, machine)),
            )


def _dotted(view: StageView, machine: Machine, inner: bool) -> Iterator[Choice]:
    """Register tiles whose innermost step is a dot product of bytes."""
    axis = dot_axis(view)
    if axis is None:
        return
    for tile in _tiles(view, machine):
        layouts = dot_layouts(view, tile.lane, tile.lanes)
        if layouts is None:
            continue
        for order in _orders(_outer_pieces(view, tile), tile):
            pieces = [*_parallel(order, machine, inner), *dot_pieces(view)]
            if tile.row is not None and tile.rows > 1:
                pieces.append(piece(tile.row.name, None, "unroll"))
            pieces.append(piece(tile.lane.name, None, "vectorize"))
            pieces.append(piece(axis.name, None, "dot4"))
            yield Choice(
                f"dot tile {tile.rows}x{tile.lanes} on {tile.lane.name}",
                view.name,
                (loops_line(view.name, pieces),),
                layouts,
                frozenset({view.name}),
                _DOT_COST * _tile_cost(view, tile, machine, bool(layouts)),
            )


def _tiles(view: StageView, machine: Machine) -> Iterator[_Tile]:
    budget = (machine.registers - 4) * machine.lanes
    for lane in view.spatial:
        if lane.extent < 4:
            continue
        for lanes in _lane_counts(lane.extent, machine):
            yield _Tile(lane, lanes, None, 1)
            for row in view.spatial:
                if row.uid == lane.uid:
                    continue
                for rows in _UNROLLS[1:]:
                    if row.extent % rows == 0 and rows * lanes <= budget:
                        yield _Tile(lane, lanes, row, rows)


def _lane_counts(extent: int, machine: Machine) -> list[int]:
    wanted = [machine.lanes * m for m in _VECTOR_MULTIPLES]
    dividing = [n for n in wanted if extent % n == 0]
    if dividing:
        return dividing
    if extent <= 16:
        return [extent]
    smaller = [n for n in range(4, 65, 4) if extent % n == 0]
    return smaller[-2:] or [n for n in wanted[:2] if n < extent]


def _outer_pieces(view: StageView, tile: _Tile) -> list[tuple[AxisView, s.Piece]]:
    out = []
    for axis in view.spatial:
        if axis.uid == tile.lane.uid:
            if tile.lanes < axis.extent:
                out.append((axis, piece(axis.name, tile.lanes)))
        elif tile.row is not None and axis.uid == tile.row.uid and tile.rows > 1:
            if tile.rows < axis.extent:
                out.append((axis, piece(axis.name, tile.rows)))
        else:
            out.append((axis, piece(axis.name)))
    return out


def _orders(
    outer: list[tuple[AxisView, s.Piece]], tile: _Tile
) -> list[list[tuple[AxisView, s.Piece]]]:
    """As written, lanes outermost, and the longest loop outermost."""
    outer = sorted(outer, key=lambda o: _trips(o) == 1)  # a loop of one iteration hides the next
    lane_first = sorted(outer, key=lambda o: (_trips(o) == 1, o[0].uid != tile.lane.uid))
    longest = sorted(outer, key=lambda o: -_trips(o))
    unique: list[list[tuple[AxisView, s.Piece]]] = []
    for order in (outer, lane_first, longest):
        if order not in unique:
            unique.append(order)
    return unique


def _trips(item: tuple[AxisView, s.Piece]) -> int:
    axis, one = item
    step = one.step.value if isinstance(one.step, s.Num) else 1
    return math.ceil(axis.extent / step)


def _parallel(
    order: list[tuple[AxisView, s.Piece]], machine: Machine, inner: bool
) -> list[s.Piece]:
    pieces: list[s.Piece] = []
    trips = 1
    for item in order:
        one = item[1]
        if not inner and trips < 4 * machine.threads and len(pieces) < 2 and _leading(pieces):
            one = s.Piece("parallel", one.axis, one.step)
            trips *= _trips(item)
        pieces.append(one)
    return pieces


def _leading(pieces: list[s.Piece]) -> bool:
    return all(p.annotation == "parallel" for p in pieces)


def _reduction_pieces(view: StageView, unroll: bool) -> list[s.Piece] | None:
    pieces = [piece(a.name) for a in view.reduction]
    if not unroll:
        return pieces
    last = view.reduction[-1]
    if last.extent <= 5 and view.rectangular:
        pieces[-1] = piece(last.name, None, "unroll")
        return pieces
    step = next((n for n in (4, 2) if last.extent % n == 0), None)
    if step is None or not view.rectangular:
        return None
    return [*pieces[:-1], piece(last.name, step), piece(last.name, None, "unroll")]


def _tile_cost(view: StageView, tile: _Tile, machine: Machine, packed: bool) -> float:
    vectors = math.ceil(tile.lanes / machine.lanes)
    work = tile.rows * vectors
    loads = 0.0
    for read in view.reads:
        by_row = tile.row is not None and any(read.strides(tile.row.uid))
        form = read.lane_form(tile.lane.uid)
        times = tile.rows if by_row else 1
        if form == "broadcast":
            loads += times * 0.5
        elif form == "contiguous" or (form == "strided" and _packable(read)):
            loads += times * vectors
        else:
            loads += times * vectors * machine.lanes
    cost = max(1.0, loads / work, 8 / work) + 0.4 * loads / work
    if tile.lanes % machine.lanes:
        cost *= machine.lanes * vectors / tile.lanes
    store_strided = bool(view.spatial) and view.spatial[-1].uid != tile.lane.uid
    length = math.prod(a.extent for a in view.reduction) or 1
    cost *= 1 + (8.0 if store_strided else 1.0) / length
    return cost * (0.98 if packed else 1.0)


def _streaming(view: StageView, order: list[tuple[AxisView, s.Piece]], machine: Machine) -> float:
    """Time to fetch large operands again in each iteration of the outermost loop, relative to the
    arithmetic: operands that this loop does not select and that no private cache holds."""
    if not order:
        return 0.0
    axis = order[0][0]
    again = {
        read.tensor.name: read.tensor.bytes
        for read in view.reads
        if read.tensor.bytes > machine.private_cache // 2 and not any(read.strides(axis.uid))
    }
    points = math.prod(a.extent for a in (*view.spatial, *view.reduction))
    return _OPERATIONS_A_BYTE * _trips(order[0]) * sum(again.values()) / (2 * points)


def _packable(read: Read) -> bool:
    return read.tensor.kind == "stage" or read.tensor.const


def _lane_layouts(view: StageView, tile: _Tile) -> Iterator[s.LayoutLine]:
    """Layouts that make the lanes of every constant and stage operand contiguous."""
    done: set[str] = set()
    for read in view.reads:
        tensor = read.tensor
        if tensor.name in done or len(tensor.shape) < 2 or tensor.kind in ("table", "output"):
            continue
        form = read.lane_form(tile.lane.uid)
        dims = [d for d, stride in enumerate(read.strides(tile.lane.uid)) if stride]
        wanted = form == "strided" or (form == "contiguous" and tensor.const)
        if not wanted or not (_packable(read) or len(view.reduction) > 0):
            continue
        done.add(tensor.name)
        yield _layout(view, read, dims[0], tile.lanes)


def _layout(view: StageView, read: Read, lane_dim: int, lanes: int) -> s.LayoutLine:
    tensor = read.tensor
    names = tuple(f"a{d}" for d in range(len(tensor.shape)))
    order = [a.uid for a in view.reduction]

    def depth(dim: int) -> int:
        form = read.dims[dim]
        uids = [uid for uid, _ in form.terms if uid in order] if form is not None else []
        return order.index(uids[0]) if uids else -1

    rest = sorted((d for d in range(len(names)) if d != lane_dim), key=depth)
    lane = s.Name(names[lane_dim])
    kept: list[s.Expr] = [s.Name(names[d]) for d in rest]
    if tensor.const and lanes < tensor.shape[lane_dim] and tensor.shape[lane_dim] % lanes == 0:
        block = s.Binary("//", lane, s.Num(lanes))
        target = (block, *kept, s.Binary("%", lane, s.Num(lanes)))
    else:
        target = (*kept, lane)
    return s.LayoutLine(s.Ref(tensor.name), names, target)


def _rows(view: StageView, machine: Machine, inner: bool) -> Iterator[Choice]:
    """SIMD along the last reduction axis: dot products, row sums and maxima."""
    if not view.rectangular or not view.reduction or view.reduction[-1].extent < 16:
        return
    lane = view.reduction[-1]
    forms = [read.lane_form(lane.uid) for read in view.reads]
    bad = sum(f in ("strided", "gather") for f in forms)
    outer = [(a, piece(a.name)) for a in view.spatial]
    tail = [*(piece(a.name) for a in view.reduction[:-1]), piece(lane.name, None, "vectorize")]
    pieces = [*_parallel(outer, machine, inner), *tail]
    yield Choice(
        f"rows on {lane.name}",
        view.name,
        (loops_line(view.name, pieces),),
        (),
        frozenset({view.name}),
        2.0 * (1 + machine.lanes * bad),
    )


# ---------------------------------------------------------------- maps
def map_choices(view: StageView, machine: Machine, inner: bool) -> list[Choice]:
    """Vectorised nests of an elementwise stage, parallel and not."""
    if not view.spatial:
        return []
    out = []
    last = view.spatial[-1]
    for parallel in (True, False) if not inner and len(view.spatial) > 1 else (False,):
        outer = [(a, piece(a.name)) for a in view.spatial[:-1]]
        pieces = _parallel(outer, machine, not parallel)
        out.append(
            Choice(
                "parallel rows" if parallel else "rows",
                view.name,
                (loops_line(view.name, [*pieces, piece(last.name, None, "vectorize")]),),
                (),
                frozenset({view.name}),
                1.0 if parallel == (view.work > 2e5) else 2.0,
            )
        )
    if not inner and last.extent >= 4096:
        for step in (1024, 4096, 16384):
            if last.extent % step == 0 and last.extent > step and len(view.spatial) == 1:
                pieces = [piece(last.name, step, "parallel"), piece(last.name, None, "vectorize")]
                out.append(
                    Choice(
                        f"parallel chunks of {step}",
                        view.name,
                        (loops_line(view.name, pieces),),
                        (),
                        frozenset({view.name}),
                        0.9 if view.work > 2e5 else 2.5,
                    )
                )
    return sorted(out, key=lambda c: c.cost)
