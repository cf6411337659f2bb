"""Bytes of the kind that an instruction takes, by an exact change of the sum.

VNNI multiplies u8 by s8. For two s8, ``sum(a * b)`` is ``sum((a + 128) * b) - 128 * sum(b)``, and
``a + 128`` is a u8 with the same bits but one. The second sum knows nothing of ``a``: it is a stage
of its own, computed before the call where ``b`` is constant, and the accumulators start from it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import prod

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.core import Expr, Program, Reduce, Stage, Tensor, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.dots.instructions import wants_bias
from edgekernelbench.lowering.dots.product import Factor, bias_of, biased, factors, sides
from edgekernelbench.lowering.emit.lanes import native_lanes
from edgekernelbench.lowering.expr.rewrite import Names, free_vars, substitute
from edgekernelbench.lowering.graph import Graph, Place, build_graph, map_stages
from edgekernelbench.lowering.plan import Layout, own_axes
from edgekernelbench.targets.model import Target

MAX_TERMS = 1 << 15
"""Terms of a sum up to which neither it nor what it starts from leaves an s32, whatever the data:
128 * 128 and 255 * 128 a term make 1.5 * 2**30."""


@dataclass(frozen=True, slots=True)
class _Change:
    """The two sides of one sum, the second of which becomes the other kind of byte. ``lane``: the
    axis of the lanes."""

    place: Place
    reduce: Reduce
    lane: Var
    moving: Factor
    still: Factor


def fit_products(
    program: Program,
    nests: Mapping[str, surface.LoopsLine],
    placed: Collection[str],
    target: Target,
    names: Names,
) -> tuple[Program, dict[str, Layout]]:
    """The program with the bytes that the target's instructions take, and how the stages that this
    needs are stored: in rows that whole vectors of lanes may read.

    Args:
        nests: `loops` lines by stage.
        placed: stages that are computed inside others' loops: what they yield is not there for
            the sum that the accumulators start from.
    """
    graph = build_graph(program)
    layouts: dict[str, Layout] = {}
    for name, line in nests.items():
        change = _change(graph, name, line, placed, target)
        if change is not None:
            offset, start = _offset(graph, change, names)
            program = _changed(program, graph, change, offset, start)
            program = replace(program, next_uid=names.next_uid)
            graph = build_graph(program)
            layouts[offset.name] = _rows(offset, native_lanes(target), names)
    return program, layouts


def operand_names(graph: Graph, nests: Mapping[str, surface.LoopsLine]) -> set[str]:
    """Stages that a dot product reads: inlined they would be no bytes in memory."""
    out: set[str] = set()
    for name, line in nests.items():
        if name in graph.places and line.pieces[-1].annotation == "dot4":
            expr = graph.stage(name).expr
            found = factors(expr) if isinstance(expr, Reduce) else None
            out |= {f.load.tensor.name for f in found or ()} & graph.places.keys()
    return out


def _change(
    graph: Graph, name: str, line: surface.LoopsLine, placed: Collection[str], target: Target
) -> _Change | None:
    place = graph.places.get(name)
    if place is None or len(line.pieces) < 2 or line.pieces[-1].annotation != "dot4":
        return None
    reduce, lanes = place.stage.expr, line.pieces[-2].axis
    lane = next((var for var in own_axes(place.stage) if var.name == lanes), None)
    found = factors(reduce) if isinstance(reduce, Reduce) else None
    if lane is None or found is None or not isinstance(reduce, Reduce):
        return None
    moving, still = sides(found, lane)
    if still is None or not moving.moves_along(lane):
        return None
    if not wants_bias(target, moving.dtype, still.dtype):
        return None
    constant = all(axis.is_constant for axis in reduce.axes)
    if not constant or prod(axis.extent for axis in reduce.axes) > MAX_TERMS:
        return None
    if moving.load.tensor.name in placed:
        return None
    return _Change(place, reduce, lane, moving, still)


def _changed(
    program: Program, graph: Graph, change: _Change, offset: Stage, start: Expr
) -> Program:
    """The program with the offset in front of the sum that starts from it."""
    stage, reduce = change.place.stage, change.reduce
    left, right = biased(change.still.load), change.moving.load
    body = core.Binary("mul", left, right, DType.S32, reduce.body.span)
    summed = replace(stage, expr=replace(reduce, body=body, start=start))
    if _stands_alone(graph, change):
        nodes = map_stages(program.body, {stage.name: (summed,)})
        before = next(k for k, node in enumerate(nodes) if _holds(node, stage.name))
        nodes = (*nodes[:before], offset, *nodes[before:])
    else:
        nodes = map_stages(program.body, {stage.name: (offset, summed)})
    return replace(program, body=nodes)


def _stands_alone(graph: Graph, change: _Change) -> bool:
    """Whether the offset is the same in all iterations of the loops around the stage."""
    load = change.moving.load
    loops = {loop.var for loop in change.place.loops}
    source = graph.places.get(load.tensor.name)
    inside = any(loops & free_vars(index) for index in load.indices)
    return not inside and (source is None or not source.loops)


def _holds(node: core.Node, name: str) -> bool:
    return any(stage.name == name for _, stage in core.stages((node,)))


def _offset(graph: Graph, change: _Change, names: Names) -> tuple[Stage, Expr]:
    """The stage with what the accumulators start from, and the read of it."""
    load, stage = change.moving.load, change.place.stage
    used = {var for index in load.indices for var in free_vars(index)}
    own = [axis for axis in stage.axes if axis.var in used]
    own.sort(key=lambda axis: axis.var == change.lane)  # the lanes last: neighbours in memory
    summed = [axis for axis in change.reduce.axes if axis.var in used]
    fresh = {a.var: names.var(a.var.name) for a in (*own, *summed)}
    times = prod(a.extent for a in change.reduce.axes if a.var not in used)
    weight = core.Const(-bias_of(change.still.load.tensor.dtype) * times, DType.S32)
    moved: dict[Var, Expr] = {var: core.VarRef(new) for var, new in fresh.items()}
    byte = core.Load(load.tensor, tuple(substitute(i, moved) for i in load.indices))
    axes = tuple(core.ReduceAxis(fresh[a.var], a.lo, a.hi, a.extent) for a in summed)
    body: Expr = core.Binary("mul", byte, weight, DType.S32)
    if axes:
        body = Reduce("sum", axes, None, body, DType.S32)
    tensor = Tensor(_name(graph, stage.name), DType.S32, tuple(a.extent for a in own), "stage")
    spatial = tuple(core.Axis(fresh[a.var], a.extent) for a in own)
    lhs = tuple(axis.var for axis in spatial)
    read = core.Load(tensor, tuple(core.VarRef(a.var) for a in own))
    return Stage(tensor.name, tensor, lhs, spatial, body, stage.span), read


def _rows(offset: Stage, lanes: int, names: Names) -> Layout:
    """Stored as it is, the last axis rounded up to whole vectors."""
    formals = tuple(names.var(var.name) for var in offset.lhs)
    *outer, last = offset.tensor.shape
    shape = (*outer, -(-last // lanes) * lanes)
    return Layout(formals, tuple(core.VarRef(var) for var in formals), shape)


def _name(graph: Graph, stage: str) -> str:
    number = 0
    while (name := f"{stage}.offset{number or ''}") in graph.places:
        number += 1
    return name
