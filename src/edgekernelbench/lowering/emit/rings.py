"""Contraction of histories: only the iterations that are still read keep storage.

A stage ``h[t, ..]`` of a loop over t that is read at t, t-1, .., t-d, and after the loop at none
but its last d+1 iterations, needs d+1 slabs: iteration t lies in slab ``t % (d + 1)``.
"""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Loop, Var
from edgekernelbench.lowering.expr.linear import const_value, linear
from edgekernelbench.lowering.graph import Graph, Place


def ring_sizes(graph: Graph, name: str) -> dict[int, int]:
    """For each dimension of a kept stage that can be contracted, the number of slabs."""
    place = graph.places[name]
    reads = [(graph.places[read.reader], read.load) for read in graph.reads[name]]
    out: dict[int, int] = {}
    for loop in place.loops:
        if loop.var not in place.stage.lhs:
            continue
        dim = place.stage.lhs.index(loop.var)
        slabs = 1
        for reader, load in reads:
            needed = _slabs(place, loop, dim, reader, load)
            if needed is None:
                break
            slabs = max(slabs, needed)
        else:
            if slabs < loop.hi:
                out[dim] = slabs
    return out


def _slabs(place: Place, loop: Loop, dim: int, reader: Place, load: core.Load) -> int | None:
    """Slabs of one loop's dimension that keep what a read wants; None: all of them."""
    index = load.indices[dim]
    if loop.var not in reader.body:
        return _slabs_after(loop, const_value(index))
    if not _outer_current(place, loop, reader, load):
        return None
    form = linear(index)
    here = core.VarRef(loop.var)
    if form.terms != {here: 1}:
        return None
    age = form.const if loop.reverse else -form.const
    if age < 0 or (loop.kind == "each" and age):
        return None
    return age + 1


def _slabs_after(loop: Loop, index: int | None) -> int | None:
    if index is None or loop.kind == "each":
        return None
    age = index - loop.lo if loop.reverse else loop.hi - 1 - index
    return age + 1 if age >= 0 else None


def _outer_current(place: Place, loop: Loop, reader: Place, load: core.Load) -> bool:
    """Whether the read stays in the running iteration of the loops around ``loop``."""
    for outer in place.loops[: place.loops.index(loop)]:
        if outer.var in place.stage.lhs:
            index = load.indices[place.stage.lhs.index(outer.var)]
            if not (isinstance(index, core.VarRef) and index.var == outer.var):
                return False
    return True


def contracted_loops(place: Place, rings: dict[int, int]) -> set[Var]:
    """Loops of which only the running iteration is stored."""
    return {place.stage.lhs[dim] for dim, slabs in rings.items() if slabs == 1}
