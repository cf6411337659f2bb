"""Buffers on a GPU: iterations that run side by side keep their stages apart."""

from __future__ import annotations

from dataclasses import replace

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Loop
from edgekernelbench.lowering.emit.buffers import BufferPlan, share_slots, slab_index
from edgekernelbench.lowering.emit.rings import ring_sizes
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.graph import Place
from edgekernelbench.lowering.plan import Plan

MAX_PRIVATE_BYTES = 512


def plan_device_buffers(
    plan: Plan, tree: Tree, given: frozenset[str], room: int
) -> dict[str, BufferPlan]:
    """Buffers of the stages without a tile of their own; ``given`` are parameters.

    A stage of iterations that run in blocks or threads of their own has a dimension for each such
    loop, unless it is small and private to a thread, or lies in memory that a block shares. Kernels
    cannot allocate global memory.

    Args:
        room: bytes of a block that such stages may take.
    """
    names = [n for n in plan.stages if tree.homes[n] is None and n not in given]
    private: dict[str, BufferPlan] = {}
    common: dict[str, BufferPlan] = {}
    apart: dict[str, BufferPlan] = {}
    for name in names:
        loops = _beside(plan, plan.graph.places[name])
        mine, ours = _private(plan, name, loops), _shared(plan, name)
        if mine is not None:
            private[name] = mine
        elif ours is not None and ours.elements * ours.dtype.bytes <= room:
            room -= ours.elements * ours.dtype.bytes
            private[name] = ours
        elif loops:
            apart[name] = _extended(_whole(plan, name, loops), plan, name, loops)
        else:
            common[name] = _whole(plan, name, ())
    return {**private, **apart, **share_slots(common, plan, tree)}


def _beside(plan: Plan, place: Place) -> tuple[Loop, ...]:
    """The loops around a stage whose iterations run at the same time."""
    return tuple(loop for loop in place.loops if plan.modes[loop.var] in ("blocks", "threads"))


def _whole(plan: Plan, name: str, beside: tuple[Loop, ...]) -> BufferPlan:
    """Storage with histories contracted, except along loops whose iterations run side by side."""
    stage, layout = plan.stages[name].stage, plan.layouts.get(name)
    if layout is not None:
        formals, index, shape = layout.formals, layout.index, layout.shape
    else:
        fixed = {stage.lhs.index(loop.var) for loop in beside if loop.var in stage.lhs}
        rings = {d: n for d, n in ring_sizes(plan.graph, name).items() if d not in fixed}
        formals = stage.lhs
        index = tuple(slab_index(core.VarRef(v), rings.get(d)) for d, v in enumerate(formals))
        shape = tuple(rings.get(d, n) for d, n in enumerate(stage.tensor.shape))
    return BufferPlan(name, stage.tensor.dtype, shape, formals, index, None, "global")


def _extended(buffer: BufferPlan, plan: Plan, name: str, loops: tuple[Loop, ...]) -> BufferPlan:
    """A place for each iteration of loops that the stage itself is not indexed by."""
    new = [loop for loop in loops if loop.var not in plan.graph.stage(name).lhs]
    index = (*(core.VarRef(loop.var) for loop in new), *buffer.index)
    return replace(buffer, shape=(*(loop.hi for loop in new), *buffer.shape), index=index)


def _shared(plan: Plan, name: str) -> BufferPlan | None:
    """Memory of a block, where one block writes and reads all of a stage, and an author says what
    its threads do."""
    loops = plan.graph.places[name].loops
    owner = next((x for x in reversed(loops) if plan.modes[x.var] in ("block", "blocks")), None)
    if owner is None or name in plan.layouts or not _stated(plan, owner):
        return None
    users = (name, *plan.graph.readers(name))
    alone = all(owner in plan.graph.places[user].loops for user in users)
    if not alone or any(plan.modes[x.var] == "threads" for x in loops):
        return None
    lhs, rings = plan.graph.stage(name).lhs, ring_sizes(plan.graph, name)
    beside = [x for x in loops if plan.modes[x.var] == "blocks" and x.var in lhs]
    if any(rings.get(lhs.index(x.var)) != 1 for x in beside):
        return None
    return replace(_whole(plan, name, ()), owner=owner.var, scope="shared")


def _stated(plan: Plan, loop: Loop) -> bool:
    stages = (plan.stages[stage.name] for _, stage in core.stages(loop.body))
    return any(p.kind == "thread" for s in stages if not s.cooperative for p in s.pieces)


def _private(plan: Plan, name: str, loops: tuple[Loop, ...]) -> BufferPlan | None:
    """A small array of each thread, where one thread writes and reads all that it needs."""
    owner = next((x.var for x in reversed(loops) if plan.modes[x.var] == "threads"), None)
    users = (name, *plan.graph.readers(name))
    around = [[loop.var for loop in plan.graph.places[user].loops] for user in users]
    if owner is None or name in plan.layouts or not all(owner in own for own in around):
        return None
    lhs, rings = plan.graph.stage(name).lhs, ring_sizes(plan.graph, name)
    if any(rings.get(lhs.index(x.var)) != 1 for x in loops if x.var in lhs):
        return None
    buffer = replace(_whole(plan, name, ()), owner=owner, scope="local")
    return buffer if buffer.elements * buffer.dtype.bytes <= MAX_PRIVATE_BYTES else None
