"""The default GPU rules: the nest of a stage without a line in the schedule.

1. All spatial loops are ``parallel``: fused, one thread an element, neighbours along the last axis.
2. A reduction is a serial loop of its thread, unless it has few results or reads along its last
   axis only: then a block takes each result, its threads share the terms, and their partial
   results are merged as a tree in shared memory.
3. A reduction of very many terms to very few results is cut into chunks, a block each.
4. A scatter runs as the search that it stands for while that is small. Else every element of an
   integer sum, minimum or maximum lands by itself, in any order; of others one thread for every
   element that does not take part in where things land adds up what lands on it.

Large products have tiles instead: see `products`.
"""

from __future__ import annotations

from math import prod
from typing import get_args

from edgekernelbench.ir.core import Reduce, Stage
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.access import accesses
from edgekernelbench.lowering.gpu.device import Level
from edgekernelbench.lowering.nest import AtomicOp
from edgekernelbench.lowering.plan import (
    Nest,
    Part,
    Piece,
    Scatter,
    name_pieces,
    own_axes,
    reduce_axes,
)
from edgekernelbench.targets.model import Gpu

FEW_RESULTS = 2048
MIN_SHARED_TERMS = 64
FULL_RESULTS = 16
MIN_SPLIT_TERMS = 1 << 16
MAX_CHUNKS = 256
SMALL_SEARCH = 1 << 26
SMALL_ATOMIC_SEARCH = 1 << 21
"""The same where elements could land from all threads at once."""


def device_pieces(stage: Stage, level: Level, gpu: Gpu) -> tuple[Piece, ...]:
    """The nest of a stage that has no ``loops`` line."""
    own, inner = own_axes(stage), reduce_axes(stage)
    if level == "thread":
        parts = [Part(v) for v in own] + [Part(v, reduction=True) for v in inner]
    elif inner and shares_terms(stage, level, gpu):
        parts = [Part(v, kind="block" if level == "host" else "serial") for v in own]
        parts += _chunks(stage) if level == "host" else []
        parts += [Part(v, kind="thread", reduction=True) for v in inner]
    else:
        parts = [Part(v, kind="parallel") for v in own]
        parts += [Part(v, reduction=True) for v in inner]
    return name_pieces(parts)


def shares_terms(stage: Stage, level: Level, gpu: Gpu) -> bool:
    """Whether the threads of a block share the terms of each result."""
    inner, own = reduce_axes(stage), own_axes(stage)
    count, terms = prod(own.values()), prod(axis.extent for axis in inner.values())
    if not all(axis.is_constant for axis in inner.values()) or terms < MIN_SHARED_TERMS:
        return False
    if level == "block":
        return count * gpu.warp <= terms or count <= 4
    return count <= FEW_RESULTS or _along_terms(stage)


def _along_terms(stage: Stage) -> bool:
    """Whether neighbours in memory are neighbouring terms, in all reads that move."""
    last, own = list(reduce_axes(stage))[-1], list(own_axes(stage))
    reads = [read.strides for read in accesses(stage)]
    along = any(strides[last] == "contiguous" for strides in reads)
    return along and not (own and any(strides[own[-1]] == "contiguous" for strides in reads))


def _chunks(stage: Stage) -> list[Part]:
    """The loop that cuts the longest reduction axis, a block for each chunk."""
    inner = {var: axis.extent for var, axis in reduce_axes(stage).items()}
    terms, results = prod(inner.values()), prod(own_axes(stage).values())
    if results > FULL_RESULTS or terms < MIN_SPLIT_TERMS:
        return []
    longest = max(inner, key=lambda var: inner[var])
    chunks = min(MAX_CHUNKS, inner[longest], terms // MIN_SPLIT_TERMS * 8)
    step = -(-inner[longest] // chunks)
    return [Part(longest, step, "block", reduction=True)] if step < inner[longest] else []


def device_merge_pieces(stage: Stage) -> tuple[Piece, ...]:
    """The nest over the results of a reduction that is split."""
    return name_pieces([Part(axis, kind="parallel") for axis in own_axes(stage)])


def is_small_search(stage: Stage) -> bool:
    """Whether looking at every term for every result is no more work than a GPU does at once."""
    terms = prod(axis.extent for axis in reduce_axes(stage).values())
    most = SMALL_ATOMIC_SEARCH if lands_atomically(stage) else SMALL_SEARCH
    return terms * prod(own_axes(stage).values()) <= most


def device_scatter_nest(stage: Stage, scatter: Scatter, level: Level) -> Nest:
    """The nest of a scatter: a thread for each element that lands; where their order matters, for
    each element of the axes that nothing lands on."""
    own = [axis for axis in own_axes(stage) if axis != scatter.axis]
    atomic = level == "host" and lands_atomically(stage)
    parts = [Part(v, kind="serial" if level == "thread" else "parallel") for v in own]
    kind = "parallel" if atomic else "serial"
    parts += [Part(v, kind=kind, reduction=True) for v in reduce_axes(stage)]
    return Nest(name_pieces(parts), scatter.axis, len(parts), atomic=atomic)


def lands_atomically(stage: Stage) -> bool:
    """Whether threads may add to an element at any time: the result is the same in every order."""
    reduce = stage.expr
    if not isinstance(reduce, Reduce) or reduce.op not in get_args(AtomicOp):
        return False
    return reduce.dtype in (DType.S32, DType.U32) and all(a.is_constant for a in reduce.axes)
