"""The sizes of a product's tiles, from its extents and what the device has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Var
from edgekernelbench.lowering.expr.linear import linear
from edgekernelbench.lowering.gpu.defaults import MIN_SHARED_TERMS
from edgekernelbench.lowering.plan import Part, own_axes, reduce_axes
from edgekernelbench.targets.model import Gpu

if TYPE_CHECKING:
    from edgekernelbench.lowering.gpu.products import Product

SHAPES = ((128, 64, 8, 4), (64, 64, 4, 4), (32, 64, 4, 4), (32, 32, 4, 2), (16, 32, 2, 2))
"""Rows and columns of a block's tile, then those of a thread's, the largest first."""

TERMS = 32
"""Terms of a result that a block takes in a turn, at most."""

COPIED_BYTES = 16 << 10
MERGED_BYTES = 16 << 10
BUSY_THREADS = 512
"""Threads that keep a multiprocessor busy while others wait for memory."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """The nest of a product.

    Attributes:
        blocks: how many of its loops are ``block`` loops.
        turn: the loop in which the factors are copied.
    """

    parts: tuple[Part, ...]
    blocks: int
    turn: int


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Values of each axis that a block takes at once, and those of results that a thread does.

    Attributes:
        depth: terms that a block takes in a turn.
        sharing: threads for the terms of one result.
    """

    block: Mapping[Var, int]
    thread: Mapping[Var, int]
    depth: Mapping[Var, int]
    sharing: int = 1

    @property
    def threads(self) -> int:
        return prod(-(-n // self.thread[v]) for v, n in self.block.items())

    @property
    def kept(self) -> int:
        """Results of a thread."""
        return prod(self.thread.values())


def choose_tiling(product: Product, gpu: Gpu) -> Tiling | None:
    """The largest tiles of which there are enough for all multiprocessors; None where there is no
    tile that a block of the device has room for."""
    found: _Sizes | None = None
    for sizes in _candidates(product, gpu):
        found = sizes
        if _count(product, sizes) >= gpu.units:
            break
    if found is None or _count(product, found) < 2:
        return None
    return _nest(product, found)


def _candidates(product: Product, gpu: Gpu) -> Iterator[_Sizes]:
    own = own_axes(product.stage)
    for rows, columns, high, wide in SHAPES:
        block = {**_side(product.rows, own, rows), **_side(product.columns, own, columns)}
        thread = dict.fromkeys(block, 1)
        for side, most in ((product.rows, high), (product.columns, wide)):
            thread[side[-1]] = next(
                n for n in (most, 4, 2, 1) if n <= most and not block[side[-1]] % n
            )
        sizes = _Sizes(block, thread, {})
        if not gpu.warp <= sizes.threads <= gpu.sure_threads:
            continue
        sharing = _sharing(product, sizes, gpu)
        depth = _depth(product, sizes, sharing, min(COPIED_BYTES, gpu.shared_bytes // 2))
        if depth is not None:
            yield replace(sizes, depth=depth, sharing=sharing)


def _side(axes: tuple[Var, ...], extents: Mapping[Var, int], wanted: int) -> dict[Var, int]:
    """A tile over some axes, as long as it may be along the last ones."""
    out: dict[Var, int] = {}
    for axis in reversed(axes):
        out[axis] = _fitting(extents[axis], wanted)
        wanted = max(1, wanted // out[axis])
    return out


def _fitting(extent: int, wanted: int) -> int:
    """A step of about ``wanted`` that divides a range, if there is one."""
    if extent <= wanted:
        return extent
    divisors = (n for n in range(wanted, wanted // 2, -1) if extent % n == 0)
    return next(divisors, wanted)


def _depth(product: Product, sizes: _Sizes, sharing: int, room: int) -> dict[Var, int] | None:
    """Terms along each axis of a turn: few enough for the copies of both factors to fit."""
    extents = {var: axis.extent for var, axis in reduce_axes(product.stage).items()}
    depth, most = dict(extents), TERMS * sharing
    while prod(depth.values()) > most or _bytes(product, {**sizes.block, **depth}) > room:
        longest = _longest(depth)
        if depth[longest] == 1:
            return None
        depth[longest] = _less(extents[longest], depth[longest])
    return depth if depth[_longest(depth)] % sharing == 0 else None


def _less(extent: int, now: int) -> int:
    """A smaller step than ``now``: one that divides a range and moves whole vectors, if it can."""
    for number in range(now - 1, now // 2, -1):
        if extent % number == 0 and (number % 4 == 0 or extent % 4 or number < 4):
            return number
    return now // 2 & -4 or now // 2


def _longest(depth: Mapping[Var, int]) -> Var:
    return max(depth, key=lambda var: depth[var])


def _bytes(product: Product, box: Mapping[Var, int]) -> int:
    """Shared memory for the parts of both factors that a box of points reads."""
    total = 0
    for name in (product.left, product.right):
        reads = product.reads(name)
        spans = [_span(reads, dim, box) for dim in range(len(reads[0].indices))]
        total += prod(spans) * reads[0].tensor.dtype.bytes
    return total


def _span(reads: Iterable[core.Load], dim: int, box: Mapping[Var, int]) -> int:
    low = high = None
    for load in reads:
        form = linear(load.indices[dim])
        moves = [
            factor * (box.get(atom.var, 1) - 1)
            for atom, factor in form.terms.items()
            if isinstance(atom, core.VarRef)
        ]
        least = form.const + sum(min(0, move) for move in moves)
        most = form.const + sum(max(0, move) for move in moves)
        low, high = min(least, least if low is None else low), max(most, high or most)
    return 1 if low is None or high is None else high - low + 1


def _count(product: Product, sizes: _Sizes) -> int:
    """Blocks."""
    own = own_axes(product.stage)
    return prod(-(-n // sizes.block.get(v, 1)) for v, n in own.items())


def _sharing(product: Product, sizes: _Sizes, gpu: Gpu) -> int:
    """Threads for the terms of one result: several where there are few blocks."""
    terms = max(axis.extent for axis in reduce_axes(product.stage).values())
    per_unit = -(-_count(product, sizes) // gpu.units) * sizes.threads
    value = product.stage.tensor.dtype.bytes
    for number in (4, 2):
        threads = number * sizes.threads
        if terms < MIN_SHARED_TERMS or terms % (4 * number) or threads > gpu.sure_threads:
            continue
        # what they merge, and the results themselves, where another stage takes them from there
        merged = (threads + sizes.threads) * sizes.kept * value
        if merged <= min(MERGED_BYTES, gpu.shared_bytes // 2) and per_unit * number <= BUSY_THREADS:
            return number
    return 1


def _nest(product: Product, sizes: _Sizes) -> Tiling:
    own, inner = own_axes(product.stage), reduce_axes(product.stage)
    longest, sharing = _longest(sizes.depth), sizes.sharing
    blocks: list[Part] = []
    threads: list[Part] = []
    kept: list[Part] = []
    for axis, extent in own.items():
        step, each = sizes.block.get(axis, 1), sizes.thread.get(axis, 1)
        if axis not in sizes.block or step < extent:
            blocks.append(Part(axis, step, "block"))
        if axis in sizes.block:
            threads.append(Part(axis, each, "thread"))
            kept += [Part(axis, kind="unroll")] if each > 1 else []
    # one turn at least: results are in registers right outside a loop of the block
    cut = [v for v, n in sizes.depth.items() if n < inner[v].extent] or [longest]
    turns = [Part(v, sizes.depth[v], reduction=True) for v in cut]
    shared = sizes.depth[longest] // sharing
    team = [Part(longest, shared, "thread", reduction=True)] if sharing > 1 else []
    terms = [Part(axis, reduction=True) for axis in inner]
    if sharing > 1 and shared == 1:
        terms = [part for part in terms if part.axis != longest]
    parts = (*blocks, *turns, *team, *threads, *terms, *kept)
    return Tiling(parts, len(blocks), len(blocks) + len(turns) - 1)
