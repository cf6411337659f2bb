"""``a * b + c`` rounded once, in NumPy, which has no such operation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from edgekernelbench.ir.interpret.frame import Value


def fma(a: Value, b: Value, c: Value) -> Value:
    """One rounding, whatever the common float dtype of the arguments; scalars and arrays.

    The product of two f32 or f16 is exact in f64. Its sum with ``c`` is rounded to f64 *to odd*:
    where it is not exact, towards the neighbour whose last bit is set. Rounding that to a dtype
    of at least two bits less is as good as rounding the exact sum.
    """
    dtype = np.result_type(a, b, c)
    if dtype == np.float64:
        return _EXACT(a, b, c)[()]
    product = np.multiply(a, b, dtype=np.float64)
    wide = np.asarray(c, np.float64)
    total = product + wide
    back = total - product
    error = (product - (total - back)) + (wide - back)
    bits = np.asarray(total).view(np.int64)
    move = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    away = (error > 0) == (total > 0)
    odd = np.where(move, bits + np.where(away, 1, -1), bits)
    return odd.view(np.float64).astype(dtype)[()]


def _exact_f64(a: float, b: float, c: float) -> float:
    """One element of f64, in fractions."""
    x, y, z = np.float64(a), np.float64(b), np.float64(c)
    if not np.isfinite([x, y, z]).all() or x == 0 or y == 0:
        return x * y + z
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    try:
        return float(exact)
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


_EXACT = np.vectorize(_exact_f64, otypes=[np.float64])
