"""Operators on values: compile-time numbers are computed, everything else becomes core nodes."""

from __future__ import annotations

import math
from typing import Literal

from edgekernelbench.ir import core
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.elaborate import build, coerce, rules, safe
from edgekernelbench.ir.elaborate.context import Context
from edgekernelbench.ir.elaborate.values import POISON, Number, Poison, Scalar

Result = Scalar | Poison
Operand = Scalar | Poison

ARITHMETIC = {
    "+": "add", "-": "sub", "*": "mul", "//": "fdiv", "%": "mod", "&": "bitand", "|": "bitor",
    "^": "bitxor", "<<": "shl", ">>": "shr",
}  # fmt: skip
COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_INT_ONLY = ("fdiv", "mod", "bitand", "bitor", "bitxor", "shl", "shr")
_SIGN = {v: k for k, v in (ARITHMETIC | COMPARE).items()}


def ghost(cx: Context, *values: Operand) -> Result:
    """The stand-in for a result with a poisoned operand.

    While dtypes are inferred it has the dtype that the other operands suggest.
    """
    if not cx.inferring:
        return POISON
    dtype: DType | None = None
    number: Number | None = None
    unknown = False
    for value in values:
        if value is POISON:
            unknown = True
            continue
        if isinstance(value, Number):
            number = value
            continue
        wide = value.dtype.promoted
        dtype = wide if dtype is None else _quiet_join(dtype, wide)
    if dtype is not None:
        literal = number is not None and isinstance(number.value, float) and not dtype.is_float
        if literal or (unknown and dtype is DType.F16):  # what is not known yet is no f16: a read
            dtype = DType.F32
        return core.Const(0.0 if dtype.is_float else 0, dtype)
    return POISON if number is None else number


