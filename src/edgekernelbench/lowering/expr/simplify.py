"""Simplification of expressions, given the ranges of the variables.

Index arithmetic (s32 and s64 without data in it) is brought into linear form; ``//``, ``%``,
``min``, ``max``, comparisons and conditions are resolved where the ranges decide them. Float
arithmetic is left alone.
"""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.linear import (
    Linear,
    Ranges,
    const_value,
    int_const,
    is_index,
    is_pure,
    linear,
    to_expr,
)
from edgekernelbench.lowering.expr.ranges import range_of, range_of_linear

TRUE = core.Const(True, DType.BOOL)
FALSE = core.Const(False, DType.BOOL)


def simplify(expr: Expr, ranges: Ranges) -> Expr:
    """An expression of the same value wherever the variables stay within ``ranges``."""
    match expr:
        case core.Const():
            return expr
        case core.VarRef(var=var):
            known = ranges.get(var)
            return int_const(known[0], expr.dtype) if known and known[0] == known[1] else expr
        case core.Load(tensor=tensor, indices=indices):
            return core.Load(tensor, tuple(simplify(i, ranges) for i in indices), expr.span)
        case core.Unary(op=op, arg=arg):
            return _unary(op, simplify(arg, ranges), expr)
        case core.Binary():
            left, right = simplify(expr.left, ranges), simplify(expr.right, ranges)
            return simplify_binary(expr, left, right, ranges)
        case core.Call(fn=fn, args=args):
            return core.Call(fn, tuple(simplify(a, ranges) for a in args), expr.dtype, expr.span)
        case core.Select():
            return _select(expr, ranges)
        case core.Cast(arg=arg):
            return _cast(simplify(arg, ranges), expr)
        case core.Block(lets=lets, result=result):
            inner = dict(ranges)
            kept: list[tuple[core.Var, Expr]] = []
            for var, value in lets:
                value = simplify(value, inner)
                kept.append((var, value))
                if not value.dtype.is_float:
                    inner[var] = range_of(value, inner)
            return core.Block(tuple(kept), simplify(result, inner), expr.span)
        case core.Reduce():
            raise TypeError("a reduction inside an expression of the loop program")


def _unary(op: core.UnaryOp, arg: Expr, expr: core.Unary) -> Expr:
    if op == "not" and isinstance(arg, core.Const):
        return FALSE if arg.value else TRUE
    if op == "neg" and is_index(arg) and is_pure(arg):
        return to_expr(linear(arg).times(-1), expr.dtype)
    return core.Unary(op, arg, expr.dtype, expr.span)


def simplify_binary(expr: core.Binary, left: Expr, right: Expr, ranges: Ranges) -> Expr:
    """``left op right`` of already simple operands."""
    op = expr.op
    if op in core.BOOL_OPS:
        return _bool(op, left, right, expr)
    if not left.dtype.is_float and left.dtype is not DType.BOOL:
        if op in core.COMPARE_OPS:
            return _compare(expr, left, right, ranges)
        if is_index(left) and is_index(right):
            folded = _index(op, left, right, expr, ranges)
            if folded is not None:
                return folded
    return core.Binary(op, left, right, expr.dtype, expr.span)


def _index(op: str, left: Expr, right: Expr, expr: core.Binary, ranges: Ranges) -> Expr | None:
    if op in ("add", "sub", "mul") and not (is_pure(left) and is_pure(right)):
        return _fold_neutral(op, left, right)
    a, b = linear(left), linear(right)
    if op in ("min", "max"):
        low, high = range_of_linear(a.minus(b), ranges)
        if high <= 0:
            return left if op == "min" else right
        if low >= 0:
            return right if op == "min" else left
        return None
    if a.is_const and b.is_const:
        folded = _fold(op, a.const, b.const, expr.dtype)
        return None if folded is None else int_const(folded, expr.dtype)
    if op in ("fdiv", "mod") and b.is_const and b.const >= 1:
        return _divide(op, a, b.const, left, expr, ranges)
    if op in ("add", "sub", "mul"):
        if op == "mul":
            if not (a.is_const or b.is_const):
                return None
            form = b.times(a.const) if a.is_const else a.times(b.const)
        else:
            form = a.plus(b, 1 if op == "add" else -1)
        return to_expr(form, expr.dtype)
    return None


def _fold_neutral(op: str, left: Expr, right: Expr) -> Expr | None:
    neutral = 1 if op == "mul" else 0
    if const_value(right) == neutral:
        return left
    return right if op != "sub" and const_value(left) == neutral else None


def _fold(op: str, a: int, b: int, dtype: DType) -> int | None:
    bits = dtype.bits
    match op:
        case "add":
            out = a + b
        case "sub":
            out = a - b
        case "mul":
            out = a * b
        case "fdiv" if b > 0:
            out = a // b
        case "mod" if b > 0:
            out = a % b
        case "bitand":
            out = a & b
        case "bitor":
            out = a | b
        case "bitxor":
            out = a ^ b
        case "shl":
            out = a << (b % bits)
        case "shr":
            out = a >> (b % bits)
        case _:
            return None
    low, high = dtype.int_range
    return out if low <= out <= high else None


