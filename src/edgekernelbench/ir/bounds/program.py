"""Ranges of a whole program: axes, loops, lets, and the values that integer stages hold."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds.interval import Interval
from edgekernelbench.ir.bounds.ranges import Ranges


def program_ranges(program: core.Program) -> Ranges:
    """Binds every variable of ``program`` to its range, stage values included.

    What a stage holds is used for reads that come later in the text only; a history read before
    its definition may be anything of its dtype.
    """
    ranges = Ranges()
    for table in program.tables:
        bind_table(ranges, table)
    for loops, stage in core.stages(program.body):
        for loop in loops:
            ranges.bind(loop.var, loop.lo, loop.hi - 1)
        bind_stage(ranges, stage)
    return ranges


def bind_table(ranges: Ranges, table: core.Table) -> None:
    values = [v for v in table.values if isinstance(v, int)]
    if values and not table.tensor.dtype.is_float:
        ranges.bind_tensor(table.tensor, Interval(min(values), max(values)))


def bind_stage(ranges: Ranges, stage: core.Stage) -> None:
    """Binds the stage's axes and everything bound inside its expression, then what it stores."""
    for axis in stage.axes:
        ranges.bind(axis.var, 0, axis.extent - 1)
    bind_expr(ranges, stage.expr)
    if not stage.tensor.dtype.is_float:
        ranges.bind_tensor(stage.tensor, ranges.of(stage.expr))


def bind_expr(ranges: Ranges, expr: core.Expr) -> None:
    """Binds the axes of reductions and the lets in ``expr``, in the order of evaluation."""
    match expr:
        case core.Reduce():
            for axis in expr.axes:
                bind_expr(ranges, axis.lo)
                bind_expr(ranges, axis.hi)
                ranges.bind_axis(axis)
            if expr.where is not None:
                bind_expr(ranges, expr.where)
            for item in expr.items:
                bind_expr(ranges, item)
        case core.Block():
            for var, value in expr.lets:
                bind_expr(ranges, value)
                ranges.bind_let(var, value)
            bind_expr(ranges, expr.result)
        case _:
            for child in core.children(expr):
                bind_expr(ranges, child)
