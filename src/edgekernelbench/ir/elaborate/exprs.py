"""Expressions of the surface to values: the dispatcher over node classes."""

from __future__ import annotations

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.elaborate import build, calls, coerce, names, ops, reads, reductions, rules
from edgekernelbench.ir.elaborate.context import Context, ExprHandler
from edgekernelbench.ir.elaborate.hold import Lets
from edgekernelbench.ir.elaborate.values import (
    POISON,
    Number,
    Poison,
    Scalar,
    Scope,
    TupleValue,
    Value,
    View,
)


def _number(cx: Context, scope: Scope, expr: surface.Num) -> Value:
    return Number(expr.value)


def _cast(cx: Context, scope: Scope, expr: surface.CastExpr) -> Value:
    return ops.convert(cx, calls.scalar(cx, scope, expr.arg), expr.dtype, expr.span)


def _list(cx: Context, scope: Scope, expr: surface.ListExpr) -> Value:
    return cx.error(rules.TABLE, "a list is the value of a `table`, nothing else", expr.span)


def _hole(cx: Context, scope: Scope, expr: surface.Hole) -> Value:
    return cx.error(rules.NOT_CONSTANT, "a hole stands only in schedules", expr.span)


def _unary(cx: Context, scope: Scope, expr: surface.Unary) -> Value:
    arg = calls.scalar(cx, scope, expr.arg)
    match expr.op:
        case "-":
            return ops.negate(cx, arg, expr.span)
        case "~":
            return ops.invert(cx, arg, expr.span)
        case "not":
            return ops.negation(cx, coerce.condition(cx, arg, expr.arg.span), expr.span)
        case "+":
            return arg


def _binary(cx: Context, scope: Scope, expr: surface.Binary) -> Value:
    left = calls.scalar(cx, scope, expr.left)
    right = calls.scalar(cx, scope, expr.right)
    match expr.op:
        case "and" | "or":
            first = coerce.condition(cx, left, expr.left.span)
            second = coerce.condition(cx, right, expr.right.span)
            return ops.logic(cx, expr.op, first, second, expr.span)
        case "/":
            return ops.arith(cx, "div", left, right, expr.span)
        case "**":
            return ops.power(cx, left, right, expr.span)
    return ops.arith(cx, ops.ARITHMETIC[expr.op], left, right, expr.span)


def _compare(cx: Context, scope: Scope, expr: surface.Compare) -> Value:
    """A chain; an inner operand that is not cheap is computed once."""
    operands: list[Scalar | Poison] = []
    for operand in expr.operands:
        operands.append(calls.scalar(cx, scope, operand))
    lets = Lets()
    for at in range(1, len(operands) - 1):
        if not build.is_plain_read(operands[at]):
            operands[at] = lets.hold(cx, "between", operands[at])
    result: Scalar | Poison | None = None
    for sign, a, b in zip(expr.ops, operands[:-1], operands[1:], strict=True):
        term = ops.compare(cx, sign, a, b, expr.span)
        result = term if result is None else ops.logic(cx, "and", result, term, expr.span)
    assert result is not None
    return lets.wrap(result, expr.span)


def _if(cx: Context, scope: Scope, expr: surface.IfExpr) -> Value:
    cond = coerce.condition(cx, cx.expr(scope, expr.cond), expr.cond.span)
    outside = cx.facts
    if isinstance(cond, core.Expr):
        cx.facts = cx.prover.assume(outside, cond, True)
    then = calls.scalar(cx, scope, expr.then)
    if isinstance(cond, core.Expr):
        cx.facts = cx.prover.assume(outside, cond, False)
    other = calls.scalar(cx, scope, expr.other)
    cx.facts = outside
    return ops.choose(cx, cond, then, other, expr.span)


def _tuple(cx: Context, scope: Scope, expr: surface.TupleExpr) -> Value:
    items: list[Value] = []
    for item in expr.items:
        items.append(calls.scalar(cx, scope, item))
    return TupleValue(tuple(items))


