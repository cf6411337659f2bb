"""Stages that read only constants are computed before the timed call."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Program, Stage, Tensor
from edgekernelbench.lowering.expr.rewrite import loads, map_children
from edgekernelbench.lowering.graph import map_stages
from edgekernelbench.lowering.plan import Layout

MAX_PACKED_BYTES = 64 << 20
MAX_PACKED_GROWTH = 16


@dataclass(frozen=True, slots=True)
class Split:
    """A program in two: what runs once on the constants, and what runs per call.

    ``packed``: tensors of ``before`` that ``main`` reads, in program order.
    """

    before: Program | None
    main: Program
    packed: tuple[Tensor, ...]


def constant_stages(program: Program, wanted: Collection[str]) -> set[str]:
    """Names of the stages outside loops that depend on constants and tables alone.

    A stage whose result is larger than 64 MiB or than sixteen times what it reads stays in the
    call, unless it is ``wanted`` (the author gave it a layout).
    """
    tables = {table.tensor.name for table in program.tables}
    sources = {t.name: t.bytes for t in program.inputs if t.const}
    found: set[str] = set()
    for node in program.body:
        if not isinstance(node, Stage) or node.tensor.kind == "output":
            continue
        read = {load.tensor.name: load.tensor.bytes for load in loads(node.expr)}
        if not all(name in sources or name in tables or name in found for name in read):
            continue
        budget = max(4096, MAX_PACKED_GROWTH * sum(read.values()))
        if node.name in wanted or node.tensor.bytes <= min(MAX_PACKED_BYTES, budget):
            found.add(node.name)
    return found


def split_constants(program: Program, constant: Collection[str]) -> Split:
    """Takes the stages ``constant`` out of the program."""
    if not constant:
        return Split(None, program, ())
    stages = [stage for _, stage in core.stages(program.body)]
    later = {load.tensor.name for s in stages if s.name not in constant for load in loads(s.expr)}
    packed = tuple(s.tensor for s in stages if s.name in constant and s.name in later)
    needed = _needed([s for s in stages if s.name in constant], {t.name for t in packed})
    before = _with_body(program, {s.name: () for s in stages if s.name not in needed})
    main = _with_body(program, dict.fromkeys(constant, ()))
    return Split(before if packed else None, main, packed)


def _needed(stages: list[Stage], roots: set[str]) -> set[str]:
    found = set(roots)
    for stage in reversed(stages):
        if stage.name in found:
            found |= {load.tensor.name for load in loads(stage.expr)}
    return found


def _with_body(program: Program, change: Mapping[str, tuple[core.Node, ...]]) -> Program:
    return Program(
        program.name,
        program.sizes,
        program.inputs,
        program.outputs,
        program.tables,
        map_stages(program.body, change),
        program.next_uid,
    )


def add_packed_copies(program: Program, layouts: Mapping[str, Layout]) -> Program:
    """A stage ``T.packed`` in front for each input with a layout; all stages read that instead.

    Args:
        layouts: by name of the input; the formals serve as the axes of the copy.
    """
    copies: dict[str, Stage] = {}
    for tensor in program.inputs:
        layout = layouts.get(tensor.name)
        if layout is None:
            continue
        copy = Tensor(f"{tensor.name}.packed", tensor.dtype, tensor.shape, "stage")
        axes = tuple(core.Axis(v, n) for v, n in zip(layout.formals, tensor.shape, strict=True))
        read = core.Load(tensor, tuple(core.VarRef(v) for v in layout.formals))
        copies[tensor.name] = Stage(copy.name, copy, layout.formals, axes, read)
    if not copies:
        return program
    change: dict[str, tuple[core.Node, ...]] = {}
    for _, stage in core.stages(program.body):
        expr = redirect(stage.expr, {name: copy.tensor for name, copy in copies.items()})
        change[stage.name] = (
            Stage(stage.name, stage.tensor, stage.lhs, stage.axes, expr, stage.span),
        )
    body = (*copies.values(), *map_stages(program.body, change))
    return Program(
        program.name,
        program.sizes,
        program.inputs,
        program.outputs,
        program.tables,
        body,
        program.next_uid,
    )


def redirect(expr: core.Expr, tensors: Mapping[str, Tensor]) -> core.Expr:
    """The expression with loads of some tensors taken from others of the same shape."""

    def visit(node: core.Expr) -> core.Expr:
        node = map_children(node, visit)
        if isinstance(node, core.Load) and node.tensor.name in tensors:
            return core.Load(tensors[node.tensor.name], node.indices, node.span)
        return node

    return visit(expr)
