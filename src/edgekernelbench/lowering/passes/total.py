"""Makes expressions safe to evaluate eagerly, and whatever the data.

A verified program reads in range where a condition holds; a compiler may evaluate both branches
of a condition. So reads and divisions that need their condition are clamped here.

Compilers assume that signed arithmetic does not overflow, and drop clamps on that ground: with
``a`` and ``b`` unsigned, ``max(a * b, 0)`` becomes ``a * b``. So arithmetic that an index depends
on, and that might overflow, is done modulo 2**32, where nothing may be assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.linear import Ranges, int_const
from edgekernelbench.lowering.expr.ranges import exact_range, range_of
from edgekernelbench.lowering.expr.rewrite import free_vars, map_children

_S64_SAFE = 1 << 62


def total(expr: Expr, ranges: Ranges, conditional: bool = False, index: bool = False) -> Expr:
    """The expression with every load in bounds and every integer divisor positive.

    Args:
        ranges: of axes and loop indices.
        conditional: the expression is evaluated under a condition that it may rely on.
        index: the value is used as an index or as a bound of a loop.
    """
    return _Total(_feeding(expr, index)).run(expr, ranges, conditional, index)


def _feeding(expr: Expr, index: bool) -> frozenset[Var]:
    """The lets that some index depends on."""
    values: dict[Var, Expr] = {}
    used: set[Var] = set(free_vars(expr)) if index else set()
    for node in core.walk(expr):
        match node:
            case core.Block(lets=lets):
                values.update(lets)
            case core.Load(indices=indices):
                for each in indices:
                    used |= free_vars(each)
            case core.Binary(op="fdiv" | "mod", right=right) if not node.dtype.is_float:
                used |= free_vars(right)
            case _:
                pass
    pending = [var for var in used if var in values]
    if index and isinstance(expr, core.Block):
        pending += [var for var in free_vars(expr.result) if var in values]
    found: set[Var] = set()
    while pending:
        var = pending.pop()
        if var not in found:
            found.add(var)
            pending += [v for v in free_vars(values[var]) if v in values]
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Total:
    feeding: frozenset[Var]

    def run(self, expr: Expr, ranges: Ranges, conditional: bool, index: bool) -> Expr:
        match expr:
            case core.Load():
                return self._load(expr, ranges, conditional)
            case core.Select():
                cond = self.run(expr.cond, ranges, conditional, False)
                then = self.run(expr.then, ranges, True, index)
                other = self.run(expr.other, ranges, True, index)
                return core.Select(cond, then, other, expr.dtype, expr.border, expr.span)
            case core.Binary():
                return self._binary(expr, ranges, conditional, index)
            case core.Unary(op="neg") if index and expr.dtype is DType.S32:
                zero = int_const(0)
                minus = core.Binary("sub", zero, expr.arg, DType.S32, expr.span)
                return self._binary(minus, ranges, conditional, index)
            case core.Block(lets=lets, result=result):
                inside = dict(ranges)
                kept: list[tuple[Var, Expr]] = []
                for var, value in lets:
                    value = self.run(value, inside, conditional, var in self.feeding)
                    kept.append((var, value))
                    if not value.dtype.is_float:
                        inside[var] = range_of(value, inside)
                out = self.run(result, inside, conditional, index)
                return core.Block(tuple(kept), out, expr.span)
            case _:
                return map_children(expr, lambda e: self.run(e, ranges, conditional, index))

    def _load(self, load: core.Load, ranges: Ranges, conditional: bool) -> core.Load:
        indices = tuple(self.run(i, ranges, conditional, True) for i in load.indices)
        if conditional:
            pairs = zip(indices, load.tensor.shape, strict=True)
            indices = tuple(_inside(i, n, ranges) for i, n in pairs)
        return core.Load(load.tensor, indices, load.span)

    def _binary(self, expr: core.Binary, ranges: Ranges, conditional: bool, index: bool) -> Expr:
        op = expr.op
        divides = op in ("fdiv", "mod") and not expr.dtype.is_float
        a = self.run(expr.left, ranges, conditional, index)
        b = self.run(expr.right, ranges, conditional or op in core.BOOL_OPS, index or divides)
        if divides and conditional and range_of(b, ranges)[0] < 1:
            b = core.Binary("max", b, int_const(1, b.dtype), b.dtype)
        out = core.Binary(op, a, b, expr.dtype, expr.span)
        if index and op in ("add", "sub", "mul") and _overflows(out, ranges):
            return _modular(out)
        return out


def _overflows(expr: core.Binary, ranges: Ranges) -> bool:
    if expr.dtype not in (DType.S32, DType.S64):
        return False
    found = exact_range(expr, ranges)
    low, high = expr.dtype.int_range
    return found is not None and (found[0] < low or found[1] > high)


def _modular(expr: core.Binary) -> Expr:
    """The same value where nothing overflows, and some value where something does."""
    if expr.dtype is DType.S32:
        a, b = (core.Cast(e, DType.U32) for e in (expr.left, expr.right))
        return core.Cast(core.Binary(expr.op, a, b, DType.U32), DType.S32)
    limit = (1 << 31) if expr.op == "mul" else _S64_SAFE - 1
    a, b = (_limited(e, limit) for e in (expr.left, expr.right))
    return core.Binary(expr.op, a, b, DType.S64, expr.span)


def _limited(expr: Expr, limit: int) -> Expr:
    low = core.Binary("max", expr, int_const(-limit, DType.S64), DType.S64)
    return core.Binary("min", low, int_const(limit, DType.S64), DType.S64)


def _inside(index: Expr, size: int, ranges: Ranges) -> Expr:
    low, high = range_of(index, ranges)
    if low < 0:
        index = core.Binary("max", index, int_const(0, index.dtype), index.dtype)
    if high >= size:
        index = core.Binary("min", index, int_const(size - 1, index.dtype), index.dtype)
    return index