def _divide(
    op: str, a: Linear, c: int, left: Expr, expr: core.Binary, ranges: Ranges
) -> Expr | None:
    dtype = expr.dtype
    if not is_pure(left):
        low, high = range_of(left, ranges)
        if low // c == high // c:
            return int_const(low // c, dtype) if op == "fdiv" else None
        return None
    quotient, rest = split_linear(a, c, ranges)
    if op == "mod":
        if quotient is not None:
            return to_expr(rest, dtype)
        coarse, fine, unit = _split_unit(rest, c, ranges)
        if unit > 1:
            inner = _raw_divide("mod", coarse, c // unit, dtype, ranges)
            return to_expr(Linear({inner: unit}).plus(fine), dtype)
        return core.Binary("mod", to_expr(rest, dtype), int_const(c, dtype), dtype, expr.span)
    whole = _whole_part(a, c)
    if quotient is not None:
        return to_expr(quotient, dtype)
    coarse, _, unit = _split_unit(rest, c, ranges)
    inner = _raw_divide("fdiv", coarse, c // unit, dtype, ranges)
    return to_expr(whole.plus(linear(inner)), dtype)


def _raw_divide(op: core.ArithOp, a: Linear, c: int, dtype: DType, ranges: Ranges) -> Expr:
    if c == 1:
        return to_expr(a, dtype) if op == "fdiv" else int_const(0, dtype)
    low, high = range_of_linear(a, ranges)
    if low // c == high // c:
        k = low // c
        return int_const(k, dtype) if op == "fdiv" else to_expr(a.shifted(-k * c), dtype)
    if op == "fdiv" and not a.const and len(a.terms) == 1:
        ((atom, coefficient),) = a.terms.items()
        if coefficient == 1 and isinstance(atom, core.Binary) and atom.op == "fdiv":
            inner = const_value(atom.right)
            if inner is not None and inner > 0:
                return core.Binary("fdiv", atom.left, int_const(inner * c, dtype), dtype)
    return core.Binary(op, to_expr(a, dtype), int_const(c, dtype), dtype)


def _whole_part(a: Linear, c: int) -> Linear:
    terms = {atom: k // c for atom, k in a.terms.items() if k % c == 0}
    return Linear(terms, a.const // c)


def split_linear(a: Linear, c: int, ranges: Ranges) -> tuple[Linear | None, Linear]:
    """``a // c`` and ``a % c`` as linear forms; the quotient is None when it has none.

    Then the second form is ``a`` less its terms that are multiples of ``c``.
    """
    rest = Linear({atom: k for atom, k in a.terms.items() if k % c}, a.const % c)
    low, high = range_of_linear(rest, ranges)
    if low // c != high // c:
        return None, rest
    k = low // c
    return _whole_part(a, c).shifted(k), rest.shifted(-k * c)


def _split_unit(rest: Linear, c: int, ranges: Ranges) -> tuple[Linear, Linear, int]:
    """``rest = unit * coarse + fine`` with ``0 <= fine < unit`` and ``unit`` dividing ``c``."""
    for unit in sorted({abs(k) for k in rest.terms.values()}, reverse=True):
        if unit <= 1 or c % unit:
            continue
        big = {atom: k // unit for atom, k in rest.terms.items() if k % unit == 0}
        small = Linear({a: k for a, k in rest.terms.items() if k % unit}, rest.const % unit)
        low, high = range_of_linear(small, ranges)
        if low >= 0 and high < unit:
            return Linear(big, rest.const // unit), small, unit
    return rest, Linear(), 1


def _compare(expr: core.Binary, left: Expr, right: Expr, ranges: Ranges) -> Expr:
    if left.dtype is DType.U32 or not (is_index(left) and is_index(right)):
        (a, b), (c, d) = range_of(left, ranges), range_of(right, ranges)
        low, high = a - d, b - c
    else:
        low, high = range_of_linear(linear(left).minus(linear(right)), ranges)
    verdict = decide(expr.op, low, high)
    if verdict is None:
        return core.Binary(expr.op, left, right, DType.BOOL, expr.span)
    return TRUE if verdict else FALSE


def decide(op: str, low: int, high: int) -> bool | None:
    """Whether ``difference op 0`` holds for all, for none, or for some of low..high (None)."""
    match op:
        case "lt":
            return True if high < 0 else False if low >= 0 else None
        case "le":
            return True if high <= 0 else False if low > 0 else None
        case "gt":
            return True if low > 0 else False if high <= 0 else None
        case "ge":
            return True if low >= 0 else False if high < 0 else None
        case "eq":
            return True if low == high == 0 else False if low > 0 or high < 0 else None
        case "ne":
            return False if low == high == 0 else True if low > 0 or high < 0 else None
    return None


def _bool(op: str, left: Expr, right: Expr, expr: core.Binary) -> Expr:
    absorbing = op == "or"
    for this, that in ((left, right), (right, left)):
        if isinstance(this, core.Const):
            return this if bool(this.value) == absorbing else that
    return core.Binary(expr.op, left, right, DType.BOOL, expr.span)


def _select(expr: core.Select, ranges: Ranges) -> Expr:
    cond = simplify(expr.cond, ranges)
    if isinstance(cond, core.Const):
        return simplify(expr.then if cond.value else expr.other, ranges)
    then, other = simplify(expr.then, ranges), simplify(expr.other, ranges)
    return core.Select(cond, then, other, expr.dtype, expr.border, expr.span)


def _cast(arg: Expr, expr: core.Cast) -> Expr:
    if arg.dtype is expr.dtype:
        return arg
    if expr.dtype is DType.F16 and isinstance(arg, core.Cast) and arg.arg.dtype is DType.F16:
        return arg.arg  # widened and back
    value = const_value(arg)
    if value is not None and arg.dtype is not DType.BOOL:
        if expr.dtype.is_float:
            # Beyond 2**11 an f16 (2**24 an f32) might round: leave that to the target.
            return (
                core.Const(float(value), expr.dtype)
                if abs(value) <= 2048
                else core.Cast(arg, expr.dtype, expr.span)
            )
        if expr.dtype.is_int:
            low, high = expr.dtype.int_range
            if low <= value <= high:
                return core.Const(value, expr.dtype)
    return core.Cast(arg, expr.dtype, expr.span)
