"""Tables: constants of the text."""

from __future__ import annotations

import math

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.elaborate import coerce, rules
from edgekernelbench.ir.elaborate.context import Context
from edgekernelbench.ir.elaborate.exprs import extent, number
from edgekernelbench.ir.elaborate.header import fits
from edgekernelbench.ir.elaborate.values import POISON, Scope, View


def table(cx: Context, scope: Scope, stmt: surface.TableStmt, prefix: str) -> None:
    """Defines a table in ``scope``; its tensor's name starts with ``prefix``."""
    if stmt.name in scope.names:
        cx.error(rules.DEFINED_TWICE, f"`{stmt.name}` is defined twice", stmt.span)
        return
    scope.names[stmt.name] = POISON
    shape = [extent(cx, scope, d, f"a dimension of table `{stmt.name}`") for d in stmt.dims]
    if None in shape:
        return
    dims = tuple(s for s in shape if s is not None)
    tensor = core.Tensor(prefix + stmt.name, stmt.dtype, dims, "table")
    if any(t.tensor.name == tensor.name for t in cx.tables):
        cx.error(rules.DEFINED_TWICE, f"table `{stmt.name}` is defined twice", stmt.span)
        return
    values: list[int | float] = []
    if not fits(cx, tensor, stmt.span) or not _flatten(cx, scope, stmt, stmt.value, dims, values):
        return
    cx.tables.append(core.Table(tensor, tuple(values)))
    scope.names[stmt.name] = View(tensor, (0,) * len(dims))


def _flatten(
    cx: Context,
    scope: Scope,
    stmt: surface.TableStmt,
    expr: surface.Expr,
    dims: tuple[int, ...],
    out: list[int | float],
) -> bool:
    """Row-major values of a nested list; False when something was reported."""
    if not dims:
        return _value(cx, scope, stmt, expr, out)
    given = expr.items if isinstance(expr, surface.ListExpr) else None
    if given is None or len(given) != dims[0]:
        has = "one value" if given is None else coerce.counted(len(given), "item")
        cx.error(
            rules.TABLE,
            f"table `{stmt.name}` is {coerce.shape_text(dims)} here, but has {has}",
            expr.span,
        )
        return False
    fine = True
    for item in given:
        fine &= _flatten(cx, scope, stmt, item, dims[1:], out)
    return fine


def _value(
    cx: Context,
    scope: Scope,
    stmt: surface.TableStmt,
    expr: surface.Expr,
    out: list[int | float],
) -> bool:
    if isinstance(expr, surface.ListExpr):
        cx.error(rules.TABLE, f"table `{stmt.name}` is nested too deep here", expr.span)
        return False
    value = number(cx, scope, expr, f"an item of table `{stmt.name}`")
    if value is None:
        return False
    if stmt.dtype.is_float:
        out.append(float(value))
        return True
    low, high = stmt.dtype.int_range
    if isinstance(value, float) or not low <= value <= high:
        cx.error(
            rules.LITERAL,
            f"{value} is no {stmt.dtype.value}, the dtype of table `{stmt.name}`",
            expr.span,
        )
        return False
    out.append(int(value))
    return not (isinstance(value, float) and math.isnan(value))
