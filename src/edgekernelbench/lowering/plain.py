"""A loop program without any optimisation: what a compiler gets that is told nothing.

Every stage has a nest and a buffer of its own, every loop is serial, reductions are scalar
accumulations, constants are read as they come. Only the measure for other loop programs.
"""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.interpret.depth import room_for
from edgekernelbench.lowering.emit.body import BodyEmitter
from edgekernelbench.lowering.emit.buffers import plan_buffers
from edgekernelbench.lowering.emit.context import Context
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.expr.rewrite import Names
from edgekernelbench.lowering.facts import workspace_bytes
from edgekernelbench.lowering.graph import build_graph
from edgekernelbench.lowering.lower import main_params
from edgekernelbench.lowering.nest import Function, Module
from edgekernelbench.lowering.normalize import normalize
from edgekernelbench.lowering.plan import (
    Nest,
    Part,
    Piece,
    Plan,
    name_pieces,
    own_axes,
    reduce_axes,
)
from edgekernelbench.lowering.planner import stage_plan
from edgekernelbench.lowering.sketch import sketch
from edgekernelbench.targets.model import Target


def lower_plainly(program: Program, target: Target) -> Module:
    """The loop program of a verified program, stage by stage as written.

    Raises:
        NormalizeError: see `normalize`.
    """
    with room_for(program):
        program = normalize(program)
        graph = build_graph(program)
        stages = {n: stage_plan(p, Nest(_serial(p.stage))) for n, p in graph.places.items()}
        plan = Plan(graph, stages)
        params = (*main_params(program, ()), *program.outputs)
        tree = Tree.of(plan)
        ctx = Context(plan, target, Names(program.next_uid))
        ctx.taken.update({tensor.name: 1 for tensor in params})
        given = frozenset(tensor.name for tensor in program.outputs)
        body = BodyEmitter(ctx, tree, plan_buffers(plan, tree, given)).run(program.body)
    main = Function("main", params, body)
    return Module(main, None, (), workspace_bytes(main, target.threads), sketch(main))


def _serial(stage: core.Stage) -> tuple[Piece, ...]:
    parts = [Part(var) for var in own_axes(stage)]
    return name_pieces([*parts, *(Part(var, reduction=True) for var in reduce_axes(stage))])
