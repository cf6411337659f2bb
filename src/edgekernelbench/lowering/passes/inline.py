"""Substitution of stages into the expressions that read them."""

from __future__ import annotations

from collections.abc import Collection

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Program, Stage
from edgekernelbench.lowering.access import TRANSCENDENTAL, accesses
from edgekernelbench.lowering.expr.rewrite import (
    Names,
    map_children,
    nesting,
    rename_bound,
    size,
    substitute,
)
from edgekernelbench.lowering.graph import Graph, map_stages

MAX_NODES = 20_000
MAX_DEPTH = 1000
MAX_CHEAP_NODES = 24
MAX_CHEAP_CHAIN = 200


class TooLarge(ValueError):
    """The expression of a stage outgrows the limit when others are substituted into it."""

    def __init__(self, stage: str) -> None:
        super().__init__(stage)
        self.stage = stage


def inline_stages(program: Program, inlined: Collection[str], names: Names) -> Program:
    """The program without the stages ``inlined``; each is computed again wherever it is read.

    Raises:
        TooLarge: an expression would grow beyond a fixed limit.
    """
    if not inlined:
        return program
    change: dict[str, tuple[core.Node, ...]] = {}
    bodies: dict[str, Stage] = {}
    for _, stage in core.stages(program.body):
        expr = _expand(stage.expr, bodies, names)
        if size(expr) > MAX_NODES or nesting(expr) > MAX_DEPTH:
            raise TooLarge(stage.name)
        new = Stage(stage.name, stage.tensor, stage.lhs, stage.axes, expr, stage.span)
        if stage.name in inlined:
            bodies[stage.name] = new
            change[stage.name] = ()
        elif expr is not stage.expr:
            change[stage.name] = (new,)
    return Program(
        program.name,
        program.sizes,
        program.inputs,
        program.outputs,
        program.tables,
        map_stages(program.body, change),
        names.next_uid,
    )


def _expand(expr: Expr, bodies: dict[str, Stage], names: Names) -> Expr:
    if not any(isinstance(e, core.Load) and e.tensor.name in bodies for e in core.walk(expr)):
        return expr
    expr = map_children(expr, lambda e: _expand(e, bodies, names))
    if isinstance(expr, core.Load) and expr.tensor.name in bodies:
        stage = bodies[expr.tensor.name]
        value = rename_bound(stage.expr, names)
        value = substitute(value, dict(zip(stage.lhs, expr.indices, strict=True)))
        if value.dtype is not stage.tensor.dtype:
            value = core.Cast(value, stage.tensor.dtype)  # the rounding of the store
        return value if value.dtype is expr.dtype else core.Cast(value, expr.dtype)
    return expr


def refusal(graph: Graph, name: str) -> str | None:
    """Why a stage cannot be inlined, None when it can."""
    stage = graph.stage(name)
    if graph.is_output(name):
        return f"`{name}` is an output"
    if isinstance(stage.expr, core.Reduce):
        return f"`{name}` is a reduction: it would run again for every element that reads it"
    if any(not read.current for read in graph.reads[name]):
        return f"`{name}` is read in a later iteration than the one that computes it"
    if not graph.reads[name]:
        return f"`{name}` is read by no stage"
    return None


def cheap_stages(graph: Graph, mentioned: Collection[str]) -> set[str]:
    """Default rule: stages that are cheaper to compute where they are read than to store.

    These are read once, by one stage, without a border test or a transcendental function, and a
    reduction takes in only conversions and single operations that do not transpose.
    """
    sizes: dict[str, int] = {}
    for name in graph.places:
        if name in mentioned or refusal(graph, name) is not None or not _is_cheap(graph, name):
            continue
        inner = sum(sizes.get(producer, 0) for producer in graph.producers(name))
        total = inner + size(graph.stage(name).expr)
        if total <= MAX_CHEAP_CHAIN:
            sizes[name] = total
    return set(sizes)


def _is_cheap(graph: Graph, name: str) -> bool:
    reads = graph.reads[name]
    if len(reads) != 1 or not reads[0].same_body:
        return False
    expr = graph.stage(name).expr
    nodes = list(core.walk(expr))
    costly = any(
        isinstance(e, core.Select)
        or (isinstance(e, core.Call) and e.fn in TRANSCENDENTAL)
        or (isinstance(e, core.Binary) and e.op in ("div", "fdiv", "mod", "pow"))
        for e in nodes
    )
    if costly or len(nodes) > MAX_CHEAP_NODES:
        return False
    if isinstance(graph.stage(reads[0].reader).expr, core.Reduce):
        if not _runs_in_order(graph.stage(name)):
            return False
        steps = [
            e for e in nodes if isinstance(e, core.Unary | core.Binary | core.Call | core.Cast)
        ]
        data = [e for e in steps if not _is_index_part(e, expr)]
        return len(data) <= 1 and not any(isinstance(e, core.Block) for e in nodes)
    return True


def _runs_in_order(stage: Stage) -> bool:
    """Whether it reads along its own last axis: one that transposes is there to be stored."""
    if not stage.lhs:
        return True
    strides = [read.strides.get(stage.lhs[-1], "fixed") for read in accesses(stage)]
    return all(stride in ("contiguous", "fixed") for stride in strides)


def _is_index_part(node: Expr, expr: Expr) -> bool:
    return any(
        isinstance(load, core.Load) and any(e is node for i in load.indices for e in core.walk(i))
        for load in core.walk(expr)
    )
