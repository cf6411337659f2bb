"""The cheaper functions: their stated error over f32, and their limits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from edgekernelbench.ir.core import Expr
from edgekernelbench.ir.dtypes import DType
from tests.compilers.nests import call, elementwise, k, op
from tests.compilers.test_transcendental import samples

F32 = DType.F32
BOUND = 5e-6
TINY = 3e-38  # below, results may be absent
FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fast_exp": np.exp,
    "fast_tanh": np.tanh,
    "fast_erf": special.erf,
}


def error(got: np.ndarray, want: np.ndarray) -> float:
    """Worst relative error beyond `TINY`, of finite results; the others must be equal."""
    with np.errstate(over="ignore"):
        rounded = want.astype(np.float32)
    odd = ~np.isfinite(rounded)
    np.testing.assert_array_equal(got[odd], rounded[odd])
    off = np.abs(got[~odd].astype(np.float64) - want[~odd]) - TINY
    return float(np.max(off / np.maximum(np.abs(want[~odd]), TINY)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_stated_error_over_all_of_f32(tmp_path: Path, name: str) -> None:
    x = samples()
    got = elementwise(tmp_path, lambda x: call(name, x), {"x": x}, F32)
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name](x.astype(np.float64))
    assert BOUND / 10 < error(got, want) <= BOUND


def test_sigmoid(tmp_path: Path) -> None:
    def sigmoid(x: Expr) -> Expr:
        shifted = op("add", call("fast_exp", op("mul", x, k(-1.0, F32))), k(1.0, F32))
        return op("div", k(1.0, F32), shifted)

    x = samples()
    x = x[~np.isnan(x)]
    x = x[: len(x) // 16 * 16]
    got = elementwise(tmp_path, sigmoid, {"x": x}, F32)
    assert error(got, special.expit(x.astype(np.float64))) <= BOUND


def test_limits(tmp_path: Path) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 88.7, 88.8, -87.4, -200, 1e30, -1e30, 7, -7,
                  20, -20, 4], np.float32)  # fmt: skip
    exp, tanh, erf = (
        elementwise(tmp_path / name, lambda x, name=name: call(name, x), {"x": x}, F32)
        for name in FUNCTIONS
    )
    np.testing.assert_array_equal(exp[[2, 3, 6, 7, 8, 9, 10]], [np.inf, 0, np.inf, 0, 0, np.inf, 0])
    assert np.isfinite(exp[5])
    for odd in (tanh, erf):
        assert np.isnan(odd[4]) and (np.abs(np.delete(odd, 4)) <= 1).all()
        np.testing.assert_array_equal(np.signbit(odd[:2]), [False, True])
        np.testing.assert_array_equal(odd[2], -odd[3])
    assert np.isnan(exp[4])
