"""Intervals of scalar values, and what the operators of the core do to them.

An `Interval` covers every value an expression can take. ``safe`` is False when some signed
arithmetic below it may overflow: the value is then undefined, also for what is computed from
it (a compiler may assume that ``a * a >= 0``), so a clamp around it proves nothing.

A float interval is either finite at both ends, and then NaN is excluded, or `any_float`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from edgekernelbench.ir.dtypes import DType


@dataclass(frozen=True, slots=True)
class Interval:
    """Closed: ``lo`` and ``hi`` are possible values. Ints for integers and bools, else floats."""

    lo: int | float
    hi: int | float
    safe: bool = True

    def within(self, lo: int | float, hi: int | float) -> bool:
        """True when every value is known to lie in lo..hi (inclusive)."""
        return self.safe and lo <= self.lo and self.hi <= hi

    def join(self, other: Interval) -> Interval:
        return Interval(min(self.lo, other.lo), max(self.hi, other.hi), self.safe and other.safe)


BOOL = Interval(0, 1)


def any_float(safe: bool = True) -> Interval:
    return Interval(-math.inf, math.inf, safe)


def full(dtype: DType, safe: bool = True) -> Interval:
    """All values of a dtype."""
    if dtype.is_float:
        return any_float(safe)
    return Interval(*dtype.int_range, safe)


def fit(lo: int, hi: int, dtype: DType, safe: bool) -> Interval:
    """An exact integer result stored in ``dtype``: unsigned wraps, signed must not overflow."""
    low, high = dtype.int_range
    if low <= lo and hi <= high:
        return Interval(lo, hi, safe)
    return Interval(low, high, safe and not dtype.is_signed)


_SLACK = 2.0**-20  # far above the rounding of one f32 operation


def outward(lo: float, hi: float, safe: bool) -> Interval:
    """A float result with room for the rounding of the operation; not finite: anything."""
    if not (math.isfinite(lo) and math.isfinite(hi)) or max(abs(lo), abs(hi)) > 1e30:
        return any_float(safe)
    slack = max(abs(lo), abs(hi)) * _SLACK + 1e-35
    return Interval(lo - slack, hi + slack, safe)


def is_finite(value: Interval) -> bool:
    return math.isfinite(value.lo) and math.isfinite(value.hi)


def corners(a: Interval, b: Interval) -> tuple[int, int]:
    """Range of the exact integer product."""
    products = (a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi)
    return min(products), max(products)  # type: ignore[return-value]


def binary_int(op: str, a: Interval, b: Interval, dtype: DType) -> Interval:
    """An integer operator on integer operands; the result is in ``dtype``."""
    safe = a.safe and b.safe
    if not safe:
        return full(dtype, False)
    match op:
        case "add":
            return fit(int(a.lo + b.lo), int(a.hi + b.hi), dtype, safe)
        case "sub":
            return fit(int(a.lo - b.hi), int(a.hi - b.lo), dtype, safe)
        case "mul":
            return fit(*corners(a, b), dtype, safe)
        case "min":
            return Interval(min(a.lo, b.lo), min(a.hi, b.hi), safe)
        case "max":
            return Interval(max(a.lo, b.lo), max(a.hi, b.hi), safe)
        case "fdiv":
            return _fdiv(a, b, dtype)
        case "mod":
            return _mod(a, b, dtype)
        case "shl" | "shr":
            return _shift(op, a, b, dtype)
        case "bitand" | "bitor" | "bitxor":
            return _bits(op, a, b, dtype)
    return full(dtype, safe)


def _fdiv(a: Interval, b: Interval, dtype: DType) -> Interval:
    if b.lo < 1:
        return full(dtype)
    low = a.lo // (b.hi if a.lo >= 0 else b.lo)
    high = a.hi // (b.lo if a.hi >= 0 else b.hi)
    return Interval(int(low), int(high))


def _mod(a: Interval, b: Interval, dtype: DType) -> Interval:
    if b.lo < 1:
        return full(dtype)
    if a.lo >= 0 and a.hi < b.lo:
        return a
    if b.lo == b.hi and a.lo // b.lo == a.hi // b.lo:
        return Interval(a.lo % b.lo, a.hi % b.lo)
    top = b.hi - 1
    return Interval(0, int(min(top, a.hi) if a.lo >= 0 else top))


def _shift(op: str, a: Interval, b: Interval, dtype: DType) -> Interval:
    if not b.within(0, dtype.bits - 1):
        b = Interval(0, dtype.bits - 1)
    low, high = int(b.lo), int(b.hi)
    if op == "shr":
        ends = [int(v) >> s for v in (a.lo, a.hi) for s in (low, high)]
        return Interval(min(ends), max(ends))
    ends = [int(v) << s for v in (a.lo, a.hi) for s in (low, high)]
    return fit(min(ends), max(ends), dtype, True)


def _bits(op: str, a: Interval, b: Interval, dtype: DType) -> Interval:
    if op == "bitand" and (a.lo >= 0 or b.lo >= 0):
        return Interval(0, int(min(v.hi for v in (a, b) if v.lo >= 0)))
    if a.lo >= 0 and b.lo >= 0:
        width = max(int(a.hi).bit_length(), int(b.hi).bit_length())
        return Interval(int(max(a.lo, b.lo)) if op == "bitor" else 0, (1 << width) - 1)
    return full(dtype)


def binary_float(op: str, a: Interval, b: Interval) -> Interval:
    safe = a.safe and b.safe
    if not (is_finite(a) and is_finite(b)):
        return any_float(safe)
    match op:
        case "add":
            return outward(a.lo + b.lo, a.hi + b.hi, safe)
        case "sub":
            return outward(a.lo - b.hi, a.hi - b.lo, safe)
        case "mul":
            return outward(*corners(a, b), safe)
        case "div" if b.lo > 0 or b.hi < 0:
            ends = [x / y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
            return outward(min(ends), max(ends), safe)
        case "min":
            return Interval(min(a.lo, b.lo), min(a.hi, b.hi), safe)
        case "max":
            return Interval(max(a.lo, b.lo), max(a.hi, b.hi), safe)
    return any_float(safe)


def negate(a: Interval, dtype: DType) -> Interval:
    if dtype.is_float:
        return Interval(-a.hi, -a.lo, a.safe)
    return fit(int(-a.hi), int(-a.lo), dtype, a.safe) if a.safe else full(dtype, False)


def invert(a: Interval, dtype: DType) -> Interval:
    if not a.safe:
        return full(dtype, False)
    if dtype.is_signed:
        return Interval(-a.hi - 1, -a.lo - 1)
    top = dtype.int_range[1]
    return Interval(top - a.hi, top - a.lo)


def absolute(a: Interval, dtype: DType) -> Interval:
    low = 0 if a.lo <= 0 <= a.hi else min(abs(a.lo), abs(a.hi))
    high = max(abs(a.lo), abs(a.hi))
    if dtype.is_float:
        return Interval(float(low), float(high), a.safe) if is_finite(a) else any_float(a.safe)
    return fit(int(low), int(high), dtype, a.safe) if a.safe else full(dtype, False)


def rounded(fn: str, a: Interval) -> Interval:
    """floor, ceil, trunc and rne of a float."""
    if not is_finite(a):
        return a
    apply = {"floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "rne": round}[fn]
    return Interval(float(apply(a.lo)), float(apply(a.hi)), a.safe)


def convert(a: Interval, source: DType, target: DType) -> Interval:
    """A cast: float to integer truncates and saturates, integer to integer wraps."""
    if target is DType.BOOL:
        return Interval(0, 1, a.safe)
    if target.is_float:
        limit = 65504.0 if target is DType.F16 else math.inf
        if not is_finite(a) or max(abs(a.lo), abs(a.hi)) > limit:
            return any_float(a.safe)
        if target is DType.F16:
            slack = max(abs(a.lo), abs(a.hi)) * 2.0**-10 + 1e-7
            return outward(a.lo - slack, a.hi + slack, a.safe)
        return outward(float(a.lo), float(a.hi), a.safe)
    low, high = target.int_range
    if source.is_float:
        if not is_finite(a):
            return Interval(low, high, a.safe)
        ends = [min(max(math.trunc(v), low), high) for v in (a.lo, a.hi)]
        return Interval(ends[0], ends[1], a.safe)
    return a if low <= a.lo and a.hi <= high else Interval(low, high, a.safe)
