"""Scalar operations in TIR with exactly the meaning that `edgekernelbench.ir.core` gives them.

Everything here vectorises: TVM turns a loop into vector operations only if it knows each call, and
falls back to scalar loops otherwise. Three traps shape the code. LLVM's ``ne`` of floats is false
for NaN, and TVM rewrites ``not (a == b)`` into it. Integer additions carry "no overflow" marks in
TVM's LLVM code, also unsigned ones. Converting a float that does not fit is undefined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import tirx

from edgekernelbench.ir.dtypes import DType

TExpr = Any  # tvm's expression classes share no useful static type
Bind = Callable[[TExpr], TExpr]  # makes a value cheap to repeat

_TVM = {
    DType.F16: "float16",
    DType.F32: "float32",
    DType.F64: "float64",
    DType.S8: "int8",
    DType.U8: "uint8",
    DType.S16: "int16",
    DType.U16: "uint16",
    DType.S32: "int32",
    DType.U32: "uint32",
    DType.S64: "int64",
    DType.BOOL: "bool",
}


def tvm_dtype(dtype: DType) -> str:
    """TVM's name of a value's dtype."""
    return _TVM[dtype]


def storage_dtype(dtype: DType) -> str:
    """TVM's name of a stored element's dtype: bool is a byte of 0 or 1."""
    return "uint8" if dtype is DType.BOOL else _TVM[dtype]


def dtype_name(value: TExpr) -> str:
    """TVM's name of the dtype of an expression."""
    return str(value.ty.dtype)


def const(value: int | float | bool, dtype: DType) -> TExpr:
    """A literal; a float is rounded to its dtype first, so 1e40 as f32 is infinite."""
    if dtype is DType.BOOL:
        return tirx.IntImm("bool", int(bool(value)))
    if dtype.is_float:
        with np.errstate(over="ignore"):
            value = float(dtype.numpy.type(value))
        return tirx.FloatImm(_TVM[dtype], value)
    return tirx.IntImm(_TVM[dtype], int(value))


def llvm(dtype: str, name: str, *args: TExpr) -> TExpr:
    """A side-effect free LLVM intrinsic, overloaded on the types of result and arguments."""
    return tirx.call_llvm_pure_intrin(dtype, name, *args)


def fence(value: TExpr) -> TExpr:
    """The same value, but LLVM may not contract across it. Costs no instruction."""
    return llvm(dtype_name(value), "llvm.arithmetic.fence", value)


# ------------------------------------------------------------------ comparisons and logic
def as_int(cond: TExpr) -> TExpr:
    return tirx.Select(cond, tirx.IntImm("int32", 1), tirx.IntImm("int32", 0))


def negate(cond: TExpr) -> TExpr:
    """Logical not that stays right for comparisons of floats with NaN.

    TVM rewrites ``not (a < b)`` to ``b <= a``, so the detour over an integer is needed.
    """
    return tirx.EQ(as_int(cond), tirx.IntImm("int32", 0))


def compare(op: str, a: TExpr, b: TExpr, dtype: DType) -> TExpr:
    """Comparison of two values of one dtype; as in IEEE 754, only ``ne`` holds for NaN."""
    if dtype is DType.BOOL:
        a, b = as_int(a), as_int(b)
    match op:
        case "eq":
            return tirx.EQ(a, b)
        case "ne":
            return negate(tirx.EQ(a, b)) if dtype.is_float else tirx.NE(a, b)
        case "lt":
            return tirx.LT(a, b)
        case "le":
            return tirx.LE(a, b)
        case "gt":
            return tirx.GT(a, b)
        case "ge":
            return tirx.GE(a, b)
    raise ValueError(f"no comparison {op}")


def select(cond: TExpr, a: TExpr, b: TExpr) -> TExpr:
    return tirx.Select(cond, a, b)


# ------------------------------------------------------------------ arithmetic
def wrap_u32(op: str, a: TExpr, b: TExpr) -> TExpr:
    """u32 addition, subtraction or product modulo 2**32, through u64 so nothing overflows."""
    x, y = tirx.Cast("uint64", a), tirx.Cast("uint64", b)
    match op:
        case "add":
            wide = tirx.Add(x, y)
        case "sub":
            wide = tirx.Sub(tirx.Add(x, tirx.IntImm("uint64", 1 << 32)), y)
        case _:
            wide = tirx.Mul(x, y)
    return tirx.Cast("uint32", wide)


def divide(a: TExpr, b: TExpr) -> TExpr:
    """Float division. A literal zero divisor, which TVM refuses, becomes a product with inf."""
    if isinstance(b, tirx.FloatImm) and b.value == 0:
        sign = np.copysign(1.0, b.value)
        return tirx.Mul(a, tirx.FloatImm(dtype_name(b), float(sign * np.inf)))
    return tirx.Div(a, b)


def minimum(a: TExpr, b: TExpr) -> TExpr:
    """The smaller value. NaN passes if it comes with a constant or as the right operand.

    ``a`` and ``b`` must be cheap to repeat.
    """
    if not is_float(a):
        return tirx.Min(a, b)
    a, b = (b, a) if isinstance(b, tirx.FloatImm) else (a, b)
    return tirx.Select(tirx.LT(a, b), a, b)


def maximum(a: TExpr, b: TExpr) -> TExpr:
    """The larger value; NaN as for `minimum`. ``a`` and ``b`` must be cheap to repeat."""
    if not is_float(a):
        return tirx.Max(a, b)
    a, b = (b, a) if isinstance(b, tirx.FloatImm) else (a, b)
    return tirx.Select(tirx.GT(a, b), a, b)


def is_float(value: TExpr) -> bool:
    return dtype_name(value).startswith("float")


def shift(op: str, a: TExpr, amount: TExpr, dtype: DType) -> TExpr:
    """Shift by ``amount`` modulo the width; right shifts of signed values are arithmetic."""
    name = _TVM[dtype]
    amount = tirx.bitwise_and(tirx.Cast(name, amount), tirx.IntImm(name, dtype.bits - 1))
    return tirx.shift_left(a, amount) if op == "shl" else tirx.shift_right(a, amount)


# ------------------------------------------------------------------ casts
# The largest float below each integer bound that the float dtype cannot hold.
_TOP = {
    (DType.F32, DType.S32): 2147483520.0,
    (DType.F32, DType.U32): 4294967040.0,
    (DType.F32, DType.S64): 9223371487098961920.0,
    (DType.F64, DType.S64): 9223372036854774784.0,
}


def float_to_int(x: TExpr, source: DType, dtype: DType, bind: Bind) -> TExpr:
    """Truncates, saturates, and turns NaN into 0. ``x`` must be cheap to repeat.

    LLVM's own saturating conversion is not used: on x86 it falls apart into scalar code.
    """
    low, high = dtype.int_range
    wide = DType.S32 if dtype.bits < 32 else dtype
    top = _TOP.get((source, dtype))
    below = bind(minimum(x, const(top if top is not None else high, source)))
    clamped = maximum(below, const(low, source))
    value = tirx.Cast(_TVM[wide], clamped)
    if top is not None:
        over = tirx.GE(x, const(float(high + 1), source))
        value = tirx.Select(over, const(high, dtype), value)
    value = tirx.Select(tirx.EQ(x, x), value, tirx.IntImm(_TVM[wide], 0))
    return value if wide is dtype else tirx.Cast(_TVM[dtype], value)


def to_bool(x: TExpr, source: DType) -> TExpr:
    return compare("ne", x, const(0, source), source)