# ---------------------------------------------------------------- blocks
def _block(cx: Context, scope: Scope, expr: surface.BlockExpr) -> Value:
    """``{ let a = ...  return e }``: each let opens a scope, so a name may be used again."""
    lets, inner = Lets(), scope
    for let in expr.lets:
        value = cx.expr(inner, let.value)
        inner = Scope(inner)
        if len(let.names) == 1 and not isinstance(value, TupleValue):
            inner.names[let.names[0]] = _bound(cx, lets, let.names[0], value, let.value)
        else:
            _bind_tuple(cx, lets, inner, let, value)
    return calls.close(cx, lets, cx.expr(inner, expr.result), expr.result)


def _bound(cx: Context, lets: Lets, name: str, value: Value, expr: surface.Expr) -> Value:
    """What a let's name stands for: numbers and slices as they are, else a variable."""
    if isinstance(value, View) and value.rank > 0:
        return lets.hold_slice(cx, name, value)
    found = coerce.scalar(cx, value, expr.span)
    if found is POISON or isinstance(found, Number):
        return found
    return lets.bind(cx, name, found)


def _bind_tuple(cx: Context, lets: Lets, scope: Scope, let: surface.BlockLet, value: Value) -> None:
    for name in let.names:
        scope.names[name] = POISON
    if value is POISON:
        return
    if not isinstance(value, TupleValue):
        cx.error(rules.TUPLE, f"{len(let.names)} names are bound to one value", let.span)
        return
    if len(value.items) != len(let.names):
        cx.error(
            rules.TUPLE,
            f"{len(let.names)} name{'s' * (len(let.names) > 1)} for a tuple of {len(value.items)}",
            let.span,
        )
        return
    lets.items += value.lets
    for name, item in zip(let.names, value.items, strict=True):
        scope.names[name] = _bound(cx, lets, name, item, let.value)


HANDLERS: dict[type, ExprHandler] = {
    surface.Num: _number,
    surface.Name: names.lookup,
    surface.Index: reads.subscript,
    surface.Call: calls.call,
    surface.CastExpr: _cast,
    surface.Reduction: reductions.reduction,
    surface.Unary: _unary,
    surface.Binary: _binary,
    surface.Compare: _compare,
    surface.IfExpr: _if,
    surface.TupleExpr: _tuple,
    surface.BlockExpr: _block,
    surface.ListExpr: _list,
    surface.Hole: _hole,
}
"""How each node of the surface is elaborated; errors are reported once and yield poison."""


# ---------------------------------------------------------------- compile-time numbers
def number(cx: Context, scope: Scope, expr: surface.Expr, what: str) -> int | float | None:
    """A compile-time number; None when it was reported that it is none."""
    value = cx.expr(scope, expr)
    if value is POISON:
        return None
    if isinstance(value, core.Const):
        return value.value
    if isinstance(value, Number):
        return value.value
    text = coerce.show(expr)
    cx.error(rules.NOT_CONSTANT, f"{what}: `{text}` is not a number at compile time", expr.span)
    return None


def extent(cx: Context, scope: Scope, expr: surface.Expr, what: str) -> int | None:
    """A positive compile-time integer."""
    value = number(cx, scope, expr, what)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= build.S32_HIGH:
        return value
    help = []
    if isinstance(expr, surface.Binary) and expr.op == "/":
        whole = surface.Binary("//", expr.left, expr.right)
        help = [f"`{coerce.show(whole)}` divides integers"]
    cx.error(rules.EXTENT, f"{what}{described(expr, value)}", expr.span, help)
    return None


def described(expr: surface.Expr, value: int | float | bool) -> str:
    """`` is 0``, or for an expression ``: `M / 2` is 2.0, not an integer``."""
    text = coerce.show(expr)
    shown = "" if text == str(value) else f": `{text}`"
    return f"{shown} is {value}" + ("" if type(value) is int else ", not an integer")
