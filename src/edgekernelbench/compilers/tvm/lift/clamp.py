"""Indices that nobody can prove, kept inside by force."""

from __future__ import annotations

from dataclasses import replace

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Program
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.linear import int_const
from edgekernelbench.lowering.expr.ranges import range_of
from edgekernelbench.lowering.expr.rewrite import map_children

Ranges = dict[core.Var, tuple[int, int]]


def clamped(program: Program, data_only: bool) -> Program:
    """The program with indices clamped whose range is not known to fit.

    Args:
        data_only: only those that depend on data; others are left to the conditions around them.
    """
    body: list[core.Node] = []
    for _, stage in core.stages(program.body):
        ranges: Ranges = {axis.var: (0, axis.extent - 1) for axis in stage.axes}
        body.append(replace(stage, expr=_Clamp(ranges, data_only).run(stage.expr)))
    return replace(program, body=tuple(body))


class _Clamp:
    def __init__(self, ranges: Ranges, data_only: bool) -> None:
        self._ranges = ranges
        self._data_only = data_only
        self._from_data: set[core.Var] = set()

    def run(self, expr: Expr) -> Expr:
        match expr:
            case core.Load(tensor=tensor):
                indices = tuple(self.run(i) for i in expr.indices)
                pairs = zip(indices, tensor.shape, strict=True)
                return core.Load(tensor, tuple(self._inside(i, n) for i, n in pairs))
            case core.Reduce(axes=axes):
                self._ranges.update({a.var: (0, a.extent - 1) for a in axes})
                return map_children(expr, self.run)
            case core.Block(lets=lets, result=result):
                kept = tuple((var, self._let(var, value)) for var, value in lets)
                return core.Block(kept, self.run(result))
            case _:
                return map_children(expr, self.run)

    def _let(self, var: core.Var, value: Expr) -> Expr:
        value = self.run(value)
        if not value.dtype.is_float:
            self._ranges[var] = range_of(value, self._ranges)
            if self._depends_on_data(value):
                self._from_data.add(var)
        return value

    def _depends_on_data(self, expr: Expr) -> bool:
        return any(
            isinstance(node, core.Load)
            or (isinstance(node, core.VarRef) and node.var in self._from_data)
            for node in core.walk(expr)
        )

    def _inside(self, index: Expr, extent: int) -> Expr:
        if self._data_only and not self._depends_on_data(index):
            return index
        low, high = range_of(index, self._ranges)
        if low < 0:
            index = core.Binary("max", index, int_const(0, index.dtype), index.dtype)
        if high >= extent:
            index = core.Binary("min", index, int_const(extent - 1, index.dtype), index.dtype)
        return index if index.dtype is not DType.BOOL else core.Cast(index, DType.S32)
