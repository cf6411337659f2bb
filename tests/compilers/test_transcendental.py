"""The f32 expansions against float64 functions, on samples of all of f32."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from edgekernelbench.ir.core import Expr
from edgekernelbench.ir.dtypes import DType
from tests.compilers.nests import call, cast, elementwise, k, op

F32, F64 = DType.F32, DType.F64

LOUD = 0.5 * 2.0**-149  # half the spacing of denormals


def samples() -> np.ndarray:
    """Every exponent and sign with random and with extreme mantissas, and the usual suspects."""
    rng = np.random.default_rng(3)
    heads = np.arange(512, dtype=np.uint32) << 23
    tails = rng.integers(0, 1 << 23, (512, 509), np.uint32)
    edges = np.broadcast_to(np.array([0, 1, (1 << 23) - 1], np.uint32), (512, 3))
    some = (heads[:, None] | np.concatenate([tails, edges], 1)).ravel().view(np.float32)
    dense = np.concatenate([np.linspace(-110, 110, 1 << 16), np.linspace(-2, 2, 1 << 16)])
    near = 1 + np.linspace(-1e-3, 1e-3, 1 << 15)
    out = np.concatenate([some, dense.astype(np.float32), near.astype(np.float32)])
    return out[: len(out) // 16 * 16]


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """Worst error where the result is finite; the rest must be equal, NaN for NaN."""
    with np.errstate(over="ignore"):
        rounded = want.astype(np.float32)
    odd = ~np.isfinite(rounded)
    np.testing.assert_array_equal(got[odd], rounded[odd])
    good = ~odd
    difference = np.abs(got[good].astype(np.float64) - want[good])
    slack = 2 * LOUD  # a denormal result may be one unit off
    return float(np.max(np.maximum(difference - slack, 0) / np.maximum(np.abs(want[good]), 1e-300)))


BOUNDS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "exp": (np.exp, 1e-7),
    "exp2": (np.exp2, 1e-7),
    "log": (np.log, 1e-7),
    "log2": (np.log2, 2e-7),
    "tanh": (np.tanh, 2e-7),
    "erf": (special.erf, 1e-7),
    "atan": (np.arctan, 2e-7),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_stated_error_over_all_of_f32(tmp_path: Path, name: str) -> None:
    function, bound = BOUNDS[name]
    x = samples()
    got = elementwise(tmp_path, lambda x: call(name, x), {"x": x}, F32)
    with np.errstate(all="ignore"):
        want = function(x.astype(np.float64))
    assert relative_error(got, want) <= bound


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles(tmp_path: Path, name: str) -> None:
    x = samples()
    x = np.where(np.abs(x) <= 2.0**30, x, np.float32(1.0))
    got = elementwise(tmp_path, lambda x: call(name, x), {"x": x}, F32)
    want = {"sin": np.sin, "cos": np.cos, "tan": np.tan}[name](x.astype(np.float64))
    assert relative_error(got, want) <= (3e-7 if name == "tan" else 1.5e-7)


def test_huge_angles_stay_in_range_and_infinite_ones_are_nan(tmp_path: Path) -> None:
    x = np.array([1e12, -1e20, 3e38, np.inf, -np.inf, np.nan] * 8, np.float32)
    got = elementwise(tmp_path, lambda x: call("sin", x), {"x": x}, F32)
    assert np.isnan(got[~np.isfinite(x)]).all()
    assert (np.abs(got[np.isfinite(x)]) <= 1).all()


def test_atan2(tmp_path: Path) -> None:
    special_values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    rng = np.random.default_rng(0)
    y, x = (v.ravel() for v in np.meshgrid(special_values, special_values))
    scale = 10.0 ** rng.uniform(-20, 20, (2, 1 << 14))
    y = np.concatenate([y, (rng.normal(size=1 << 14) * scale[0]).astype(np.float32)])
    x = np.concatenate([x, (rng.normal(size=1 << 14) * scale[1]).astype(np.float32)])
    got = elementwise(tmp_path, lambda y, x: call("atan2", y, x), {"y": y, "x": x}, F32)
    want = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    assert relative_error(got, want) <= 3e-7
    np.testing.assert_array_equal(
        np.signbit(got[~np.isnan(got)]), np.signbit(want[~np.isnan(want)])
    )


@pytest.mark.parametrize("name", ["tanh", "erf", "atan", "sin", "tan"])
def test_zeros_keep_their_sign(tmp_path: Path, name: str) -> None:
    x = np.array([0.0, -0.0] * 8, np.float32)
    got = elementwise(tmp_path, lambda x: call(name, x), {"x": x}, F32)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))


def test_sigmoid_formula(tmp_path: Path) -> None:
    def sigmoid(x: Expr) -> Expr:
        shifted = op("add", k(1.0, F32), call("exp", op("mul", x, k(-1.0, F32))))
        return op("div", k(1.0, F32), shifted)

    x = np.linspace(-87, 87, 1 << 14).astype(np.float32)
    got = elementwise(tmp_path, sigmoid, {"x": x}, F32)
    assert relative_error(got, special.expit(x.astype(np.float64))) <= 3e-7


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sin", "atan"])
@pytest.mark.parametrize("lanes", [None, 8], ids=["serial", "vector"])
def test_f64(tmp_path: Path, name: str, lanes: int | None) -> None:
    x = np.linspace(-7, 7, 1024)
    got = elementwise(tmp_path, lambda x: call(name, x), {"x": x}, F64, lanes)
    functions = {"sin": np.sin, "atan": np.arctan} | {n: f for n, (f, _) in BOUNDS.items()}
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(got, functions[name](x), rtol=2e-15, atol=1e-300)


def test_f16_is_computed_in_f32(tmp_path: Path) -> None:
    x = np.linspace(-8, 8, 1024).astype(np.float16)
    got = elementwise(tmp_path, lambda x: call("exp", cast(x, DType.F16)), {"x": x}, DType.F16)
    np.testing.assert_array_equal(got, np.exp(x.astype(np.float64)).astype(np.float16))


def test_f32_power(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    edges = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -0.5, 1e-40, -1e-40, 3e38, -3e38, 7.0,
                      np.inf, -np.inf, np.nan], np.float32)  # fmt: skip
    x, y = (v.ravel() for v in np.meshgrid(edges, edges))
    some = np.abs(samples())
    some = some[np.isfinite(some)]
    base = rng.choice(some, 1 << 16)
    exponent = rng.uniform(-6, 6, len(base)).astype(np.float32)
    x, y = np.concatenate([x, base, -base]), np.concatenate([y, exponent, np.rint(exponent)])
    got = elementwise(tmp_path, lambda x, y: op("pow", x, y), {"x": x, "y": y}, F32)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64))
    assert relative_error(got, want) <= 1e-7
