"""Value ranges of integer expressions. Overflow of the dtype means: nothing is known."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr
from edgekernelbench.lowering.expr.linear import Linear, Range, Ranges, is_index, is_pure, linear


def range_of(expr: Expr, ranges: Ranges) -> Range:
    """Lowest and highest value of an integer or bool expression.

    Variables without a range, and arithmetic that might leave the dtype, get the dtype's range.
    """
    whole = expr.dtype.int_range
    found = _range(expr, ranges)
    if found is None or found[0] < whole[0] or found[1] > whole[1]:
        return whole
    return found


def range_of_linear(form: Linear, ranges: Ranges) -> Range:
    """The range of a linear form, in unbounded integers."""
    low = high = form.const
    for atom, coefficient in form.terms.items():
        a, b = range_of(atom, ranges)
        low += coefficient * (a if coefficient > 0 else b)
        high += coefficient * (b if coefficient > 0 else a)
    return low, high


def exact_range(expr: Expr, ranges: Ranges) -> Range | None:
    """Like `range_of`, but of the result before it is cut to the dtype; None if unknown."""
    return _range(expr, ranges)


def _range(expr: Expr, ranges: Ranges) -> Range | None:
    match expr:
        case core.Const(value=value):
            return int(value), int(value)
        case core.VarRef(var=var):
            return ranges.get(var)
        case core.Load(tensor=tensor):
            return None if tensor.dtype.is_float else tensor.dtype.int_range
        case core.Unary(op="neg", arg=arg):
            low, high = range_of(arg, ranges)
            return -high, -low
        case core.Binary():
            return _binary(expr, ranges)
        case core.Select(then=then, other=other):
            return _hull(range_of(then, ranges), range_of(other, ranges))
        case core.Cast(arg=arg) if not arg.dtype.is_float:
            return range_of(arg, ranges)
        case core.Call(fn="abs", args=(arg,)):
            low, high = range_of(arg, ranges)
            return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
        case core.Call(fn="sign"):
            return -1, 1
        case core.Call(fn="popcount", args=(arg,)):
            return 0, arg.dtype.bits
        case _:
            return None


def _binary(expr: core.Binary, ranges: Ranges) -> Range | None:
    if expr.op in core.COMPARE_OPS or expr.op in core.BOOL_OPS:
        return 0, 1
    if expr.op in ("add", "sub") and is_index(expr) and is_pure(expr):
        return range_of_linear(linear(expr), ranges)
    a, b = range_of(expr.left, ranges), range_of(expr.right, ranges)
    match expr.op:
        case "add":
            return a[0] + b[0], a[1] + b[1]
        case "sub":
            return a[0] - b[1], a[1] - b[0]
        case "mul":
            corners = [x * y for x in a for y in b]
            return min(corners), max(corners)
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case "fdiv" if b[0] >= 1:
            corners = [x // y for x in a for y in b]
            return min(corners), max(corners)
        case "mod" if b[0] >= 1:
            if a[0] >= 0:
                return 0, min(a[1], b[1] - 1)
            return 0, b[1] - 1
        case "bitand":
            return _bitand(a, b)
        case "shr" if b[0] >= 0 and b[1] < expr.dtype.bits:
            corners = [x >> y for x in a for y in b]
            return min(corners), max(corners)
        case "shl" if b[0] >= 0 and b[1] < expr.dtype.bits and a[0] >= 0:
            return a[0] << b[0], a[1] << b[1]
        case "bitor" | "bitxor" if a[0] >= 0 and b[0] >= 0:
            return 0, (1 << max(a[1].bit_length(), b[1].bit_length())) - 1
        case _:
            return None


def _bitand(a: Range, b: Range) -> Range | None:
    known = [high for low, high in (a, b) if low >= 0]
    return (0, min(known)) if known else None


def _hull(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), max(a[1], b[1])
