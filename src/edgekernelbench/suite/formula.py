"""Integer and float formulas of the suite's tables, evaluated without Python's ``eval``.

A formula is a Python expression over named numbers, the operators ``+ - * / // % **`` and the
functions of `FUNCTIONS`, for example ``(H+2*pad-R)//stride+1`` or ``cv(OH,OW,K,C,3,3)``.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache

Number = int | float


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

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def evaluate(formula: str, names: Mapping[str, Number]) -> Number:
    """The value of ``formula``.

    Raises:
        ValueError: the formula uses an unknown name or something that is not a formula.
    """
    return _value(_parse(formula), names, formula)


def names_in(formula: str) -> frozenset[str]:
    """The names of numbers that ``formula`` uses.

    Raises:
        ValueError: it is no Python expression.
    """
    nodes = ast.walk(_parse(formula))
    return frozenset(n.id for n in nodes if isinstance(n, ast.Name)) - set(FUNCTIONS)


@lru_cache(maxsize=4096)
def _parse(formula: str) -> ast.expr:
    try:
        return ast.parse(formula.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"not a formula: {formula!r}") from error


def _value(node: ast.expr, names: Mapping[str, Number], formula: str) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Name(id=name):
            raise ValueError(f"unknown name {name!r} in formula {formula!r}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names, formula)
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, names, formula), _value(right, names, formula))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(arg, names, formula) for arg in args))
    raise ValueError(f"{ast.unparse(node)!r} is not allowed in formula {formula!r}")
