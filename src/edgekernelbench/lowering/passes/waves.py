"""Outputs that a wave in lanes reads again: the wave keeps them by diagonals, too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Program, Stage, Tensor
from edgekernelbench.lowering.expr.rewrite import map_children
from edgekernelbench.lowering.graph import Graph, build_graph, map_stages
from edgekernelbench.lowering.plan import Wave


def keep_by_diagonals(program: Program, waves: Iterable[Wave]) -> Program:
    """The program with a stage ``Y.wave`` for each output ``Y`` that the body of a wave in lanes
    reads: the reads along a diagonal of an output, which is stored by rows, would be gathers."""
    graph = build_graph(program)
    inside = {wave.outer for wave in waves if wave.lanes is not None}
    body = [name for name, place in graph.places.items() if inside & set(place.body)]
    copies: dict[str, Tensor] = {}
    for name in body:
        if graph.is_output(name) and set(graph.readers(name)) & set(body):
            tensor = graph.stage(name).tensor
            copies[name] = replace(tensor, name=_free(f"{name}.wave", graph), kind="stage")
    if not copies:
        return program
    change = {name: _changed(graph.stage(name), copies) for name in body}
    return replace(program, body=map_stages(program.body, change))


def _free(name: str, graph: Graph) -> str:
    while name in graph.places:
        name += "_"
    return name


def _changed(stage: Stage, copies: dict[str, Tensor]) -> tuple[Stage, ...]:
    expr = _redirected(stage.expr, copies)
    copy = copies.get(stage.name)
    if copy is None:
        return (replace(stage, expr=expr),)
    kept = replace(stage, name=copy.name, tensor=copy, expr=expr)
    own = core.Load(copy, tuple(core.VarRef(var) for var in stage.lhs), stage.span)
    return kept, replace(stage, expr=own)


def _redirected(expr: Expr, copies: dict[str, Tensor]) -> Expr:
    out = map_children(expr, lambda e: _redirected(e, copies))
    if isinstance(out, core.Load) and out.tensor.name in copies:
        return replace(out, tensor=copies[out.tensor.name])
    return out
