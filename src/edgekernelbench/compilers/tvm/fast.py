"""Cheaper forms of transcendental functions of f32, for kernels that ask for them.

Their relative error stays below 5e-6 over all of f32, with fused multiply-add or without, measured
by `tests/compilers/test_fast.py`. Denormal arguments and results are as good as absolute 3e-38;
NaN stays NaN, infinities give the limits. All of them vectorise, and none calls a library.
"""

from __future__ import annotations

import math

from tvm import tirx

from edgekernelbench.compilers.tvm.scalars import Bind, TExpr
from edgekernelbench.compilers.tvm.transcendental import at_least, at_most, polynomial

_LN2 = math.log(2.0)
_LN2_HIGH = 0.693145751953125  # 16 bits: its products with integers below 2**8 are exact
_LN2_LOW = 1.4286068203094173e-06
_SHIFT = 12582912.0 + 126.0  # adding 1.5 * 2**23 rounds; 126 biases the exponent for 2**(n - 1)

# 2 * exp(r) on |r| <= ln(2)/2
_EXP = (
    1.9999985140376146, 1.9999265197824738, 1.0000875223787808, 0.33582309205481952,
    0.082916383395583782,
)  # fmt: skip
# tanh(x) = x * P(x**2) / Q(x**2) on |x| <= 6.8
_TANH_TOP = (0.9999991655349731, 0.12346744537353516, 0.0023156353272497654, 4.106360847799806e-06)
_TANH_BOTTOM = (1.0, 0.4567944407463074, 0.02125529944896698, 0.00014647703210357577)
# erf(x) = x * P(x**2) / Q(x**2) on |x| <= 3.3
_ERF_TOP = (1.1283771991729736, 0.15474508702754974, 0.04312683269381523, 0.0007446263334713876)
_ERF_BOTTOM = (1.0, 0.4704851806163788, 0.0949496254324913, 0.00925475638359785)


def _f(value: float) -> TExpr:
    return tirx.FloatImm("float32", value)


def exp(x: TExpr, bind: Bind) -> TExpr:
    """e**x; results below 2.4e-38 are 0.

    The scale 2**(n - 1) comes from the low bits of the rounding sum, and is 0 for the least ``n``.
    """
    x = bind(at_least(bind(at_most(x, 89.0)), -87.3))
    shifted = bind(tirx.Add(tirx.Mul(x, _f(1 / _LN2)), _f(_SHIFT)))
    n = bind(tirx.Sub(shifted, _f(_SHIFT)))
    r = bind(tirx.Sub(tirx.Sub(x, tirx.Mul(n, _f(_LN2_HIGH))), tirx.Mul(n, _f(_LN2_LOW))))
    bits = tirx.shift_left(tirx.reinterpret("int32", shifted), tirx.IntImm("int32", 23))
    return tirx.Mul(polynomial(r, _EXP), tirx.reinterpret("float32", bits))


def _odd_rational(
    x: TExpr, limit: float, top: tuple[float, ...], bottom: tuple[float, ...], bind: Bind
) -> TExpr:
    x = bind(at_least(bind(at_most(x, limit)), -limit))
    square = bind(tirx.Mul(x, x))
    return tirx.Div(tirx.Mul(x, polynomial(square, top)), polynomial(square, bottom))


def tanh(x: TExpr, bind: Bind) -> TExpr:
    """Never above 1; flat beyond 6.8."""
    return _odd_rational(x, 6.8, _TANH_TOP, _TANH_BOTTOM, bind)


def erf(x: TExpr, bind: Bind) -> TExpr:
    """Never above 1; flat beyond 3.3."""
    return _odd_rational(x, 3.3, _ERF_TOP, _ERF_BOTTOM, bind)
