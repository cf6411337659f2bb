"""The lowering: a program and the layers of its kernel become a loop program."""

from __future__ import annotations

from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Program, Tensor
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.lowering.emit.body import BodyEmitter
from edgekernelbench.lowering.emit.buffers import plan_buffers
from edgekernelbench.lowering.emit.context import Context
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.expr.rewrite import Names, loads
from edgekernelbench.lowering.graph import build_graph
from edgekernelbench.lowering.nest import Function, Module, Stmt
from edgekernelbench.lowering.normalize import normalize
from edgekernelbench.lowering.plan import Plan
from edgekernelbench.lowering.planner import Directives, make_plan
from edgekernelbench.targets.model import Target


@dataclass(frozen=True, slots=True)
class LowerResult:
    """A module, or the diagnostics that say why there is none (warnings may come with one)."""

    module: Module | None
    diagnostics: tuple[Diagnostic, ...] = ()


def lower(kernel: Kernel, program: Program, target: Target) -> LowerResult:
    """Applies the schedule and memory layers of ``kernel`` that hold for ``target``.

    Args:
        program: ``kernel`` elaborated and verified.
    """
    program = normalize(program)
    graph = build_graph(program)
    plan = make_plan(graph, Directives(), target)
    names = Names(program.next_uid)
    main = emit_function(plan, target, names, program)
    params = _params(program)
    return LowerResult(Module(Function("main", params, main), None, (), 0, ""))


def emit_function(plan: Plan, target: Target, names: Names, program: Program) -> Stmt:
    tree = Tree.of(plan)
    given = frozenset(t.name for t in program.outputs)
    ctx = Context(plan, target, names)
    buffers = plan_buffers(plan, tree, given)
    return BodyEmitter(ctx, tree, buffers).run(program.body)


def _params(program: Program) -> tuple[Tensor, ...]:
    read = {load.tensor.name for _, s in core.stages(program.body) for load in loads(s.expr)}
    inputs = [t for t in program.inputs if not t.const]
    consts = [t for t in program.inputs if t.const and t.name in read]
    tables = [t.tensor for t in program.tables if t.tensor.name in read]
    return (*inputs, *consts, *tables, *program.outputs)
