"""Integer arithmetic on expressions of loop variables, sums in normal form."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr
from edgekernelbench.lowering.expr.linear import int_const, linear, to_expr


def plus(a: Expr, b: Expr, factor: int = 1) -> Expr:
    """``a + factor * b``."""
    return to_expr(linear(a).plus(linear(b).times(factor)), a.dtype)


def minus(a: Expr, b: Expr) -> Expr:
    return plus(a, b, -1)


def shifted(a: Expr, offset: int) -> Expr:
    return to_expr(linear(a).shifted(offset), a.dtype)


def times(a: Expr, factor: int) -> Expr:
    return to_expr(linear(a).times(factor), a.dtype)


def divided(a: Expr, divisor: int) -> Expr:
    """Floor division."""
    return a if divisor == 1 else core.Binary("fdiv", a, int_const(divisor, a.dtype), a.dtype)


def larger(a: Expr, b: Expr) -> Expr:
    return core.Binary("max", a, b, a.dtype)


def smaller(a: Expr, b: Expr) -> Expr:
    return core.Binary("min", a, b, a.dtype)
