"""Integer and float formulas of the suite's tables, evaluated without Python's ``eval``.

A formula is a Python expression over named numbers, the operators ``+ - * / // % **`` and the
functions of `FUNCTIONS`, for example ``(H+2*pad-R)//stride+1`` or ``cv(OH,OW,K,C,3,3)``. It comes
from anyone's table, so its length and its numbers are bounded: ``9**9**9`` must not hang.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache

Number = int | float

MAX_LENGTH = 4096
"""Characters of a formula."""
_MAX_INT = 2**63
_MAX_EXPONENT = 64


def _conv(oh: int, ow: int, k: int, c: int, r: int, s: int) -> int:
    """Operations of a dense convolution; a multiply-add counts 2."""
    return 2 * oh * ow * k * c * r * s


def _depthwise(oh: int, ow: int, c: int, r: int, s: int) -> int:
    return 2 * oh * ow * c * r * s


def _matmul(m: int, n: int, k: int) -> int:
    return 2 * m * n * k


FUNCTIONS: dict[str, Callable[..., Number]] = {
    "cv": _conv,
    "dw": _depthwise,
    "mm": _matmul,
    "log2": math.log2,
    "int": int,
    "min": min,
    "max": max,
}


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > _MAX_EXPONENT:
        raise OverflowError(f"an exponent beyond {_MAX_EXPONENT}")
    return base**exponent


_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}


def evaluate(formula: str, names: Mapping[str, Number]) -> Number:
    """The value of ``formula``: real and finite.

    Raises:
        ValueError: the formula uses an unknown name or something that is not a formula, or it has
            no such value.
    """
    try:
        return _value(_parse(formula), names, formula)
    except RecursionError as error:
        raise ValueError(f"formula {_short(formula)} is nested too deep") from error
    except (TypeError, ArithmeticError) as error:
        told = f"{type(error).__name__}: {error}"
        raise ValueError(f"formula {_short(formula)}: {told}") from error


def names_in(formula: str) -> frozenset[str]:
    """The names of numbers that ``formula`` uses.

    Raises:
        ValueError: it is no Python expression.
    """
    nodes = ast.walk(_parse(formula))
    return frozenset(n.id for n in nodes if isinstance(n, ast.Name)) - set(FUNCTIONS)


@lru_cache(maxsize=4096)
def _parse(formula: str) -> ast.expr:
    if len(formula) > MAX_LENGTH:
        raise ValueError(f"formula {_short(formula)} is longer than {MAX_LENGTH} characters")
    try:
        return ast.parse(formula.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"not a formula: {_short(formula)}") from error


def _value(node: ast.expr, names: Mapping[str, Number], formula: str) -> Number:
    value = _computed(node, names, formula)
    if isinstance(value, complex):
        raise ValueError(f"formula {_short(formula)} has no real value")
    if isinstance(value, int):
        if abs(value) > _MAX_INT:
            raise ValueError(f"formula {_short(formula)} has numbers beyond 64 bits")
    elif not math.isfinite(value):
        raise ValueError(f"formula {_short(formula)} has no finite value")
    return value


def _computed(node: ast.expr, names: Mapping[str, Number], formula: str) -> Number | complex:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Name(id=name):
            raise ValueError(f"unknown name {name!r} in formula {_short(formula)}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names, formula)
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, names, formula), _value(right, names, formula))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            numbers = [_value(arg, names, formula) for arg in args]
            try:
                return FUNCTIONS[name](*numbers)
            except (TypeError, ValueError) as error:
                told = str(error).removeprefix("_")
                raise ValueError(f"formula {_short(formula)}: {name}: {told}") from error
    raise ValueError(f"{ast.unparse(node)[:80]!r} is not allowed in formula {_short(formula)}")


def _short(formula: str) -> str:
    return repr(formula) if len(formula) <= 200 else f"{formula[:80]!r}..."
