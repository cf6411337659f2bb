"""Gives every reduction a stage of its own, as schedules name them: ``Y.sum``, ``Y.max1``."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.interpret.depth import room_for
from edgekernelbench.lowering import _hoist
from edgekernelbench.lowering._hoist import Hoister, Names, NormalizeError

__all__ = ["NormalizeError", "normalize"]


def normalize(program: core.Program) -> core.Program:
    """Moves reductions that stand inside larger expressions into stages of their own.

    Afterwards a stage's expression is free of `Reduce`, or is one `Reduce` whose bounds, ``where``
    and body are free of it. A reduction inside a larger expression of stage ``Y`` becomes stage
    ``Y.sum``, the next ``Y.sum1`` (numbered for each operation in order of appearance, outer ones
    before those inside them; equal ones share a stage). It stands directly before ``Y``, is
    indexed by those axes of ``Y`` and of enclosing reductions that it varies with, and not by
    loop indices: in a loop it lives for one iteration. Lets it uses are bound again inside it.

    Conditions around a reduction do not travel with it: `verify` has proved its reads without
    them, for all values of the axes. So the result is as safe as the program was.

    Raises:
        NormalizeError: the copies of lets outgrow a fixed limit.
    """
    taken = {tensor.name for tensor in (*program.inputs, *program.outputs)}
    taken |= {stage.name for _, stage in core.stages(program.body)}
    names = Names(taken, program.next_uid, _hoist.MAX_CARRIED)
    with room_for(program):
        body = tuple(new for node in program.body for new in _node(node, names))
    return core.Program(
        program.name,
        program.sizes,
        program.inputs,
        program.outputs,
        program.tables,
        body,
        names.next_uid,
    )


def _node(node: core.Node, names: Names) -> tuple[core.Node, ...]:
    if isinstance(node, core.Loop):
        body = tuple(new for inner in node.body for new in _node(inner, names))
        return (core.Loop(node.kind, node.var, node.lo, node.hi, node.reverse, body, node.span),)
    return Hoister(node, names).run()
