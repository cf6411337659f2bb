"""The default CPU rules: the nest of a stage without a line in the schedule.

1. A stage without a reduction runs its axes in order; the last one is vectorised when everything
   is read along it element by element, or not at all.
2. A reduction whose reads run along the last spatial axis (matrix products, convolutions,
   pooling of channels-last data) keeps a tile of that axis in registers, with up to four rows of
   the innermost other axis that shares reads; the reduction loops go around the tile.
3. A reduction whose reads run along its last reduction axis (row sums, dot products) is done with
   SIMD partial results, for up to four neighbours at a time along each of two axes that share
   reads.
4. A reduction whose reads along the last spatial axis skip elements (strided convolutions) is
   done as in 2, when all such reads are shared by the rows. Every other one is one scalar
   accumulation per element.
5. A reduction whose condition compares an axis with data (``where idx[p] == v``) is a scatter: one
   pass over the elements, each of which goes where it lands.
6. The outermost loops run on all cores when a stage takes more than 200,000 weighted operations
   (a transcendental function counts ten) and is not inside a loop of the program.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from edgekernelbench.ir.core import Stage, Var
from edgekernelbench.lowering.access import Access, Stride, accesses, work
from edgekernelbench.lowering.emit.lanes import map_lanes, native_lanes
from edgekernelbench.lowering.expr.rewrite import free_vars
from edgekernelbench.lowering.plan import (
    Nest,
    Part,
    Piece,
    Scatter,
    extents_of,
    name_pieces,
    own_axes,
    reduce_axes,
)
from edgekernelbench.targets.model import Target

PARALLEL_WORK = 200_000
MAX_ROWS = 4
MIN_SIMD_EXTENT = 16
MIN_LANES = 4


@dataclass(frozen=True, slots=True)
class Situation:
    """Where a stage stands: ``placed`` in another's loop, or inside a loop of the program."""

    placed: bool
    in_loop: bool


def default_pieces(stage: Stage, target: Target, situation: Situation) -> tuple[Piece, ...]:
    """The nest of a stage that has no ``loops`` line."""
    items = _reduction(stage, target) if reduce_axes(stage) else _map(stage)
    alone = not situation.placed and not situation.in_loop
    if alone and target.threads > 1 and work(stage) >= PARALLEL_WORK:
        items = _threaded(items, extents_of(stage), target)
    return name_pieces(items)


def _reduction(stage: Stage, target: Target) -> list[Part]:
    reads, inner = accesses(stage), reduce_axes(stage)
    lane, row = _last_axis(stage), list(inner)[-1]
    if lane is not None and not _bounds_free(stage, lane):
        lane = None
    if lane is not None and _runs_along(reads, lane):
        return _rows_of_lanes(stage, reads, lane, target)
    if inner[row].extent >= MIN_SIMD_EXTENT and _runs_along(reads, row):
        second = MAX_ROWS if target.vector_bits >= 512 else MAX_ROWS // 2
        tile = _tile(stage, reads, row, (MAX_ROWS, second)) if len(reads) > 1 else {}
        return _blocked(stage, tile, row, 1)
    if lane is not None and _skips_along(stage, reads, lane):
        return _rows_of_lanes(stage, reads, lane, target)
    return [*(Part(v) for v in own_axes(stage)), *(Part(v, reduction=True) for v in inner)]


def _rows_of_lanes(
    stage: Stage, reads: tuple[Access, ...], lane: Var, target: Target
) -> list[Part]:
    width = max(map_lanes(target), 2 * native_lanes(target))
    tile = _tile(stage, reads, lane, (MAX_ROWS,))
    return _blocked(stage, tile, lane, min(own_axes(stage)[lane], width))


def _skips_along(stage: Stage, reads: tuple[Access, ...], lane: Var) -> bool:
    """Whether reads skip elements along the axis, and every such read serves several rows."""
    strided = [read for read in reads if read.strides[lane] == "strided"]
    tile = _tile(stage, reads, lane, (MAX_ROWS,))
    shared = all(read.strides[axis] == "fixed" for read in strided for axis in tile)
    return bool(tile) and shared and bool(strided) and "gather" not in _strides(reads, lane)


def _tile(
    stage: Stage, reads: tuple[Access, ...], lane: Var, most: tuple[int, ...]
) -> dict[Var, int]:
    """Other axes to take several values of at once, innermost first: some moving read is used
    again along them. ``most``: how many values, for each axis in turn."""
    moving = [read for read in reads if read.strides[lane] != "fixed"]
    out: dict[Var, int] = {}
    for axis, extent in reversed(own_axes(stage).items()):
        shared = any(read.strides[axis] == "fixed" for read in moving)
        if axis != lane and extent > 1 and shared and _bounds_free(stage, axis):
            out[axis] = _rows_of(extent, most[len(out)])
        if len(out) == len(most):
            break
    return out


