"""Gives every reduction a stage of its own, as schedules name them: ``Y.sum``, ``Y.max1``."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import Ranges
from edgekernelbench.ir.interpret.depth import room_for
from edgekernelbench.lowering._hoist import Hoister, Names, NormalizeError

__all__ = ["NormalizeError", "normalize"]


def normalize(program: core.Program) -> core.Program:
    """Moves reductions that stand inside larger expressions into stages of their own.

    Afterwards a stage's expression is free of `Reduce`, or is one `Reduce` whose bounds, ``where``
    and body are free of it. A reduction inside a larger expression of stage ``Y`` becomes stage
    ``Y.sum``, the next ``Y.sum1`` (numbered for each operation in order of appearance, outer ones
    before those inside them; equal ones share a stage). It stands directly before ``Y``, is
    indexed by those axes of ``Y`` and of enclosing reductions that it varies with, and not by
    loop indices: in a loop it lives for one iteration.

    A stage that came from inside another reduction is defined over whole boxes. Where its reads
    need the enclosing range or ``where``, it repeats them in its own ``where``. Lets it uses are
    bound again inside it.

    Raises:
        NormalizeError: the copies of lets and conditions outgrow a fixed limit.
    """
    names = Names({stage.name for _, stage in core.stages(program.body)}, program.next_uid)
    names.taken.update(tensor.name for tensor in (*program.inputs, *program.outputs))
    ranges = Ranges()
    with room_for(program):
        body = tuple(new for node in program.body for new in _node(node, names, ranges, False))
    return core.Program(
        program.name,
        program.sizes,
        program.inputs,
        program.outputs,
        program.tables,
        body,
        names.next_uid,
    )


def _node(node: core.Node, names: Names, ranges: Ranges, in_loop: bool) -> tuple[core.Node, ...]:
    if isinstance(node, core.Loop):
        ranges.bind(node.var, node.lo, node.hi - 1)
        body = tuple(new for inner in node.body for new in _node(inner, names, ranges, True))
        return (core.Loop(node.kind, node.var, node.lo, node.hi, node.reverse, body, node.span),)
    made = Hoister(node, names, ranges).run()
    if not in_loop and node.tensor.dtype.is_int:
        # Values of histories depend on themselves: only stages outside loops are bounded.
        ranges.bind_tensor(node.tensor, ranges.of(node.expr))
    return made
