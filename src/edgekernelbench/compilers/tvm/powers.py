"""Powers: products for whole exponents, squaring for integers, an expansion in f64 for f32."""

from __future__ import annotations

import math

from tvm import tirx

from edgekernelbench.compilers.tvm import scalars
from edgekernelbench.compilers.tvm.scalars import Bind, TExpr, const, llvm, tvm_dtype
from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType

_LARGEST_EXPANDED_POWER = 64


def power(base: TExpr, exponent: TExpr, node: core.Expr, dtype: DType, bind: Bind) -> TExpr:
    """``base ** exponent``; ``node`` is the exponent as written.

    Whole constant exponents become products (squaring). Other f32 powers are expanded, f64 ones
    call the C library once an element, integer ones square over the exponent's bits.
    """
    exact = exact_power(base, exponent, node, dtype, bind)
    if exact is not None:
        return exact
    match dtype:
        case DType.F64:
            return llvm("float64", "llvm.pow", base, exponent)
        case DType.F32:
            return f32_power(bind(base), bind(exponent), bind)
        case _:
            wide = [bind(tirx.Cast("float32", v)) for v in (base, exponent)]
            return tirx.Cast(tvm_dtype(dtype), f32_power(wide[0], wide[1], bind))


def exact_power(
    base: TExpr, exponent: TExpr, node: core.Expr, dtype: DType, bind: Bind
) -> TExpr | None:
    """A power that products alone make, None for the others."""
    if isinstance(node, core.Const) and float(node.value).is_integer():
        whole = int(node.value)
        if abs(whole) <= _LARGEST_EXPANDED_POWER and (whole >= 0 or dtype.is_float):
            value = _repeated_product(bind(base), abs(whole), dtype, bind)
            return tirx.Div(const(1, dtype), value) if whole < 0 else value
    return None if dtype.is_float else _integer_power(bind(base), bind(exponent), dtype, bind)


def _multiply(a: TExpr, b: TExpr, dtype: DType) -> TExpr:
    return scalars.wrap_u32("mul", a, b) if dtype is DType.U32 else tirx.Mul(a, b)


def _repeated_product(base: TExpr, exponent: int, dtype: DType, bind: Bind) -> TExpr:
    result: TExpr | None = None
    while exponent:
        if exponent & 1:
            result = base if result is None else bind(_multiply(result, base, dtype))
        exponent >>= 1
        if exponent:
            base = bind(_multiply(base, base, dtype))
    return const(1, dtype) if result is None else result


def _integer_power(base: TExpr, exponent: TExpr, dtype: DType, bind: Bind) -> TExpr:
    """Power modulo the width by squaring; negative exponents count as 0."""
    exponent = bind(scalars.maximum(exponent, const(0, dtype)))
    result = const(1, dtype)
    for bit in range(min(dtype.bits - dtype.is_signed, 32)):
        shifted = tirx.shift_right(exponent, const(bit, dtype))
        odd = tirx.EQ(tirx.bitwise_and(shifted, const(1, dtype)), const(1, dtype))
        result = bind(tirx.Select(odd, _multiply(result, base, dtype), result))
        base = bind(_multiply(base, base, dtype))
    return result


# ------------------------------------------------------------------ f32, computed in f64
# atanh(t) / t in t**2 for |t| <= (sqrt(2) - 1) / (sqrt(2) + 1), times 2 / ln(2)
_ATANH = tuple(2 / math.log(2) / (2 * k + 1) for k in range(8))
# 2**f on |f| <= 1/2: the series, whose next term is below 1e-11
_EXP2 = tuple(math.log(2) ** k / math.factorial(k) for k in range(10))


def _d(value: float) -> TExpr:
    return tirx.FloatImm("float64", value)


def _l(value: int) -> TExpr:
    return tirx.IntImm("int64", value)


