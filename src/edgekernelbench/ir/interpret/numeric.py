"""Scalar semantics in NumPy: dtypes of a mode, casts, operators and intrinsics.

Every function works on NumPy scalars and arrays alike. Integers are computed in their declared
dtype and wrap; floats in float64 (mode ``f64``) or in their declared dtype (``declared``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.interpret.fma import fma
from edgekernelbench.ir.interpret.frame import InterpretError, Value

Mode = Literal["f64", "declared"]
Unary = Callable[[Value], Value]
Binary = Callable[[Value, Value], Value]

_F64 = np.dtype(np.float64)


def numpy_dtype(dtype: DType, mode: Mode) -> np.dtype:
    """The NumPy dtype in which values of ``dtype`` are held in a mode."""
    return _F64 if mode == "f64" and dtype.is_float else dtype.numpy


# ---------------------------------------------------------------- casts
def cast(source: DType, target: DType, mode: Mode) -> Unary | None:
    """The conversion between two dtypes, or None when it changes nothing."""
    goal = numpy_dtype(target, mode)
    if target is DType.BOOL:
        return None if source is DType.BOOL else lambda x: x != 0
    if source.is_float and not target.is_float:
        return _truncation(target, goal)
    if numpy_dtype(source, mode) == goal:
        return None
    return lambda x: x.astype(goal)


def _truncation(target: DType, goal: np.dtype) -> Unary:
    low, high = target.int_range
    make = goal.type

    def convert(x: Value) -> Value:
        if not isinstance(x, np.ndarray):
            return make(_truncate_one(float(x), low, high))
        wide = x.astype(np.float64)
        wide[np.isnan(wide)] = 0.0
        inside = np.clip(wide, low, high).astype(np.int64)
        if high >= 1 << 53:  # float(high) lies above high, where the conversion is undefined
            inside[wide >= float(high)] = high
        return inside.astype(goal)

    return convert


def _truncate_one(x: float, low: int, high: int) -> int:
    if x != x:
        return 0
    return low if x <= low else high if x >= high else int(x)


# ---------------------------------------------------------------- operators
_BINARY: dict[str, Binary] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "fdiv": operator.floordiv, "mod": operator.mod, "min": np.minimum, "max": np.maximum,
    "bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def binary(op: str, dtype: DType) -> Binary:
    """The operator on operands of ``dtype`` (of the left one for shifts), unguarded.

    Integer division by zero gives 0 and a negative integer exponent 1 or 0: callers check
    active lanes. ``and`` and ``or`` are lazy and live elsewhere.
    """
    if op in ("shl", "shr"):
        return _shift(operator.lshift if op == "shl" else operator.rshift, dtype)
    if op == "pow":
        return np.power if dtype.is_float else _integer_power
    if op not in _BINARY:
        raise InterpretError(f"unknown operator '{op}'")
    return _BINARY[op]


def _shift(shift: Binary, dtype: DType) -> Binary:
    mask = dtype.bits - 1
    width = dtype.numpy
    return lambda x, amount: shift(x, (amount & mask).astype(width))


def _integer_power(x: Value, exponent: Value) -> Value:
    return np.power(x, np.maximum(exponent, 0))


def unary(op: str, dtype: DType) -> Unary:
    match op:
        case "neg":
            return operator.neg
        case "not":
            return np.logical_not
        case "inv":
            return np.logical_not if dtype is DType.BOOL else operator.invert
    raise InterpretError(f"unknown operator '{op}'")


# ---------------------------------------------------------------- intrinsics
def _popcount(x: Value) -> Value:
    # bitwise_count counts the bits of the absolute value, so look at the bits as unsigned.
    unsigned = np.asarray(x).view(f"u{x.dtype.itemsize}")
    return np.bitwise_count(unsigned).astype(x.dtype)[()]


def _rsqrt(x: Value) -> Value:
    return x.dtype.type(1) / np.sqrt(x)


def _erf(x: Value) -> Value:
    from scipy.special import erf

    return erf(x)


def _in_f32(fn: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """``fn`` with f16 computed in f32 and rounded once."""

    def apply(x: Value) -> Value:
        return fn(x.astype(np.float32)).astype(x.dtype) if x.dtype.itemsize == 2 else fn(x)

    return apply


_INTRINSICS: dict[str, Callable[..., Any]] = {
    "abs": operator.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "rne": np.rint, "sqrt": np.sqrt, "rsqrt": _in_f32(_rsqrt),
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "tanh": np.tanh, "erf": _in_f32(_erf), "atan": np.arctan, "atan2": np.arctan2,
    "popcount": _popcount, "fma": fma, "nofma": lambda x: x,
    "fast_exp": np.exp, "fast_tanh": np.tanh, "fast_erf": _in_f32(_erf),
}  # fmt: skip


def intrinsic(fn: str) -> Callable[..., Any]:
    if fn not in _INTRINSICS:
        raise InterpretError(f"unknown intrinsic '{fn}'")
    return _INTRINSICS[fn]
