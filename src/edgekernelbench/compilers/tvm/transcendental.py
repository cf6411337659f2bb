"""Transcendental functions of f32 as expansions that vectorise.

TVM leaves them to scalar calls of the C library, ten times slower. Each function here states its
worst relative error over all finite f32 inputs (half a unit in the last place is 6e-8), measured
by `tests/compilers/test_transcendental.py`; infinities, NaN, signed zeros and denormals give what
IEEE 754 libraries give. The polynomials are minimax fits of relative error.

No error-free transformation is used that fused multiply-add could break: LLVM may contract.
All floats are f32 unless a comment says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvm import tirx

from edgekernelbench.compilers.tvm.scalars import Bind, TExpr, llvm

_LN2 = math.log(2.0)
_LN2_HIGH = 0.693145751953125  # 16 bits: its products with integers below 2**8 are exact
_LN2_LOW = 1.4286068203094173e-06
_ROUND = 12582912.0  # 1.5 * 2**23: adding it rounds to an integer, held in the low bits
_ROUND_BITS = 0x4B400000

# (exp(r) - 1 - r) / r**2 on |r| <= ln(2)/2
_EXP = (
    0.4999999344778307, 0.16666520631685655, 0.041668388046986644,
    0.008368716882017794, 0.0013814598603289455,
)  # fmt: skip
# (log(1 + f) - f + f**2/2) / f**3 on sqrt(1/2) - 1 <= f <= sqrt(2) - 1
_LOG = (
    0.33333331707662256, -0.250008210332959, 0.20001226880602196, -0.16623357382051454,
    0.14201757924932695, -0.13160181972012658, 0.12761577397347124, -0.07634498042766336,
)  # fmt: skip
# erf(x)/x - 1 in x**2 on |x| <= 1
_ERF_SMALL = (
    0.1283791657267117, -0.37612625824232365, 0.11283585148589138, -0.026853811933870812,
    0.005188327682371744, -0.0008010193590283493, 7.85386122163162e-05,
)  # fmt: skip
# -log(1 - erf(t)) - t on 1 <= t <= 4
_ERF_LARGE = (
    0.00034152339215798907, 0.12708918860924984, 0.638144835469815, 0.10310675213817361,
    -0.02183806277236472, 0.002947657972609502, -0.00018637915559450543,
)  # fmt: skip
# the same two for f64, the second on 1 <= t <= 6
_ERF_SMALL_F64 = (
    0.1283791670955126, -0.3761263890318375, 0.11283791670954854, -0.02686617064507231,
    0.0052239776247753195, -0.0008548326978430694, 0.00012055331025793798,
    -1.4925593245923501e-05, 1.6460968721975601e-06, -1.634998274189769e-07,
    1.4657600165778558e-08, -1.1364607520605601e-09, 5.943508233981782e-11,
)  # fmt: skip
_ERF_LARGE_F64 = (
    2.432725130449483e-06, 0.12835648064765545, 0.6367180540567245, 0.10250997955540551,
    -0.018643922000662835, -0.0008633325929372303, 0.002363519850777701,
    -0.0011123506782310065, 0.00033896003655070915, -7.537028051739016e-05,
    1.2429175677871524e-05, -1.4864687121405235e-06, 1.21874877166355e-07,
    -6.108861791111064e-09, 1.4037290379875538e-10,
)  # fmt: skip
# (atan(x) - x) / x**3 in x**2 on |x| <= 1
_ATAN = (
    -0.33333299089222423, 0.199985482866891, -0.14264241705059644, 0.10952185904851564,
    -0.0840345070577555, 0.05795759997175137, -0.03117785214742981, 0.010914609075736149,
    -0.0017936224392763808,
)  # fmt: skip
# (sin(x) - x) / x**3 and (cos(x) - 1 + x**2/2) / x**4 in x**2 on |x| <= pi/4
_SIN = (-0.1666665460227428, 0.008332160291718729, -0.000195152180924653)
_COS = (0.04166664567015252, -0.00138873156163984, 2.443308267913466e-05)
# pi/2 in three f64 parts, the first two of 23 bits: their products with integers below 2**30 are
# exact; and in two f32 parts
_HALF_PI_F64 = (1.570796251296997, 7.549789415861596e-08, 5.390302858158119e-15)
_HALF_PI = (1.5707963705062866, -4.3711390001862426e-08)


def _f(value: float) -> TExpr:
    return tirx.FloatImm("float32", value)


def _i(value: int) -> TExpr:
    return tirx.IntImm("int32", value)


def _bits(x: TExpr) -> TExpr:
    return tirx.reinterpret("int32", x)


def _float(bits: TExpr) -> TExpr:
    return tirx.reinterpret("float32", bits)


def polynomial(x: TExpr, coefficients: Sequence[float], dtype: str = "float32") -> TExpr:
    """The polynomial with ``coefficients`` from the constant upwards (Horner)."""
    out: TExpr = tirx.FloatImm(dtype, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        out = tirx.Add(tirx.Mul(out, x), tirx.FloatImm(dtype, c))
    return out


def at_most(x: TExpr, bound: float) -> TExpr:
    """min(x, bound), NaN for NaN."""
    return tirx.Select(tirx.LT(_f(bound), x), _f(bound), x)


def at_least(x: TExpr, bound: float) -> TExpr:
    """max(x, bound), NaN for NaN."""
    return tirx.Select(tirx.LT(x, _f(bound)), _f(bound), x)


def _power_of_two(n: TExpr) -> TExpr:
    """2**n for an int32 ``n`` in -126..127."""
    return _float(tirx.shift_left(tirx.Add(n, _i(127)), _i(23)))


def _abs(x: TExpr) -> TExpr:
    return _float(tirx.bitwise_and(_bits(x), _i(0x7FFFFFFF)))


def _with_sign_of(magnitude: TExpr, x: TExpr) -> TExpr:
    sign = tirx.bitwise_and(_bits(x), _i(-0x80000000))
    return _float(tirx.bitwise_or(_bits(magnitude), sign))


def _round(x: TExpr, bind: Bind) -> tuple[TExpr, TExpr]:
    """The nearest integer as float and as int32, for |x| < 2**22. Defined for NaN too."""
    shifted = bind(tirx.Add(x, _f(_ROUND)))
    return bind(tirx.Sub(shifted, _f(_ROUND))), bind(tirx.Sub(_bits(shifted), _i(_ROUND_BITS)))


def _reduce_exp(x: TExpr, bind: Bind) -> tuple[TExpr, TExpr]:
    """(r, n) with x = n * ln(2) + r, |r| <= ln(2)/2, for |x| < 2**8; n is int32."""
    n, whole = _round(tirx.Mul(x, _f(1 / _LN2)), bind)
    r = tirx.Sub(tirx.Sub(x, tirx.Mul(n, _f(_LN2_HIGH))), tirx.Mul(n, _f(_LN2_LOW)))
    return bind(r), whole


def _expm1_reduced(r: TExpr) -> TExpr:
    return tirx.Add(tirx.Mul(tirx.Mul(r, r), polynomial(r, _EXP)), r)


def _scaled(mantissa: TExpr, n: TExpr, bind: Bind) -> TExpr:
    """mantissa * 2**n for n in -252..254, rounded once: two factors, the first one exact."""
    half = bind(tirx.shift_right(n, _i(1)))
    rest = tirx.Sub(n, half)
    return tirx.Mul(tirx.Mul(mantissa, _power_of_two(half)), _power_of_two(rest))


def exp(x: TExpr, bind: Bind) -> TExpr:
    """e**x, relative error 1e-7; denormal results are rounded correctly to within one unit."""
    x = bind(at_least(bind(at_most(x, 89.0)), -104.0))
    r, n = _reduce_exp(x, bind)
    return _scaled(tirx.Add(_f(1.0), _expm1_reduced(r)), n, bind)


def exp2(x: TExpr, bind: Bind) -> TExpr:
    """2**x, relative error 1e-7."""
    x = bind(at_least(bind(at_most(x, 129.0)), -151.0))
    n, whole = _round(x, bind)
    r = bind(tirx.Mul(tirx.Sub(x, n), _f(_LN2)))
    return _scaled(tirx.Add(_f(1.0), _expm1_reduced(r)), whole, bind)


def tanh(x: TExpr, bind: Bind) -> TExpr:
    """Relative error 2e-7: (exp(2t) - 1) / (exp(2t) + 1) with exp(2t) - 1 computed as such."""
    x = bind(x)
    t = bind(at_most(bind(tirx.Mul(_abs(x), _f(2.0))), 20.0))
    r, n = _reduce_exp(t, bind)
    scale = bind(_power_of_two(n))
    em1 = bind(tirx.Add(tirx.Mul(scale, _expm1_reduced(r)), tirx.Sub(scale, _f(1.0))))
    return _with_sign_of(tirx.Div(em1, tirx.Add(em1, _f(2.0))), x)


def _decompose(x: TExpr, bind: Bind) -> tuple[TExpr, TExpr]:
    """(f, e) with x = (1 + f) * 2**e and 1 + f in sqrt(1/2)..sqrt(2), for any positive x."""
    tiny = bind(tirx.LT(x, _f(1.1754943508222875e-38)))
    bits = bind(_bits(tirx.Select(tiny, tirx.Mul(x, _f(8388608.0)), x)))
    e = bind(tirx.shift_right(tirx.Sub(bits, _i(0x3F3504F3)), _i(23)))
    f = tirx.Sub(_float(tirx.Sub(bits, tirx.shift_left(e, _i(23)))), _f(1.0))
    e = tirx.Sub(e, tirx.Select(tiny, _i(23), _i(0)))
    return bind(f), bind(tirx.Cast("float32", e))


def _log_edges(x: TExpr, value: TExpr) -> TExpr:
    """``value`` for finite positive x; what log gives for 0, infinity, negatives and NaN."""
    other = tirx.Select(tirx.EQ(x, _f(0.0)), _f(-math.inf), _f(math.nan))
    value = tirx.Select(tirx.EQ(x, _f(math.inf)), _f(math.inf), value)
    return tirx.Select(tirx.GT(x, _f(0.0)), value, other)


def _log_tail(f: TExpr, bind: Bind) -> TExpr:
    """log(1 + f) - f."""
    square = bind(tirx.Mul(f, f))
    cubic = tirx.Mul(tirx.Mul(square, f), polynomial(f, _LOG))
    return tirx.Sub(cubic, tirx.Mul(_f(0.5), square))


def log(x: TExpr, bind: Bind) -> TExpr:
    """Natural logarithm, relative error 1e-7."""
    x = bind(x)
    f, e = _decompose(bind(tirx.Select(tirx.GT(x, _f(0.0)), x, _f(1.0))), bind)
    tail = tirx.Add(_log_tail(f, bind), tirx.Mul(e, _f(_LN2_LOW)))
    return _log_edges(x, tirx.Add(tirx.Add(tail, f), tirx.Mul(e, _f(_LN2_HIGH))))


def log2(x: TExpr, bind: Bind) -> TExpr:
    """Binary logarithm, relative error 2e-7."""
    x = bind(x)
    f, e = _decompose(bind(tirx.Select(tirx.GT(x, _f(0.0)), x, _f(1.0))), bind)
    tail = bind(_log_tail(f, bind))
    high, low = 1.4423828125, 0.00031222838896340733  # 1 / ln(2)
    fraction = tirx.Add(
        tirx.Mul(tirx.Add(tail, f), _f(low)),
        tirx.Add(tirx.Mul(tail, _f(high)), tirx.Mul(f, _f(high))),
    )
    return _log_edges(x, tirx.Add(fraction, e))


def erf(x: TExpr, bind: Bind) -> TExpr:
    """Error function, relative error 1e-7."""
    x = bind(x)
    t = bind(_abs(x))
    small = tirx.Add(tirx.Mul(x, polynomial(bind(tirx.Mul(x, x)), _ERF_SMALL)), x)
    c = bind(at_most(t, 4.0))
    r, n = _reduce_exp(bind(tirx.Sub(_f(0.0), tirx.Add(c, polynomial(c, _ERF_LARGE)))), bind)
    tail = tirx.Mul(tirx.Add(_f(1.0), _expm1_reduced(r)), _power_of_two(n))
    large = _with_sign_of(tirx.Sub(_f(1.0), tail), x)
    return tirx.Select(tirx.LT(t, _f(1.0)), small, large)


def erf_f64(x: TExpr, bind: Bind) -> TExpr:
    """Error function of f64 with f64 result, relative error 1e-15."""

    def k(value: float) -> TExpr:
        return tirx.FloatImm("float64", value)

    x = bind(x)
    t = bind(llvm("float64", "llvm.fabs", x))
    small = tirx.Add(tirx.Mul(x, polynomial(bind(tirx.Mul(x, x)), _ERF_SMALL_F64, "float64")), x)
    c = bind(tirx.Select(tirx.LT(k(6.0), t), k(6.0), t))
    power = tirx.Sub(k(0.0), tirx.Add(c, polynomial(c, _ERF_LARGE_F64, "float64")))
    tail = tirx.Sub(k(1.0), llvm("float64", "llvm.exp", power))
    large = tirx.Select(tirx.LT(x, k(0.0)), tirx.Mul(tail, k(-1.0)), tail)
    return tirx.Select(tirx.LT(t, k(1.0)), small, bind(large))


def _atan_unit(z: TExpr, bind: Bind) -> TExpr:
    """atan(z) for 0 <= z <= 1."""
    square = bind(tirx.Mul(z, z))
    return tirx.Add(tirx.Mul(tirx.Mul(square, z), polynomial(square, _ATAN)), z)


def _complement(angle: TExpr) -> TExpr:
    """pi/2 - angle, with pi/2 to twice the precision."""
    return tirx.Sub(_f(_HALF_PI[0]), tirx.Sub(angle, _f(_HALF_PI[1])))


def atan(x: TExpr, bind: Bind) -> TExpr:
    """Relative error 2e-7."""
    x = bind(x)
    t = bind(_abs(x))
    outside = bind(tirx.GT(t, _f(1.0)))
    z = bind(tirx.Select(outside, tirx.Div(_f(1.0), t), t))
    angle = bind(_atan_unit(z, bind))
    return _with_sign_of(tirx.Select(outside, _complement(angle), angle), x)


def atan2(y: TExpr, x: TExpr, bind: Bind) -> TExpr:
    """Angle of the point (x, y), relative error 3e-7."""
    x, y = bind(x), bind(y)
    a, b = bind(_abs(y)), bind(_abs(x))
    steep = bind(tirx.GT(a, b))
    low, high = bind(tirx.Select(steep, b, a)), bind(tirx.Select(steep, a, b))
    same = tirx.Select(tirx.EQ(high, _f(0.0)), _f(0.0), _f(1.0))
    z = bind(tirx.Select(tirx.EQ(low, high), same, tirx.Div(low, high)))
    angle = bind(_atan_unit(z, bind))
    angle = bind(tirx.Select(steep, _complement(angle), angle))
    back = tirx.Sub(_f(2 * _HALF_PI[0]), tirx.Sub(angle, _f(2 * _HALF_PI[1])))
    angle = tirx.Select(tirx.LT(_bits(x), _i(0)), back, angle)
    defined = tirx.And(tirx.EQ(x, x), tirx.EQ(y, y))
    return tirx.Select(defined, _with_sign_of(bind(angle), y), tirx.Add(x, y))


def _reduce_angle(x: TExpr, bind: Bind) -> tuple[TExpr, TExpr]:
    """(r, q) with x = q * pi/2 + r, |r| <= pi/4, reduced in f64; q is int32 modulo 2**31."""
    wide = bind(tirx.Cast("float64", x))
    magic = 6755399441055744.0  # 1.5 * 2**52
    shifted = bind(
        tirx.Add(
            tirx.Mul(wide, tirx.FloatImm("float64", 2 / math.pi)), tirx.FloatImm("float64", magic)
        )
    )
    n = bind(tirx.Sub(shifted, tirx.FloatImm("float64", magic)))
    r = wide
    for part in _HALF_PI_F64:
        r = tirx.Sub(r, tirx.Mul(n, tirx.FloatImm("float64", part)))
    r = bind(tirx.Cast("float32", r))
    r = bind(at_least(bind(at_most(r, 1.0)), -1.0))
    return r, bind(tirx.Cast("int32", tirx.reinterpret("int64", shifted)))


def _sin_cos_reduced(r: TExpr, bind: Bind) -> tuple[TExpr, TExpr]:
    square = bind(tirx.Mul(r, r))
    sine = tirx.Add(tirx.Mul(tirx.Mul(square, r), polynomial(square, _SIN)), r)
    tail = tirx.Mul(tirx.Mul(square, square), polynomial(square, _COS))
    cosine = tirx.Add(tirx.Sub(_f(1.0), tirx.Mul(_f(0.5), square)), tail)
    return bind(_with_sign_of(bind(sine), r)), bind(cosine)  # the sum loses the sign of -0


def _has_bit(q: TExpr, bit: int) -> TExpr:
    return tirx.NE(tirx.bitwise_and(q, _i(bit)), _i(0))


def _flip(value: TExpr, flag: TExpr) -> TExpr:
    return tirx.Select(flag, tirx.Mul(value, _f(-1.0)), value)


def sin(x: TExpr, bind: Bind) -> TExpr:
    """Relative error 1.5e-7 for |x| <= 2**30; beyond, some value in -1..1."""
    r, q = _reduce_angle(x, bind)
    sine, cosine = _sin_cos_reduced(r, bind)
    return _flip(bind(tirx.Select(_has_bit(q, 1), cosine, sine)), _has_bit(q, 2))


def cos(x: TExpr, bind: Bind) -> TExpr:
    """Relative error 1.5e-7 for |x| <= 2**30; beyond, some value in -1..1."""
    r, q = _reduce_angle(x, bind)
    sine, cosine = _sin_cos_reduced(r, bind)
    q = bind(tirx.Add(tirx.bitwise_and(q, _i(3)), _i(1)))
    return _flip(bind(tirx.Select(_has_bit(q, 1), cosine, sine)), _has_bit(q, 2))


def tan(x: TExpr, bind: Bind) -> TExpr:
    """Relative error 3e-7 for |x| <= 2**30; beyond, meaningless."""
    r, q = _reduce_angle(x, bind)
    sine, cosine = _sin_cos_reduced(r, bind)
    odd = bind(_has_bit(q, 1))
    over = tirx.Select(odd, tirx.Mul(cosine, _f(-1.0)), sine)
    return tirx.Div(over, tirx.Select(odd, sine, cosine))
