"""Stages that are components of one reduction by a combiner: one nest computes them all.

The program says each component by itself, as a reduction that keeps one part of the tuple. Here
those that differ in the part only are found again. The first in program order leads; the others
follow where they have its nest and its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Stage, Var
from edgekernelbench.lowering import _terms as terms
from edgekernelbench.lowering.graph import Graph
from edgekernelbench.lowering.plan import Nest, Piece, Plan, extents_of, own_axes


def siblings(graph: Graph) -> dict[str, tuple[str, ...]]:
    """For each component of a reduction all its components, itself included, in program order."""
    groups: dict[object, list[str]] = {}
    for name, place in graph.places.items():
        key = _key(place.stage)
        if key is not None:
            groups.setdefault((place.body, key), []).append(name)
    return {name: tuple(group) for group in groups.values() for name in group if len(group) > 1}


def _key(stage: Stage) -> object:
    """Equal for stages that are parts of one reduction; None for those that are none."""
    reduce = stage.expr
    if not isinstance(reduce, core.Reduce) or reduce.combiner is None:
        return None
    own = list(own_axes(stage))
    names = {var.uid: Var("", -1 - k, var.dtype) for k, var in enumerate(own)}
    body = terms.key(terms.rename(replace(reduce, part=0, dtype=reduce.body.dtype), names))
    lhs = tuple(names.get(var.uid, var).uid for var in stage.lhs)
    return None if body is None else (body, lhs, tuple(own_axes(stage).values()))


def translated(pieces: tuple[Piece, ...], source: Stage, stage: Stage) -> tuple[Piece, ...]:
    """The nest of one component for another one."""
    axes = dict(zip(extents_of(source), extents_of(stage), strict=True))
    return tuple(replace(piece, axis=axes[piece.axis]) for piece in pieces)


def joined(plan: Plan) -> Plan:
    """The plan with components of one reduction computed by one of them, where they have the same
    nest and place. What is placed in a loop of one of them is placed in the loop of that one."""
    together: dict[str, str] = {}
    for name, group in siblings(plan.graph).items():
        for leader in group[: group.index(name)]:
            same = plan.attach.get(leader) == plan.attach.get(name)
            if leader not in together and same and _same_nest(plan, leader, name):
                together[name] = leader
                break
    attach = {
        name: replace(place, target=together.get(place.target, place.target))
        for name, place in plan.attach.items()
    }
    return replace(plan, together=together, attach=attach)


def _same_nest(plan: Plan, a: str, b: str) -> bool:
    first, second = plan.stages[a], plan.stages[b]
    return translated(first.pieces, first.stage, second.stage) == second.pieces


def given_to_all(graph: Graph, given: Mapping[str, Nest]) -> dict[str, Nest]:
    """A nest stated for one component holds for the others that have none."""
    out = dict(given)
    for name, group in siblings(graph).items():
        source = next((other for other in group if other in given), None)
        if name not in given and source is not None:
            pieces = translated(given[source].pieces, graph.stage(source), graph.stage(name))
            out[name] = Nest(pieces)
    return out
