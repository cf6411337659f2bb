"""Every scalar operation of the loop program, vectorised and not, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.ir.core import Expr, Select, Unary
from edgekernelbench.ir.dtypes import DType
from tests.compilers.nests import call, cast, elementwise, k, op

F32, F64, S32, U32, S8, U8, BOOL = (
    DType.F32, DType.F64, DType.S32, DType.U32, DType.S8, DType.U8, DType.BOOL,
)  # fmt: skip
LANES = pytest.mark.parametrize("lanes", [None, 16], ids=["serial", "vector"])
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-40, -1e-40, 3e38, -3e38, 127.4, -128.6, 255.9,
     2147483520.0, 2147483648.0, -2147483648.0, 4294967040.0, 4294967296.0, 9.3e18, -9.3e18,
     np.inf, -np.inf, np.nan, 32767.5, -32769.0, 65535.9, 65536.5, 7.0, 8.5, -0.7],
    np.float32,
)  # fmt: skip


def ints(dtype: type, count: int = 64, low: int | None = None) -> np.ndarray:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(7)
    some = rng.integers(info.min if low is None else low, info.max, count, dtype, endpoint=True)
    some[:4] = [info.max, info.min if low is None else low, 1, 2]
    return some


def truncated(x: np.ndarray, dtype: DType) -> np.ndarray:
    low, high = dtype.int_range

    def one(v: float) -> int:
        return 0 if v != v else low if v <= low else high if v >= high else int(v)

    return np.array([one(float(v)) for v in x]).astype(dtype.numpy)


@LANES
@pytest.mark.parametrize("source", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("target", [d for d in DType if d.is_int])
def test_float_to_integer_truncates_and_saturates(
    tmp_path: Path, source: type, target: DType, lanes: int | None
) -> None:
    with np.errstate(over="ignore"):
        x = SPECIAL.astype(source)
    got = elementwise(tmp_path, lambda x: cast(x, target), {"x": x}, target, lanes)
    np.testing.assert_array_equal(got, truncated(x, target))


@LANES
@pytest.mark.parametrize("source", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32,
                                    np.int64])  # fmt: skip
@pytest.mark.parametrize("target", [d for d in DType if d is not DType.F16])
def test_integer_casts_wrap(tmp_path: Path, source: type, target: DType, lanes: int | None) -> None:
    x = ints(source)
    got = elementwise(tmp_path, lambda x: cast(x, target), {"x": x}, target, lanes)
    np.testing.assert_array_equal(got, x.astype(target.numpy))


@LANES
def test_chained_narrowing_casts_are_kept(tmp_path: Path, lanes: int | None) -> None:
    x = ints(np.int32)
    got = elementwise(
        tmp_path, lambda x: op("add", cast(cast(x, S8), S32), k(1)), {"x": x}, S32, lanes
    )
    np.testing.assert_array_equal(got, x.astype(np.int8).astype(np.int32) + 1)


@LANES
def test_f32_to_f16_and_back_rounds(tmp_path: Path, lanes: int | None) -> None:
    x = np.linspace(-70000, 70000, 64).astype(np.float32)
    got = elementwise(tmp_path, lambda x: cast(cast(x, DType.F16), F32), {"x": x}, F32, lanes)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, x.astype(np.float16).astype(np.float32))


def test_storing_a_float_into_f16_rounds(tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 64).astype(np.float32)
    got = elementwise(tmp_path, lambda x: op("mul", x, k(0.1, F32)), {"x": x}, DType.F16)
    np.testing.assert_array_equal(got, (x * np.float32(0.1)).astype(np.float16))


@LANES
@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("negated", [False, True])
def test_comparisons_of_floats_with_nan(
    tmp_path: Path, name: str, negated: bool, lanes: int | None
) -> None:
    x, y = SPECIAL, np.roll(SPECIAL, 1)
    y[::3] = x[::3]

    def expr(x: Expr, y: Expr) -> Expr:
        found = op(name, x, y)
        return Unary("not", found, BOOL) if negated else found

    got = elementwise(tmp_path, expr, {"x": x, "y": y}, BOOL, lanes)
    ufunc = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
             "gt": np.greater, "ge": np.greater_equal}[name]  # fmt: skip
    np.testing.assert_array_equal(got, ufunc(x, y) != negated)


@LANES
def test_bool_inputs_and_logic(tmp_path: Path, lanes: int | None) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random(64) < 0.5, rng.random(64) < 0.5
    for name, ufunc in {"and": np.logical_and, "or": np.logical_or, "bitxor": np.not_equal,
                        "eq": np.equal, "ne": np.not_equal}.items():  # fmt: skip
        got = elementwise(
            tmp_path / name, lambda x, y, name=name: op(name, x, y), {"x": x, "y": y}, BOOL, lanes
        )
        np.testing.assert_array_equal(got, ufunc(x, y), err_msg=name)
    got = elementwise(tmp_path / "f", lambda x, y: cast(x, F32), {"x": x, "y": y}, F32, lanes)
    np.testing.assert_array_equal(got, x.astype(np.float32))


U32_OPS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "fdiv": np.floor_divide,
    "mod": np.mod, "min": np.minimum, "max": np.maximum, "bitand": np.bitwise_and,
    "bitor": np.bitwise_or, "bitxor": np.bitwise_xor,
}  # fmt: skip


@LANES
@pytest.mark.parametrize("name", U32_OPS)
def test_u32_arithmetic_is_modular(tmp_path: Path, name: str, lanes: int | None) -> None:
    x, y = ints(np.uint32), np.maximum(np.roll(ints(np.uint32), 5), 1)
    got = elementwise(tmp_path, lambda x, y: op(name, x, y), {"x": x, "y": y}, U32, lanes)
    np.testing.assert_array_equal(got, U32_OPS[name](x, y))


def test_u32_chains_do_not_pick_up_overflow_assumptions(tmp_path: Path) -> None:
    """x + 1 > x is false for the largest value; a compiler that assumes no overflow says true."""
    x = ints(np.uint32)
    got = elementwise(tmp_path, lambda x: op("gt", op("add", x, k(1, U32)), x), {"x": x}, BOOL)
    np.testing.assert_array_equal(got, x + np.uint32(1) > x)


@LANES
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("name", ["fdiv", "mod"])
def test_floor_division(tmp_path: Path, name: str, dtype: type, lanes: int | None) -> None:
    x, y = ints(dtype), np.abs(np.roll(ints(dtype), 3) // 1000003) + 1
    ufunc = np.floor_divide if name == "fdiv" else np.mod
    got = elementwise(
        tmp_path, lambda x, y: op(name, x, y), {"x": x, "y": y.astype(dtype)},
        DType.S32 if dtype is np.int32 else DType.S64, lanes,
    )  # fmt: skip
    np.testing.assert_array_equal(got, ufunc(x, y))
    for divisor in (1, 7, 8):
        got = elementwise(
            tmp_path / str(divisor),
            lambda x, y, d=divisor: op(name, x, k(d, x.dtype)), {"x": x, "y": y.astype(dtype)},
            DType.S32 if dtype is np.int32 else DType.S64, lanes,
        )  # fmt: skip
        np.testing.assert_array_equal(got, ufunc(x, divisor))


@LANES
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64])
@pytest.mark.parametrize("name", ["shl", "shr"])
def test_shifts_mask_their_amount(
    tmp_path: Path, name: str, dtype: type, lanes: int | None
) -> None:
    x, amount = ints(dtype), ints(np.int32)
    mask = np.iinfo(dtype).bits - 1
    ufunc = np.left_shift if name == "shl" else np.right_shift
    result = {np.int32: S32, np.uint32: U32, np.int64: DType.S64}[dtype]
    got = elementwise(tmp_path, lambda x, n: op(name, x, n), {"x": x, "n": amount}, result, lanes)
    np.testing.assert_array_equal(got, ufunc(x, (amount & mask).astype(dtype)))


EXACT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "abs": np.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "rne": np.rint, "sqrt": np.sqrt,
}  # fmt: skip


@LANES
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EXACT)
def test_exact_intrinsics(tmp_path: Path, name: str, dtype: type, lanes: int | None) -> None:
    x = SPECIAL.astype(dtype)
    result = F32 if dtype is np.float32 else F64
    got = elementwise(tmp_path, lambda x: call(name, x), {"x": x}, result, lanes)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, EXACT[name](x))


@LANES
def test_integer_intrinsics(tmp_path: Path, lanes: int | None) -> None:
    x = ints(np.int32, low=-(2**31) + 1)
    arrays = {"x": x}
    got = elementwise(tmp_path / "a", lambda x: call("abs", x), arrays, S32, lanes)
    np.testing.assert_array_equal(got, np.abs(x))
    got = elementwise(tmp_path / "s", lambda x: call("sign", x), arrays, S32, lanes)
    np.testing.assert_array_equal(got, np.sign(x))
    got = elementwise(tmp_path / "p", lambda x: call("popcount", x), arrays, S32, lanes)
    np.testing.assert_array_equal(got, np.bitwise_count(x.view(np.uint32)))


@LANES
def test_float_min_max_pass_nan_next_to_a_constant(tmp_path: Path, lanes: int | None) -> None:
    got = elementwise(
        tmp_path, lambda x: op("min", op("max", x, k(-1.0, F32)), k(1.0, F32)),
        {"x": SPECIAL}, F32, lanes,
    )  # fmt: skip
    np.testing.assert_array_equal(got, np.clip(SPECIAL, -1, 1))


@LANES
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, -1, -2])
def test_whole_powers(tmp_path: Path, exponent: int, lanes: int | None) -> None:
    x = np.linspace(-3, 3, 64).astype(np.float32)
    got = elementwise(
        tmp_path, lambda x: op("pow", x, k(float(exponent), F32)), {"x": x}, F32, lanes
    )
    np.testing.assert_allclose(got, x.astype(np.float64) ** exponent, rtol=5e-7)


def test_integer_power_wraps(tmp_path: Path) -> None:
    x, n = ints(np.uint32), np.arange(64, dtype=np.uint32)
    got = elementwise(tmp_path, lambda x, n: op("pow", x, n), {"x": x, "n": n}, U32, None)
    np.testing.assert_array_equal(got, np.power(x, n))


@LANES
def test_division_by_a_literal_zero(tmp_path: Path, lanes: int | None) -> None:
    got = elementwise(tmp_path, lambda x: op("div", x, k(0.0, F32)), {"x": SPECIAL}, F32, lanes)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, SPECIAL / np.float32(0))


@LANES
def test_select_with_condition_shared(tmp_path: Path, lanes: int | None) -> None:
    x = SPECIAL

    def expr(x: Expr) -> Expr:
        positive = op("gt", x, k(0.0, F32))
        return Select(positive, Select(positive, x, k(5.0, F32), F32), k(-1.0, F32), F32)

    got = elementwise(tmp_path, expr, {"x": x}, F32, lanes)
    np.testing.assert_array_equal(got, np.where(x > 0, x, np.float32(-1)))


def test_literals_outside_the_range_of_the_dtype(tmp_path: Path) -> None:
    x = np.zeros(16, np.float32)
    got = elementwise(tmp_path, lambda x: op("add", x, k(1e40, F32)), {"x": x}, F32)
    assert np.isposinf(got).all()


def test_shared_subexpressions_stay_shared(tmp_path: Path) -> None:
    """A chain of 200 doublings x + x is a tree of 2**200 nodes if sharing is lost."""

    def expr(x: Expr) -> Expr:
        for _ in range(200):
            x = op("mul", op("add", x, x), k(0.5, F32))
        return x

    x = np.linspace(-3, 3, 16).astype(np.float32)
    np.testing.assert_array_equal(elementwise(tmp_path, expr, {"x": x}, F32), x)


def test_deep_expressions_compile(tmp_path: Path) -> None:
    def expr(x: Expr) -> Expr:
        for _ in range(3000):
            x = op("add", x, k(1.0, F32))
        return x

    x = np.zeros(16, np.float32)
    assert (elementwise(tmp_path, expr, {"x": x}, F32) == 3000).all()


@LANES
def test_selects_and_shared_values_of_bool(tmp_path: Path, lanes: int | None) -> None:
    x, y = SPECIAL, np.roll(SPECIAL, 3)

    def expr(x: Expr, y: Expr) -> Expr:
        less = op("lt", x, y)
        chosen = Select(less, op("gt", x, k(0.0, F32)), op("ne", y, y), BOOL)
        return op("or", op("and", chosen, less), op("and", chosen, Unary("not", less, BOOL)))

    got = elementwise(tmp_path, expr, {"x": x, "y": y}, BOOL, lanes)
    np.testing.assert_array_equal(got, np.where(x < y, x > 0, y != y))


@LANES
def test_f16_arithmetic_rounds_to_f16(tmp_path: Path, lanes: int | None) -> None:
    f16 = DType.F16
    x, y = (np.random.default_rng(s).normal(size=64).astype(np.float16) for s in (0, 1))

    def expr(x: Expr, y: Expr) -> Expr:
        return op("mul", cast(x, f16), cast(y, f16))

    got = elementwise(tmp_path, expr, {"x": x, "y": y}, f16, lanes)
    np.testing.assert_array_equal(got, x * y)
