"""Buffers of stages that are kept whole: shape, owner, and which of them share memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.rings import contracted_loops, ring_sizes
from edgekernelbench.lowering.emit.skew import lives_in_lanes, skewed
from edgekernelbench.lowering.emit.slots import Demand, Timeline, flat_index, share
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.nest import Scope
from edgekernelbench.lowering.plan import Plan

MAX_LOCAL_BYTES = 1024
MIN_SHARED_BYTES = 4096


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """Storage of one stage.

    Attributes:
        formals, index: where an element is stored, over the stage's dimensions.
        owner: the parallel loop (of a wave the outer one, for its tiles) whose iterations have a
            copy each, None for the function.
        slot: buffers with one slot number share an allocation (``shape`` is its size then).
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    formals: tuple[Var, ...]
    index: tuple[Expr, ...]
    owner: Var | None
    scope: Scope
    slot: int | None = None

    @property
    def elements(self) -> int:
        size = 1
        for extent in self.shape:
            size *= extent
        return size


def plan_buffers(plan: Plan, tree: Tree, given: frozenset[str]) -> dict[str, BufferPlan]:
    """Buffers of the stages without a tile of their own; ``given`` are parameters."""
    names = [n for n in plan.stages if tree.homes[n] is None and n not in given]
    names = [n for n in names if not lives_in_lanes(plan, n)]
    return share_slots({name: _buffer(plan, tree, name) for name in names}, plan, tree)


def _buffer(plan: Plan, tree: Tree, name: str) -> BufferPlan:
    stage, layout = plan.stages[name].stage, plan.layouts.get(name)
    place = plan.graph.places[name]
    rings: dict[int, int] = {}
    wave = plan.wave_around(name)
    if layout is not None:
        formals, index, shape = layout.formals, layout.index, layout.shape
    else:
        rings = ring_sizes(plan.graph, name)
        formals = stage.lhs
        if wave is not None:
            rings = {d: n for d, n in rings.items() if formals[d] not in (wave.outer, wave.inner)}
        index = tuple(slab_index(core.VarRef(v), rings.get(d)) for d, v in enumerate(formals))
        shape = tuple(rings.get(d, n) for d, n in enumerate(stage.tensor.shape))
        skew = None if wave is None else skewed(plan, name, wave)
        if skew is not None:
            index, shape = skew.applied(formals, index, shape)
    kept = set(stage.lhs) - contracted_loops(place, rings)
    if wave is not None and wave.inner in kept:
        kept.add(wave.outer)  # one buffer for all iterations, which do not run in order
    private = plan.parallel_loops | {w.outer for w in plan.waves.values() if w.parallel}
    owner = next((x.var for x in reversed(place.loops) if x.var in private - kept), None)
    buffer = BufferPlan(name, stage.tensor.dtype, shape, formals, index, owner, "global")
    small = buffer.elements * buffer.dtype.bytes <= MAX_LOCAL_BYTES
    if small and place.loops and _one_thread(plan, tree, name, owner):
        return replace(buffer, scope="local")
    return buffer


def slab_index(index: Expr, slabs: int | None) -> Expr:
    if slabs is None:
        return index
    if slabs == 1:
        return core.Const(0, DType.S32)
    return core.Binary("mod", index, core.Const(slabs, DType.S32), DType.S32)


def _one_thread(plan: Plan, tree: Tree, name: str, owner: Var | None) -> bool:
    """Whether all accesses come from the thread that allocates the buffer."""
    users = [name, *plan.graph.readers(name)]
    for user in users:
        loops = {loop.var for loop in plan.graph.places[user].loops}
        waves = {wave.outer for wave in plan.waves.values() if wave.parallel}
        if (loops & (plan.parallel_loops | waves)) - {owner}:
            return False
        if any(piece.kind == "parallel" for piece in plan.stages[tree.root(user)].pieces):
            return False
    return True


def share_slots(buffers: dict[str, BufferPlan], plan: Plan, tree: Tree) -> dict[str, BufferPlan]:
    """The buffers, the larger ones in shared slots where their lives allow it."""
    line = Timeline.of(plan.graph.program.body, tree)
    demands = {
        name: Demand(name, b.dtype, b.elements, b.owner)
        for name, b in buffers.items()
        if b.scope == "global" and b.elements * b.dtype.bytes >= MIN_SHARED_BYTES
    }
    slots = share(demands, {name: line.life(tree, name) for name in demands})
    capacity: dict[int, int] = {}
    for name, slot in slots.items():
        capacity[slot] = max(capacity.get(slot, 0), buffers[name].elements)
    out: dict[str, BufferPlan] = {}
    for name, buffer in buffers.items():
        slot = slots.get(name)
        if slot is not None:
            index = (flat_index(buffer.index, buffer.shape),)
            size = (capacity[slot],)
            buffer = replace(buffer, name=f"work{slot}", shape=size, index=index, slot=slot)
        out[name] = buffer
    return out