def _poly(x: TExpr, coefficients: tuple[float, ...]) -> TExpr:
    out = _d(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        out = tirx.Add(tirx.Mul(out, x), _d(c))
    return out


def _log2(x: TExpr, bind: Bind) -> TExpr:
    """log2 of a positive normal f64 number, relative error 1e-12."""
    bits = bind(tirx.reinterpret("int64", x))
    # 0x3FE6A09E667F3BCD are the bits of sqrt(1/2).
    e = bind(tirx.shift_right(tirx.Sub(bits, _l(0x3FE6A09E667F3BCD)), _l(52)))
    m = bind(tirx.reinterpret("float64", tirx.Sub(bits, tirx.shift_left(e, _l(52)))))
    t = bind(tirx.Div(tirx.Sub(m, _d(1.0)), tirx.Add(m, _d(1.0))))
    series = tirx.Mul(t, _poly(bind(tirx.Mul(t, t)), _ATANH))
    return tirx.Add(series, tirx.Cast("float64", tirx.Cast("int32", e)))


def _exp2(p: TExpr, bind: Bind) -> TExpr:
    """2**p for |p| <= 200 as f64, relative error 1e-11. Defined for NaN too."""
    magic = 6755399441055744.0  # 1.5 * 2**52
    shifted = bind(tirx.Add(p, _d(magic)))
    f = bind(tirx.Sub(p, tirx.Sub(shifted, _d(magic))))
    exponent = tirx.Add(tirx.reinterpret("int64", shifted), _l(1023))
    scale = tirx.reinterpret("float64", tirx.shift_left(exponent, _l(52)))
    return tirx.Mul(_poly(f, _EXP2), scale)


def f32_power(x: TExpr, y: TExpr, bind: Bind) -> TExpr:
    """``x ** y`` of f32 with the edge cases of IEEE 754, relative error 1e-7."""
    zero, one, inf = (tirx.FloatImm("float32", v) for v in (0.0, 1.0, math.inf))
    size = bind(llvm("float32", "llvm.fabs", x))
    regular = tirx.And(tirx.GT(size, zero), tirx.LT(size, inf))
    wide = bind(tirx.Cast("float64", tirx.Select(regular, size, one)))
    p = bind(tirx.Mul(_log2(wide, bind), tirx.Cast("float64", y)))
    p = bind(tirx.Select(tirx.LT(_d(200.0), p), _d(200.0), p))
    p = bind(tirx.Select(tirx.LT(p, _d(-200.0)), _d(-200.0), p))
    value = bind(tirx.Cast("float32", _exp2(p, bind)))
    # 0 and infinity as base: y decides between 0 and infinity
    rises = tirx.EQ(scalars.as_int(tirx.GT(size, one)), scalars.as_int(tirx.GT(y, zero)))
    value = bind(tirx.Select(regular, value, tirx.Select(rises, inf, zero)))
    whole = tirx.EQ(llvm("float32", "llvm.floor", y), y)
    half = bind(tirx.Mul(y, tirx.FloatImm("float32", 0.5)))
    odd = tirx.And(whole, tirx.NE(llvm("float32", "llvm.floor", half), half))
    minus = tirx.LT(tirx.reinterpret("int32", x), tirx.IntImm("int32", 0))
    signed = tirx.Select(odd, tirx.Mul(value, tirx.FloatImm("float32", -1.0)), value)
    signed = tirx.Select(tirx.Or(whole, scalars.negate(regular)), signed, _nan())
    value = bind(tirx.Select(minus, signed, value))
    value = bind(tirx.Select(tirx.And(tirx.EQ(x, x), tirx.EQ(y, y)), value, _nan()))
    is_one = tirx.Or(tirx.EQ(y, zero), tirx.EQ(x, one))
    unit = tirx.And(tirx.EQ(size, one), tirx.EQ(llvm("float32", "llvm.fabs", y), inf))
    return tirx.Select(tirx.Or(is_one, unit), one, value)


def _nan() -> TExpr:
    return tirx.FloatImm("float32", math.nan)
