"""Examples against a claim: values of variables and data for which an index is out of range.

Only a search, never a proof: finding nothing says nothing.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable
from dataclasses import dataclass, field

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import Facts, Prover
from edgekernelbench.ir.verify.text import read

_TRIES = 120
_NODES = 400
_TOTAL_NODES = 12_000


class _Unknown(Exception):
    """The expression has no value that can be computed here."""


@dataclass(slots=True)
class _Point:
    """One choice of values. Data is chosen when it is first read."""

    prover: Prover
    draw: random.Random
    corner: bool
    variables: dict[int, int] = field(default_factory=dict)
    data: dict[Hashable, int | float] = field(default_factory=dict)
    named: dict[str, int | float] = field(default_factory=dict)
    steps: int = _NODES


def counterexample(
    prover: Prover, index: core.Expr, lo: int, hi: int, facts: Facts
) -> tuple[int, str] | None:
    """A value of ``index`` outside lo..hi that the conditions on the way allow, and the choices
    that lead to it as text such as ``i = 0``."""
    draw, left = random.Random(0), _TOTAL_NODES
    for attempt in range(_TRIES):
        point = _Point(prover, draw, attempt % 2 == 0, steps=min(left, _NODES))
        steps = point.steps
        try:
            value = _value(point, index)
            fits = all(bool(_value(point, cond)) == truth for cond, truth in facts.path)
        except (_Unknown, OverflowError, ZeroDivisionError, ValueError):
            continue
        finally:
            left -= steps - point.steps
        if fits and not lo <= value <= hi:
            return int(value), ", ".join(f"{n} = {v}" for n, v in point.named.items())
    return None


def _pick(point: _Point, lo: int, hi: int) -> int:
    if point.corner:
        return point.draw.choice((lo, hi))
    near = [v for v in (0, 1, -1, lo, hi, lo + 1, hi - 1) if lo <= v <= hi]
    return point.draw.choice((*near, point.draw.randint(lo, hi)))


def _value(point: _Point, expr: core.Expr) -> int | float:
    point.steps -= 1
    if point.steps < 0:
        raise _Unknown
    match expr:
        case core.Const():
            return expr.value
        case core.VarRef():
            return _variable(point, expr)
        case core.Load():
            return _data(point, expr)
        case core.Unary():
            arg = _value(point, expr.arg)
            return _fit(expr, {"neg": -arg, "not": not arg}.get(expr.op, ~int(arg)))
        case core.Binary():
            return _binary(point, expr)
        case core.Select():
            branch = expr.then if _value(point, expr.cond) else expr.other
            return _value(point, branch)
        case core.Cast():
            return _cast(expr, _value(point, expr.arg))
        case core.Call():
            return _call(expr, _value(point, expr.args[0]))
        case core.Block():
            return _value(point, expr.result)
    raise _Unknown


def _variable(point: _Point, expr: core.VarRef) -> int | float:
    bound = point.prover.ranges.let_value(expr.var)
    if bound is not None:
        return _value(point, bound)
    if expr.var.uid not in point.variables:
        known = point.prover.ranges.variable(expr.var)
        value = _pick(point, int(known.lo), int(known.hi))
        point.variables[expr.var.uid] = value
        point.named[expr.var.name] = value
    return point.variables[expr.var.uid]


def _data(point: _Point, expr: core.Load) -> int | float:
    key = point.prover.forms.key(expr)
    if key not in point.data:
        if expr.dtype.is_float:
            value: int | float = point.draw.choice((0.0, 1.0, -1.0, 1e9, -1e9, 0.5))
        else:
            known = point.prover.ranges.tensor(expr.tensor)
            value = _pick(point, int(known.lo), int(known.hi))
        point.data[key] = value
        point.named[read(expr)] = value
    return point.data[key]


def _binary(point: _Point, expr: core.Binary) -> int | float:
    a = _value(point, expr.left)
    if expr.op in core.BOOL_OPS and bool(a) == (expr.op == "or"):
        return a
    b = _value(point, expr.right)
    match expr.op:
        case "and" | "or":
            return b
        case "add":
            return _fit(expr, a + b)
        case "sub":
            return _fit(expr, a - b)
        case "mul":
            return _fit(expr, a * b)
        case "div":
            return a / b
        case "min" | "max":
            return min(a, b) if expr.op == "min" else max(a, b)
        case "eq" | "ne":
            return (a == b) == (expr.op == "eq")
        case "lt" | "ge":
            return (a < b) == (expr.op == "lt")
        case "le" | "gt":
            return (a <= b) == (expr.op == "le")
        case "pow":
            raise _Unknown
    return _whole(expr, int(a), int(b))


def _whole(expr: core.Binary, a: int, b: int) -> int | float:
    match expr.op:
        case "fdiv":
            return a // b
        case "mod":
            return a % b
        case "shl":
            return _fit(expr, a << (b % expr.dtype.bits))
        case "shr":
            return a >> (b % expr.dtype.bits)
        case "bitand":
            return a & b
        case "bitor":
            return a | b
    return a ^ b


def _fit(expr: core.Expr, value: int | float) -> int | float:
    """A result in its dtype. Overflow of signed integers shows as wrapping here."""
    if expr.dtype.is_int and isinstance(value, int):
        low, high = expr.dtype.int_range
        return (value - low) % (high - low + 1) + low
    return value


def _cast(expr: core.Cast, value: int | float) -> int | float:
    if expr.dtype.is_float:
        return float(value)
    if isinstance(value, float):
        low, high = expr.dtype.int_range
        return min(max(math.trunc(value), low), high)
    return _fit(expr, int(value)) if expr.dtype.is_int else value != 0


def _call(expr: core.Call, value: int | float) -> int | float:
    match expr.fn:
        case "abs":
            return _fit(expr, abs(value))
        case "floor":
            return float(math.floor(value))
        case "ceil":
            return float(math.ceil(value))
        case "trunc":
            return float(math.trunc(value))
        case "rne":
            return float(round(value))
        case "sign":
            return (value > 0) - (value < 0)
    raise _Unknown