def _blocked(stage: Stage, tile: dict[Var, int], lane: Var, width: int) -> list[Part]:
    """Spatial loops, reduction loops, and inside them the unrolled tile and the lanes."""
    inner = reduce_axes(stage)
    items: list[Part] = []
    for axis, extent in own_axes(stage).items():
        step = width if axis == lane else tile.get(axis, 0)
        if step == 0:
            items.append(Part(axis))
        elif step < extent:
            items.append(Part(axis, step))
    items += [Part(v, reduction=True) for v in inner if v != lane]
    items += [Part(axis, kind="unroll") for axis in reversed(tile)]
    return [*items, Part(lane, kind="vectorize", reduction=lane in inner)]


def scatter_nest(stage: Stage, scatter: Scatter) -> Nest:
    """The nest of a scatter: what the position depends on, then the axes it does not land on."""
    outer = [v for v in own_axes(stage) if v in free_vars(scatter.index)]
    free = [v for v in own_axes(stage) if v != scatter.axis and v not in outer]
    parts = [Part(v) for v in outer] + [Part(v, reduction=True) for v in reduce_axes(stage)]
    depth = len(parts)
    reads = accesses(stage)
    for axis in free:
        along = axis == free[-1] and axis == stage.lhs[-1] and own_axes(stage)[axis] >= MIN_LANES
        smooth = all(s in ("contiguous", "fixed") for s in _strides(reads, axis))
        parts.append(Part(axis, kind="vectorize" if along and smooth else "serial"))
    return Nest(name_pieces(parts), scatter.axis, depth)


def merge_pieces(stage: Stage, results: int, target: Target) -> tuple[Piece, ...]:
    """The nest over the results of a reduction that is split: ``results`` partial ones each."""
    own = own_axes(stage)
    lane = stage.lhs[-1] if stage.lhs and stage.lhs[-1] in own else None
    parts = [Part(axis) for axis in own if axis != lane]
    if lane is not None:
        parts.append(Part(lane, kind="vectorize"))
    if target.threads > 1 and prod(own.values()) * results >= PARALLEL_WORK:
        parts = _threaded(parts, own, target)
    return name_pieces(parts)


def _last_axis(stage: Stage) -> Var | None:
    """The own axis that neighbours in memory differ in, if there is one worth vectorising."""
    own = own_axes(stage)
    if not stage.lhs or stage.lhs[-1] not in own or own[stage.lhs[-1]] < MIN_LANES:
        return None
    return stage.lhs[-1]


def _strides(reads: tuple[Access, ...], axis: Var) -> list[Stride]:
    return [read.strides[axis] for read in reads]


def _runs_along(reads: tuple[Access, ...], axis: Var) -> bool:
    """Whether some read runs along the axis element by element, and all others stand still."""
    found = _strides(reads, axis)
    return "contiguous" in found and all(s in ("contiguous", "fixed") for s in found)


def _bounds_free(stage: Stage, axis: Var) -> bool:
    """Whether no reduction bound depends on the axis."""
    return not any(
        axis in free_vars(bound)
        for reduce_axis in reduce_axes(stage).values()
        for bound in (reduce_axis.lo, reduce_axis.hi)
    )


def _map(stage: Stage) -> list[Part]:
    items, reads = [Part(v) for v in own_axes(stage)], accesses(stage)
    lane = _last_axis(stage)
    if lane is None or not all(s in ("contiguous", "fixed") for s in _strides(reads, lane)):
        return items
    return [*(part for part in items if part.axis != lane), Part(lane, kind="vectorize")]


def _rows_of(extent: int, most: int) -> int:
    """How many rows to take at once: the largest divisor up to ``most``, or ``most`` itself."""
    best = max(n for n in range(1, most + 1) if extent % n == 0)
    return best if best > 1 else min(most, extent)


def _threaded(items: list[Part], extents: dict[Var, int], target: Target) -> list[Part]:
    """The outermost loops made parallel, as many as give every core two shares of work."""
    out: list[Part] = []
    left = dict(extents)
    shares = 1
    for k, part in enumerate(items):
        if part.reduction or part.kind != "serial" or shares >= 2 * target.threads:
            break
        last = all(other.axis != part.axis for other in items[k + 1 :])
        width = 1 if last else part.step
        shares *= -(-left[part.axis] // width)
        left[part.axis] = width
        out.append(Part(part.axis, part.step, "parallel"))
    first = items[0] if items else None
    if not out and first is not None and first.kind == "vectorize" and not first.reduction:
        return _split_lanes(first.axis, extents[first.axis], target)
    return out + items[len(out) :]


def _split_lanes(axis: Var, extent: int, target: Target) -> list[Part]:
    """A single vectorised axis, cut into a few long parts."""
    lanes = map_lanes(target)
    width = -(-extent // (4 * target.threads * lanes)) * lanes
    whole = Part(axis, kind="vectorize")
    return [whole] if width >= extent else [Part(axis, width, "parallel"), whole]
