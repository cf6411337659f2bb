"""The interpreter's fused multiply-add against exact fractions."""

from __future__ import annotations

import numpy as np
import pytest

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.interpret.fma import fma
from tests.property.naive import fused

DTYPES = {DType.F16: np.uint16, DType.F32: np.uint32, DType.F64: np.uint64}


def bits(dtype: DType, count: int, seed: int) -> np.ndarray:
    """Finite numbers of all exponents whose sums stay finite, denormals among them."""
    kind = DTYPES[dtype]
    some = np.random.default_rng(seed).integers(0, np.iinfo(kind).max, 4 * count, kind)
    values = some.view(dtype.numpy)
    with np.errstate(all="ignore"):
        small = np.isfinite(values) & (np.abs(values) < np.sqrt(np.finfo(dtype.numpy).max) / 2)
    return values[small][:count]


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_bits(dtype: DType) -> None:
    a, b, c = (bits(dtype, 3000, seed) for seed in range(3))
    with np.errstate(all="ignore"):
        c[::3] = (-(a * b))[::3]  # cancels: what is left is the rounding of the product
    got = fma(a, b, c)
    assert got.dtype == dtype.numpy
    want = [fused(dtype, *point) for point in zip(a, b, c, strict=True)]
    np.testing.assert_array_equal(got, np.array(want).astype(dtype.numpy))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_next_to_the_middle_between_two_numbers(dtype: DType) -> None:
    """a * b is a half unit of c less very little, which the next wider dtype cannot hold."""
    make = dtype.numpy.type
    unit = np.finfo(dtype.numpy).eps
    c = make(1) + unit
    a, b = (make(1) + unit) * make(0.5), (make(1) - unit) * unit
    assert fma(a, b, c) == c
    assert fma(-a, b, -c) == -c
    assert fma(a, make(unit), c) == c + unit  # here the half unit and a little more


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_that_are_not_finite(dtype: DType) -> None:
    inf, top = dtype.numpy.type(np.inf), np.finfo(dtype.numpy).max
    one, zero = dtype.numpy.type(1), dtype.numpy.type(0)
    with np.errstate(all="ignore"):
        assert fma(inf, one, one) == inf and fma(one, one, -inf) == -inf
        assert np.isnan(fma(inf, zero, one)) and np.isnan(fma(inf, one, -inf))
        assert np.isnan(fma(one * np.nan, one, one))
        assert fma(top, dtype.numpy.type(2), zero) == inf
        assert fma(top, dtype.numpy.type(2), -top) == top  # the product alone is infinite


def test_arrays_and_scalars_mix() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(fma(x, np.float32(2), x[:1]), x * 2 + x[:1])
