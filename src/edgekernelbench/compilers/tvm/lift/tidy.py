"""A lifted program made short and provable: what is left over from operators goes away.

Operators come one by one, so between them stand arrays that only rename elements, or that one
element-wise operator hands to the next. The compiler's own pipeline fuses these; so does this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from edgekernelbench.compilers.tvm.lift.clamp import clamped
from edgekernelbench.compilers.tvm.lift.fuse import (
    Readers,
    fused_once,
    readers,
    squeezed_outputs,
    transpositions,
    views,
)
from edgekernelbench.compilers.tvm.lift.refusal import Refused
from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Program, Stage
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.interpret.depth import room_for
from edgekernelbench.ir.verify import verify
from edgekernelbench.lowering.expr.linear import Ranges
from edgekernelbench.lowering.expr.rewrite import Names, loads, map_children
from edgekernelbench.lowering.expr.simplify import simplify
from edgekernelbench.lowering.passes.inline import TooLarge, inline_stages

_MAX_ROUNDS = 50


def tidied(program: Program) -> Program:
    """The same results with fewer stages; verified.

    Raises:
        Refused: the verifier cannot prove it safe, even with all its indices clamped.
    """
    with room_for(program):
        program = _only_used(_simplified(program))
        for _ in range(_MAX_ROUNDS):
            before = program
            program = _shortened(program)
            if program == before:
                break
    with room_for(program):
        return _proved(program)


def _shortened(program: Program) -> Program:
    names = Names(program.next_uid)
    try:
        program = inline_stages(program, views(program) | transpositions(program), names)
        program = squeezed_outputs(_simplified(program))
        program = fused_once(_only_used(program))
    except TooLarge:
        return program
    return _only_used(_simplified(program))


def _proved(program: Program) -> Program:
    """Clamps as few indices as the verifier needs."""
    ways: tuple[Callable[[Program], Program], ...] = (
        lambda p: p,
        lambda p: clamped(p, data_only=True),
        lambda p: clamped(p, data_only=False),
    )
    message = ""
    for way in ways:
        changed = way(program)
        errors = [d for d in verify(changed) if d.severity == "error"]
        if not errors:
            return changed
        message = f"{errors[0].rule.code}: {errors[0].message}"
    raise Refused(f"not proved safe: {message}")


# ---------------------------------------------------------------- simplification
def _simplified(program: Program) -> Program:
    body: list[core.Node] = []
    for _, stage in core.stages(program.body):
        ranges = {axis.var: (0, axis.extent - 1) for axis in stage.axes}
        body.append(replace(stage, expr=_simple(stage.expr, ranges)))
    return replace(program, body=tuple(body))


def _simple(expr: Expr, ranges: Ranges) -> Expr:
    if isinstance(expr, core.Reduce):
        return _simple_reduce(expr, ranges)
    if any(isinstance(node, core.Reduce) for node in core.walk(expr)):
        return map_children(expr, lambda e: _simple(e, ranges))
    return simplify(expr, ranges)


def _simple_reduce(reduce: core.Reduce, ranges: Ranges) -> Expr:
    """Without axes of one element."""
    inside = {**ranges, **{axis.var: (0, axis.extent - 1) for axis in reduce.axes}}
    body = _simple(reduce.body, inside)
    axes = tuple(axis for axis in reduce.axes if axis.extent != 1)
    if axes:
        return replace(reduce, axes=axes, body=body)
    return core.Const(0, DType.S32) if reduce.op in ("argmax", "argmin") else body


# ---------------------------------------------------------------- what nobody reads
def _only_used(program: Program) -> Program:
    """Without stages that no output depends on, and without inputs and tables that nobody reads.

    Inputs that are no constants stay: they are the task's.
    """
    found: Readers = readers(program)
    live: set[str] = set()
    stages = {stage.name: stage for _, stage in core.stages(program.body)}
    pending = [tensor.name for tensor in program.outputs]
    while pending:
        name = pending.pop()
        if name in stages and name not in live:
            live.add(name)
            pending += [load.tensor.name for load in loads(stages[name].expr)]
    read = {name for name, who in found.items() if who & live}
    return replace(
        program,
        inputs=tuple(t for t in program.inputs if not t.const or t.name in read),
        tables=tuple(t for t in program.tables if t.tensor.name in read),
        body=tuple(s for s in program.body if isinstance(s, Stage) and s.name in live),
    )