def _quiet_join(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if a.is_float or b.is_float:
        return DType.F64 if DType.F64 in (a, b) else DType.F32
    return DType.U32 if DType.U32 in (a, b) else DType.S64


def ghost_of(cx: Context, dtype: DType) -> Result:
    """As `ghost`, where the result's dtype is known whatever the operands are."""
    if not cx.inferring:
        return POISON
    return core.Const(build.convert(0, dtype), dtype)


# ---------------------------------------------------------------- arithmetic
def arith(cx: Context, op: str, a: Operand, b: Operand, span: Span) -> Result:
    """``op`` is the core's name of an operator other than a comparison, and, or."""
    if a is POISON or b is POISON:
        return ghost_of(cx, DType.F32) if op in ("div", "pow") else ghost(cx, a, b)
    if isinstance(a, Number) and isinstance(b, Number):
        return _fold(cx, op, a.value, b.value, span)
    if op in ("shl", "shr"):
        return _shift(cx, op, a, b, span)
    if op in ("div", "pow"):
        return _float_op(cx, op, a, b, span)
    if op in ("bitand", "bitor", "bitxor") and _all_bool(a, b):
        return _bool_bits(cx, op, a, b, span)
    found = coerce.unify(cx, a, b, span)
    if found is None:
        return ghost(cx, a, b)
    left, right, dtype = found
    if dtype.is_float and op in _INT_ONLY:
        return _needs_ints(cx, op, span)
    return build.binary(cx, op, left, right, dtype, span)


def _all_bool(*values: Scalar) -> bool:
    return all(
        isinstance(v.value, bool) if isinstance(v, Number) else v.dtype is DType.BOOL
        for v in values
    )


def _bool_bits(cx: Context, op: str, a: Scalar, b: Scalar, span: Span) -> core.Expr:
    left, right = coerce.express(cx, a, span), coerce.express(cx, b, span)
    name = {"bitand": "and", "bitor": "or", "bitxor": "ne"}[op]
    cx.count(span)
    return core.Binary(name, left, right, DType.BOOL, span)  # type: ignore[arg-type]


def _needs_ints(cx: Context, op: str, span: Span) -> Poison:
    sign = _SIGN[op]
    help = {
        "fdiv": ["for floats: `floor(a / b)`", "for an integer: cast it first, `s32(a) // b`"],
        "mod": [
            "for floats: `a - b * floor(a / b)`",
            "for an integer: cast it first, `s32(a) % b`",
        ],
    }.get(op, ["cast the float: `s32(a)`, or `u32(a)`"])
    return cx.error(
        rules.OPERANDS, f"`{sign}` takes integers, and one operand is a float", span, help
    )


def _shift(cx: Context, op: str, a: Scalar, b: Scalar, span: Span) -> Result:
    left = coerce.widen(cx, coerce.express(cx, a, span))
    amount = coerce.widen(cx, coerce.express(cx, b, span))
    if left.dtype.is_float or amount.dtype.is_float:
        return _needs_ints(cx, op, span)
    return build.binary(cx, op, left, amount, left.dtype, span)


def to_float(cx: Context, value: Scalar, span: Span, *others: Scalar) -> core.Expr:
    """An operand of an operation on floats: f64 where one is, f16 where all are, else f32."""
    given = [v.dtype for v in (value, *others) if not isinstance(v, Number)]
    dtype = DType.F64 if DType.F64 in given else DType.F32
    if given and all(d is DType.F16 for d in given):
        dtype = DType.F16
    if dtype is DType.F16 and isinstance(value, Number) and not coerce.fits_f16(value.value):
        coerce.beyond_f16(cx, value.value, span)
    return build.cast(cx, coerce.express(cx, value, span), dtype, span)


def _float_op(cx: Context, op: str, a: Scalar, b: Scalar, span: Span) -> Result:
    left, right = to_float(cx, a, span, b), to_float(cx, b, span, a)
    return build.binary(cx, op, left, right, left.dtype, span)


def power(cx: Context, a: Operand, b: Operand, span: Span) -> Result:
    """``a ** b``: a small whole exponent multiplies, any other is `pow` on floats."""
    if a is POISON or b is POISON:
        return ghost(cx, a) if isinstance(b, Number) else ghost_of(cx, DType.F32)
    if isinstance(a, Number) and isinstance(b, Number):
        return _fold(cx, "pow", a.value, b.value, span)
    exponent = b.value if isinstance(b, Number) else None
    if isinstance(exponent, float) and exponent.is_integer():
        exponent = int(exponent) if abs(exponent) <= 8 else exponent
    if isinstance(exponent, int) and 1 <= exponent <= 8 and not isinstance(a, Number):
        return _repeated(cx, coerce.widen(cx, a), exponent, span)
    if not isinstance(a, Number) and a.dtype.is_int and not isinstance(exponent, float):
        return cx.error(
            rules.OPERANDS,
            "`**` of an integer takes an exponent from 1 to 8 that is known at compile time",
            span,
            ["cast the base for a float power: `f32(a) ** b`", "`1 << n` is 2 to the n"],
        )
    return _float_op(cx, "pow", a, b, span)


def _repeated(cx: Context, base: core.Expr, exponent: int, span: Span) -> core.Expr:
    """Binary powering of a base that is computed once."""
    lets: tuple[tuple[core.Var, core.Expr], ...] = ()
    if not build.is_cheap(base) and exponent > 1:
        var = bind(cx, "base", base)
        lets, base = ((var, base),), core.VarRef(var, span)
    result: core.Expr | None = None
    square = base
    while exponent:
        if exponent & 1:
            result = square if result is None else _mul(cx, result, square, span)
        exponent >>= 1
        if exponent:
            if not isinstance(square, core.VarRef):
                var = bind(cx, "square", square)
                lets, square = (*lets, (var, square)), core.VarRef(var, span)
            square = _mul(cx, square, square, span)
    assert result is not None
    return core.Block(lets, result, span) if lets else result


def _mul(cx: Context, a: core.Expr, b: core.Expr, span: Span) -> core.Expr:
    return build.binary(cx, "mul", a, b, a.dtype, span)


def bind(cx: Context, name: str, value: core.Expr) -> core.Var:
    """A fresh let variable for ``value``; the caller puts it into a block."""
    var = cx.fresh(name, value.dtype)
    cx.prover.forms.bind_let(var, value)
    cx.count(value.span)
    return var


# ---------------------------------------------------------------- compile-time numbers
def _fold(cx: Context, op: str, a: int | float | bool, b: int | float | bool, span: Span) -> Result:
    a, b = (int(v) if isinstance(v, bool) else v for v in (a, b))
    ints = isinstance(a, int) and isinstance(b, int)
    if op in _INT_ONLY and not ints:
        return _needs_ints(cx, op, span)
    try:
        value = _compute(op, a, b)
    except (ZeroDivisionError, OverflowError, ValueError):
        value = None
    return _number(cx, value, span)


def _compute(op: str, a: int | float, b: int | float) -> int | float | None:
    match op:
        case "div":
            return a / b
        case "pow":
            if isinstance(a, int) and isinstance(b, int) and (b < 0 or a.bit_length() * b > 70):
                return math.pow(a, b) if b < 0 else None
            result = a**b
            return None if isinstance(result, complex) else result
    if isinstance(a, int) and isinstance(b, int):
        return build.fold_int(op, a, b)
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
    return None


def _number(cx: Context, value: int | float | None, span: Span) -> Result:
    if value is None or value != value:
        return cx.error(rules.ARITHMETIC, "this number cannot be computed", span)
    if isinstance(value, int) and not coerce.S64_LOW <= value <= coerce.S64_HIGH:
        return cx.error(rules.ARITHMETIC, "this number does not fit 64 bits", span)
    return Number(value)


# ---------------------------------------------------------------- unary, comparison, logic
def negate(cx: Context, a: Operand, span: Span) -> Result:
    if a is POISON:
        return POISON
    if isinstance(a, Number):
        return _number(cx, -a.value, span)
    arg = coerce.widen(cx, a)
    cx.count(span)
    return core.Unary("neg", arg, arg.dtype, span)


def invert(cx: Context, a: Operand, span: Span) -> Result:
    if a is POISON:
        return POISON
    if isinstance(a, Number) and isinstance(a.value, int) and not isinstance(a.value, bool):
        return Number(~a.value)
    if isinstance(a, Number) or a.dtype.is_float or a.dtype is DType.BOOL:
        return cx.error(
            rules.OPERANDS, "`~` takes an integer", span, ["`not a` negates a condition"]
        )
    arg = coerce.widen(cx, a)
    cx.count(span)
    return core.Unary("inv", arg, arg.dtype, span)


def compare(cx: Context, sign: str, a: Operand, b: Operand, span: Span) -> Result:
    if a is POISON or b is POISON:
        return ghost_of(cx, DType.BOOL)
    op = COMPARE[sign]
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(_decide(op, a.value, b.value))
    found = coerce.unify(cx, a, b, span)
    if found is None:
        return ghost_of(cx, DType.BOOL)
    left, right = safe.compared(cx, found[0], found[1])
    return build.binary(cx, op, left, right, DType.BOOL, span)


def _decide(op: str, a: int | float, b: int | float) -> bool:
    match op:
        case "eq":
            return a == b
        case "ne":
            return a != b
        case "lt":
            return a < b
        case "le":
            return a <= b
        case "gt":
            return a > b
        case _:
            return a >= b


def logic(cx: Context, op: Literal["and", "or"], a: Operand, b: Operand, span: Span) -> Result:
    """Both operands are conditions (see `coerce.condition`).

    Where the right one reads at an index that is not safe by itself, the left one guards it.
    """
    if a is POISON or b is POISON:
        return ghost_of(cx, DType.BOOL)
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Number):
            decided = bool(x.value) == (op == "or")
            return x if decided else y
    assert not isinstance(a, Number) and not isinstance(b, Number)
    cx.count(span)
    if has_unguarded_read(cx, b):
        constant = core.Const(op == "or", DType.BOOL, span)
        then, other = (b, constant) if op == "and" else (constant, b)
        return core.Select(a, then, other, DType.BOOL, False, span)
    return core.Binary(op, a, b, DType.BOOL, span)


