"""Predefined macros: what `relu`, `gelu`, `reflect` and the others stand for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.elaborate import coerce, ops, rules
from edgekernelbench.ir.elaborate.context import Context
from edgekernelbench.ir.elaborate.values import POISON, Number, Poison, Scalar

Value = Scalar | Poison


@dataclass(frozen=True, slots=True)
class Calc:
    """Short names for building an expression at one place of the text."""

    cx: Context
    span: Span

    def op(self, name: str, a: Value, b: Value | float) -> Value:
        return ops.arith(self.cx, name, a, self._value(b), self.span)

    def call(self, fn: str, a: Value) -> Value:
        return intrinsic(self.cx, fn, (a,), self.span)

    def clip(self, a: Value, lo: float, hi: float) -> Value:
        return self.op("min", self.op("max", a, lo), hi)

    def choose(self, sign: str, a: Value, b: float, then: Value, other: Value) -> Value:
        cond = ops.compare(self.cx, sign, a, Number(b), self.span)
        return ops.choose(self.cx, cond, then, other, self.span)

    def neg(self, a: Value) -> Value:
        return ops.negate(self.cx, a, self.span)

    @staticmethod
    def _value(value: Value | float) -> Value:
        return Number(value) if isinstance(value, int | float) else value


def _sigmoid(c: Calc, x: Value, exp: str = "exp") -> Value:
    return c.op("div", Number(1), c.op("add", c.call(exp, c.neg(x)), 1))


def _gelu(c: Calc, x: Value) -> Value:
    return c.op(
        "mul", c.op("mul", x, 0.5), c.op("add", c.call("erf", c.op("mul", x, math.sqrt(0.5))), 1)
    )


def _hsigmoid(c: Calc, x: Value) -> Value:
    return c.op("div", c.clip(c.op("add", x, 3), 0, 6), 6)


def _softplus(c: Calc, x: Value) -> Value:
    tail = c.call("log", c.op("add", c.call("exp", c.neg(c.call("abs", x))), 1))
    return c.op("add", c.op("max", x, 0), tail)


def _elu(c: Calc, x: Value, a: Value) -> Value:
    return c.choose(">", x, 0, x, c.op("mul", c.op("sub", c.call("exp", x), 1), a))


def _reflect(c: Calc, i: Value, n: Value) -> Value:
    """Mirrored at the first and last element, which are not repeated; always in 0..n-1."""
    for value in (i, n):
        if value is not POISON and not isinstance(value, Number) and value.dtype.is_float:
            return c.cx.error(rules.INDEX_TYPE, "`reflect` takes integers", c.span)
    last = c.op("sub", n, 1)
    if i is POISON or last is POISON:
        return ops.ghost(c.cx, i)
    i = coerce.express(c.cx, i, c.span)
    known = c.cx.ranges.of(i)
    near = isinstance(last, Number) and known.within(-last.value, 2 * last.value)
    if not near:
        i = c.op("min", c.op("max", i, c.neg(last)), c.op("mul", last, 2))  # type: ignore[assignment]
    return c.op("sub", last, c.call("abs", c.op("sub", last, c.call("abs", i))))


MACROS: dict[str, tuple[int, int, Callable[..., Value]]] = {
    "relu": (1, 1, lambda c, x: c.op("max", x, 0)),
    "relu6": (1, 1, lambda c, x: c.clip(x, 0, 6)),
    "sigmoid": (1, 1, _sigmoid),
    "fast_sigmoid": (1, 1, lambda c, x: _sigmoid(c, x, "fast_exp")),
    "silu": (1, 1, lambda c, x: c.op("mul", x, _sigmoid(c, x))),
    "gelu": (1, 1, _gelu),
    "hsigmoid": (1, 1, _hsigmoid),
    "hswish": (1, 1, lambda c, x: c.op("mul", x, _hsigmoid(c, x))),
    "softplus": (1, 1, _softplus),
    "leaky_relu": (2, 2, lambda c, x, a: c.choose(">=", x, 0, x, c.op("mul", x, a))),
    "elu": (1, 2, lambda c, x, a=Number(1): _elu(c, x, a)),  # noqa: B008
    "sq": (1, 1, lambda c, x: c.op("mul", x, x)),
    "reflect": (2, 2, _reflect),
}
"""Name: least and most arguments, and the expression. Arguments are bound before."""

SINGLE_USE = frozenset(("relu", "relu6", "sigmoid", "fast_sigmoid", "hsigmoid"))
"""Macros that use their argument once, so that it need not be bound."""


# ---------------------------------------------------------------- intrinsics
_ANY_NUMBER = ("abs", "sign", "popcount")
_FOLD: dict[str, Callable[[float], float]] = {
    "floor": lambda x: float(math.floor(x)),
    "ceil": lambda x: float(math.ceil(x)),
    "trunc": lambda x: float(math.trunc(x)),
    "rne": lambda x: float(round(x)),
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "log": math.log,
    "log2": math.log2,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "tanh": math.tanh,
    "erf": math.erf,
    "atan": math.atan,
    "fast_exp": math.exp,
    "fast_tanh": math.tanh,
    "fast_erf": math.erf,
}


def intrinsic(cx: Context, fn: str, args: tuple[Value, ...], span: Span) -> Value:
    """A call of one of `core.INTRINSICS` with the right number of arguments."""
    known = [a for a in args if a is not POISON]
    if len(known) < len(args):
        return ops.ghost(cx, *args) if fn in _ANY_NUMBER else ops.ghost_of(cx, DType.F32)
    first = known[0]
    if len(known) > 1:
        floats = tuple(ops.to_float(cx, a, span, *known) for a in known)
        cx.count(span)
        return core.Call(fn, floats, floats[0].dtype, span)
    if isinstance(first, Number) and fn != "popcount":
        return _fold(cx, fn, first, span)
    if fn not in _ANY_NUMBER:
        arg = ops.to_float(cx, first, span)
    else:
        arg = coerce.widen(cx, coerce.express(cx, first, span))
    if fn == "popcount" and arg.dtype.is_float:
        return cx.error(rules.OPERANDS, "`popcount` takes an integer", span)
    cx.count(span)
    return core.Call(fn, (arg,), DType.S32 if fn == "popcount" else arg.dtype, span)


def _fold(cx: Context, fn: str, number: Number, span: Span) -> Value:
    value = number.value
    if fn == "abs":
        return Number(abs(value))
    if fn == "sign":
        return Number(type(value)(0 if value == 0 else 1 if value > 0 else -1))
    try:
        result = _FOLD[fn](float(value))
    except (ValueError, OverflowError, ZeroDivisionError):
        return cx.error(rules.ARITHMETIC, f"`{fn}` of {value} is not a finite number", span)
    return Number(result)
