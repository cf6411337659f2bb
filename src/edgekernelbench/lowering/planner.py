"""From a program and resolved directives to a `Plan`: nests, safe expressions, parallel loops."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Reduce, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.access import work
from edgekernelbench.lowering.defaults import (
    PARALLEL_WORK,
    Situation,
    default_pieces,
    merge_pieces,
    scatter_nest,
)
from edgekernelbench.lowering.expr.linear import Ranges, int_const
from edgekernelbench.lowering.expr.rewrite import free_vars
from edgekernelbench.lowering.gpu.defaults import device_merge_pieces
from edgekernelbench.lowering.gpu.device import Level
from edgekernelbench.lowering.gpu.nests import DeviceNests
from edgekernelbench.lowering.graph import Graph, Place, axis_ranges
from edgekernelbench.lowering.passes.scatter import conjuncts, find_scatter, scatters
from edgekernelbench.lowering.passes.total import total
from edgekernelbench.lowering.plan import (
    Nest,
    Piece,
    Scatter,
    StagePlan,
    Wave,
    chunk_count,
    extents_of,
)
from edgekernelbench.lowering.together import given_to_all
from edgekernelbench.targets.model import Target


def plan_stages(
    graph: Graph,
    given: Mapping[str, Nest],
    placed: Mapping[str, tuple[str, str]],
    targets: Collection[str],
    target: Target,
    levels: Mapping[str, Level] | None = None,
) -> dict[str, StagePlan]:
    """The nests of all stages: those given, and the default rules for the others.

    Args:
        placed: stages computed inside others' loops, with those and the loops' names.
        targets: stages that others are placed in.
        levels: where each stage runs on a GPU, if it is not placed.
    """
    given = given_to_all(graph, given)
    if levels is not None:
        nests = DeviceNests(graph, given, placed, targets, target, levels)
        chosen = {name: nests.of(name) for name in graph.places}
        plans = {name: stage_plan(graph.places[name], nest) for name, nest in chosen.items()}
        return {name: _with_merge(plan, target) for name, plan in plans.items()}
    whole = set(graph.places) - set(placed) - set(targets)
    stages: dict[str, StagePlan] = {}
    for name, place in graph.places.items():
        nest = given.get(name)
        if nest is None:
            scatter = find_scatter(place.stage) if name in whole else None
            if scatter is not None:
                nest = scatter_nest(place.stage, scatter)
            else:
                situation = Situation(name in placed, bool(place.loops))
                nest = Nest(default_pieces(place.stage, target, situation))
        stages[name] = _with_merge(stage_plan(place, nest), target)
    return stages


def _with_merge(plan: StagePlan, target: Target) -> StagePlan:
    if plan.split is None:
        return plan
    chunks = chunk_count(plan.split, extents_of(plan.stage)[plan.split.axis])
    if target.gpu is not None:
        return replace(plan, merge=device_merge_pieces(plan.stage))
    return replace(plan, merge=merge_pieces(plan.stage, chunks, target))


def parallel_loops(
    graph: Graph, stages: Mapping[str, StagePlan], target: Target, waves: Mapping[Var, Wave]
) -> frozenset[Var]:
    """Outermost ``each`` loops with enough work, whose iterations then run on all cores.

    Not where a stage or wave inside has parallel loops of its own.
    """
    waving = {var for var, wave in waves.items() if wave.parallel}
    threaded = {
        place.loops[0].var
        for name, place in graph.places.items()
        if place.loops
        and (waving & set(place.body) or any(p.kind == "parallel" for p in stages[name].pieces))
    }
    totals: dict[Var, int] = {}
    loops: dict[Var, core.Loop] = {}
    for place in graph.places.values():
        if place.loops and place.loops[0].kind == "each" and place.loops[0].var not in threaded:
            outer = place.loops[0]
            count = 1
            for loop in place.loops:
                count *= max(0, loop.hi - loop.lo)
            loops[outer.var] = outer
            totals[outer.var] = totals.get(outer.var, 0) + count * work(place.stage)
    return frozenset(
        var
        for var, total_work in totals.items()
        if target.threads > 1 and total_work >= PARALLEL_WORK and loops[var].hi - loops[var].lo > 1
    )


def stage_plan(place: Place, nest: Nest) -> StagePlan:
    """Expressions of a stage that are safe under any order of evaluation."""
    stage, pieces, ranges = place.stage, nest.pieces, axis_ranges(place)
    if not isinstance(stage.expr, Reduce):
        return StagePlan(stage, pieces, value=total(stage.expr, ranges))
    dot = next((piece.axis for piece in pieces if piece.dot), None)
    pieces = tuple(piece for piece in pieces if not piece.dot)
    reduce = rectified(stage.expr, pieces)
    scatter: Scatter | None = None
    if nest.lands is not None:
        found = replace(scatters(stage)[nest.lands], depth=nest.depth, atomic=nest.atomic)
        scatter = _landing(reduce, found, ranges)
    eager = reduce.where is not None
    where = None if reduce.where is None else total(reduce.where, ranges)
    axes = tuple(_bounded(a, ranges) for a in reduce.axes)
    items = tuple(total(item, ranges) for item in reduce.items)
    plain = replace(reduce, axes=axes, where=where, body=items[0], more=items[1:])
    if reduce.combiner is not None:
        plain = replace(plain, combiner=_safe(reduce.combiner))
    if eager:
        items = tuple(total(item, ranges, True) for item in reduce.items)
    return StagePlan(
        stage,
        pieces,
        reduce=plain,
        eager_body=items[0],
        eager_more=items[1:],
        eager_where=where,
        scatter=scatter,
        dot=dot,
        cooperative=nest.cooperative,
    )


def _safe(combiner: core.Combiner) -> core.Combiner:
    lets = tuple((var, total(value, {})) for var, value in combiner.lets)
    return replace(combiner, lets=lets, results=tuple(total(e, {}) for e in combiner.results))


def _landing(reduce: Reduce, scatter: Scatter, ranges: Ranges) -> Scatter:
    """The scatter with safe expressions, under what `rectified` added to the condition."""
    assert reduce.where is not None
    rest = [e for e in conjuncts(reduce.where) if e != scatter.test]
    where: Expr | None = None
    for test in rest:
        where = test if where is None else core.Binary("and", where, test, DType.BOOL)
    safe = None if where is None else total(where, ranges, True)
    return replace(scatter, index=total(scatter.index, ranges, True, True), where=safe)


def _bounded(axis: core.ReduceAxis, ranges: Ranges) -> core.ReduceAxis:
    low, high = (total(bound, ranges, index=True) for bound in (axis.lo, axis.hi))
    return core.ReduceAxis(axis.var, low, high, axis.extent, axis.span)


def rectified(reduce: Reduce, pieces: tuple[Piece, ...]) -> Reduce:
    """The reduction with every bound known where the loops of its axis start.

    An axis whose bounds need an axis further inside (or that is split) runs over its full
    extent, under a condition.
    """
    axes: list[core.ReduceAxis] = []
    tests: list[Expr] = []
    for axis in reduce.axes:
        if axis.is_constant or _known(axis, pieces):
            axes.append(axis)
            continue
        here = core.VarRef(axis.var)
        tests.append(core.Binary("le", axis.lo, here, DType.BOOL))
        tests.append(core.Binary("lt", here, axis.hi, DType.BOOL))
        zero, end = int_const(0), int_const(axis.extent)
        axes.append(core.ReduceAxis(axis.var, zero, end, axis.extent, axis.span))
    where = reduce.where
    for test in reversed(tests):
        where = test if where is None else core.Binary("and", test, where, DType.BOOL)
    return replace(reduce, axes=tuple(axes), where=where)


def _known(axis: core.ReduceAxis, pieces: tuple[Piece, ...]) -> bool:
    mine = [k for k, piece in enumerate(pieces) if piece.axis == axis.var]
    if len(mine) != 1 or pieces[mine[0]].kind not in ("serial", "vectorize"):
        return False
    needed = free_vars(axis.lo) | free_vars(axis.hi)
    later = {piece.axis for piece in pieces[mine[0] :]}
    return not needed & later