def has_unguarded_read(cx: Context, expr: core.Expr) -> bool:
    for node in core.walk(expr):
        if isinstance(node, core.Load):
            for extent, index in zip(node.tensor.shape, node.indices, strict=True):
                if not cx.ranges.of(index).within(0, extent - 1):
                    return True
    return False


def negation(cx: Context, a: Operand, span: Span) -> Result:
    if a is POISON:
        return ghost_of(cx, DType.BOOL)
    if isinstance(a, Number):
        return Number(not a.value)
    cx.count(span)
    return core.Unary("not", a, DType.BOOL, span)


def choose(cx: Context, cond: Operand, then: Operand, other: Operand, span: Span) -> Result:
    """``then if cond else other``; a condition known at compile time picks its branch."""
    if cond is POISON or then is POISON or other is POISON:
        return ghost(cx, then, other)
    if isinstance(cond, Number) and isinstance(then, Number) and isinstance(other, Number):
        return then if cond.value else other
    pair = coerce.branches(cx, then, other, span)
    if pair is None:
        return ghost(cx, then, other)
    if isinstance(cond, Number):
        return pair[0] if cond.value else pair[1]
    cx.count(span)
    return core.Select(cond, pair[0], pair[1], pair[0].dtype, False, span)


def convert(cx: Context, a: Operand, dtype: DType, span: Span) -> Result:
    """A cast as written. A number keeps being one where the dtype does not change its value."""
    if a is POISON:
        return ghost_of(cx, dtype)
    cx.count(span)
    if isinstance(a, Number):
        return build.const(build.convert(a.value, dtype), dtype, span)
    return build.cast(cx, a, dtype, span)
