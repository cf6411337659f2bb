"""What the interpreter does with each part of the core, and with programs that are wrong."""

from __future__ import annotations

import resource
import time
import tracemalloc

import numpy as np
import pytest

from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.elaborate import elaborate
from edgekernelbench.ir.interpret import InterpretError, interpret, limits
from edgekernelbench.ir.parse import parse

S32, F32, BOOL = DType.S32, DType.F32, DType.BOOL


def program(text: str, **sizes: int) -> core.Program:
    kernel = parse(text).kernel
    assert kernel is not None, parse(text).diagnostics
    result = elaborate(kernel, sizes)
    assert result.program is not None, result.diagnostics
    return result.program


def kernel(inputs: str, outputs: str, body: str, **sizes: int) -> core.Program:
    return program(f"kernel k({inputs}) -> ({outputs}) {{ compute {{ {body} }} }}", **sizes)


def run(text: core.Program, mode: str = "f64", **inputs: np.ndarray) -> np.ndarray:
    (result,) = interpret(text, inputs, mode).values()  # type: ignore[arg-type]
    return result


def scalar_program(expr: core.Expr, inputs: tuple[core.Tensor, ...] = ()) -> core.Program:
    """One scalar output ``y`` with the value of ``expr``."""
    y = core.Tensor("y", expr.dtype, (), "output")
    stage = core.Stage("y", y, (), (), expr)
    return core.Program("p", (), inputs, (y,), (), (stage,), 100)


def vector_program(
    expr: core.Expr, axis: core.Var, extent: int, inputs: tuple[core.Tensor, ...] = ()
) -> core.Program:
    y = core.Tensor("y", expr.dtype, (extent,), "output")
    stage = core.Stage("y", y, (axis,), (core.Axis(axis, extent),), expr)
    return core.Program("p", (), inputs, (y,), (), (stage,), 100)


# ---------------------------------------------------------------- casts and operators
CASTS = [
    (DType.F64, S32, [3e9, -3e9, 1.9, -1.9], [2**31 - 1, -(2**31), 1, -1]),
    (DType.F64, S32, [np.nan, np.inf, -np.inf], [0, 2**31 - 1, -(2**31)]),
    (DType.F64, DType.U8, [300.0, -5.0, 254.99], [255, 0, 254]),
    (DType.F64, DType.S64, [1e19, -1e19, 2.0**53 + 2], [2**63 - 1, -(2**63), 2**53 + 2]),
    (DType.F64, DType.U32, [5e9, -1.0, 4294967295.0], [2**32 - 1, 0, 2**32 - 1]),
    (DType.F32, S32, [2147483648.0, 3.0], [2**31 - 1, 3]),
    (S32, DType.S8, [200, -200, 127], [-56, 56, 127]),
    (S32, DType.U32, [-1, 7], [2**32 - 1, 7]),
    (DType.U32, S32, [2**32 - 1, 7], [-1, 7]),
    (S32, BOOL, [0, -3], [False, True]),
    (DType.F64, BOOL, [0.0, 0.25, np.nan], [False, True, True]),
    (BOOL, S32, [True, False], [1, 0]),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["f64", "declared"])
@pytest.mark.parametrize(("source", "target", "values", "want"), CASTS)
def test_casts(source: DType, target: DType, values: list, want: list, mode: str) -> None:
    x = core.Tensor("x", source, (len(values),), "input")
    i = core.Var("i", 0)
    vector = core.Cast(core.Load(x, (core.VarRef(i),)), target)
    data = np.array(values).astype(source.numpy)
    got = run(vector_program(vector, i, len(values), (x,)), mode, x=data)
    np.testing.assert_array_equal(got, np.array(want, target.numpy))
    for k in range(len(values)):  # scalars take another path than arrays
        one = core.Cast(core.Load(x, (core.Const(k, S32),)), target)
        assert run(scalar_program(one, (x,)), mode, x=data) == np.array(want[k], target.numpy)


INTEGERS = [
    ("a // b", "s32", [7, -7, -1], [2, 2, 3], [3, -4, -1]),
    ("a % b", "s32", [7, -7, -1], [2, 2, 3], [1, 1, 2]),
    ("a >> b", "s32", [-8, -8, 5], [1, 33, 32], [-4, -4, 5]),
    ("a << b", "s32", [1, 3, 1], [4, 32, 33], [16, 3, 2]),
    ("a * b", "u32", [2654435761, 1 << 31, 5], [3, 2, 5], [3668339987, 0, 25]),
    ("a - b", "u32", [0, 3, 1], [1, 1, 2], [2**32 - 1, 2, 2**32 - 1]),
    ("a >> b", "u32", [2**32 - 1, 8, 1], [28, 1, 32], [15, 4, 1]),
    ("a & b", "s32", [6, -1, 5], [3, 7, 2], [2, 7, 0]),
    ("a ^ b", "s32", [6, -1, 5], [3, 7, 2], [5, -8, 7]),
    ("popcount(a)", "s32", [-1, 0, 7], [0, 0, 0], [32, 0, 3]),
    ("~a", "s32", [-1, 0, 7], [0, 0, 0], [0, -1, -8]),
    ("abs(a) + sign(b)", "s32", [-4, 0, 7], [-2, 0, 3], [3, 0, 8]),
    ("min(a, b) * 100 + max(a, b)", "s32", [1, 2, -1], [2, 1, -1], [102, 102, -101]),
]


@pytest.mark.parametrize(("text", "dtype", "a", "b", "want"), INTEGERS)
def test_integer_operators(text: str, dtype: str, a: list, b: list, want: list) -> None:
    body = f"y[i] = {{ let a = x[i]  let b = z[i]  return {dtype}({text}) }}"
    if "//" in text or "%" in text:
        body = body.replace("let b = z[i]", "let b = clamp(z[i], 1, 9)")
    p = kernel(f"x: {dtype}[3], z: {dtype}[3]", f"y: {dtype}[3]", body)
    kind = DType(dtype).numpy
    got = run(p, x=np.array(a, kind), z=np.array(b, kind))
    np.testing.assert_array_equal(got, np.array(want, kind))


def test_modes_differ_in_rounding_only() -> None:
    p = kernel("x: f32[1]", "y: f32[1]", "h: f16[i: 1] = x[i] + 1\n y[i] = h[i] * 3")
    x = np.array([1.0003], np.float32)
    exact = (float(x[0]) + 1) * 3
    assert run(p, "f64", x=x)[0] == exact
    rounded = np.float32(np.float16(x[0] + np.float32(1))) * np.float32(3)
    got = run(p, "declared", x=x)
    assert got.dtype == np.float32 and got[0] == rounded != exact


def test_tables_round_in_declared_mode_only() -> None:
    p = kernel("x: f32[1]", "y: f32[1]", "table T: f32[2] = [0.1, 0.7]\n y[i] = x[i] * T[1]")
    one = np.ones(1, np.float32)
    assert run(p, "f64", x=one)[0] == 0.7
    assert run(p, "declared", x=one)[0] == np.float32(0.7)


# ---------------------------------------------------------------- reductions
def test_empty_reductions() -> None:
    body = """y[i, o] = {
      let a = sum[k: 0..i](x[k])    let b = prod[k: 0..i](x[k])
      let c = argmax[k: 0..i](x[k]) let d = argmin[k: 0..i](x[k])
      let e = 1 if any[k: 0..i](x[k] > 0) else 0
      let f = 1 if all[k: 0..i](x[k] > 0) else 0
      let g = max[k: 0..i](x[k])    let h = min[k: 0..i](x[k])
      return a if o == 0 else (b if o == 1 else (c if o == 2 else (d if o == 3 else
        (e if o == 4 else (f if o == 5 else (g if o == 6 else h))))))
    }"""
    got = run(kernel("x: s32[3]", "y: s32[3, 8]", body), x=np.array([2, 3, 5], np.int32))
    assert got[0].tolist() == [0, 1, -1, -1, 0, 1, -(2**31), 2**31 - 1]
    assert got[1].tolist() == [2, 2, 0, 0, 1, 1, 2, 2]
    assert got[2].tolist() == [5, 6, 1, 0, 1, 1, 3, 2]
    body = "y[i] = max[k: 0..i](x[k])  z[i] = min[k: 0..i](x[k])"
    infinite = interpret(
        kernel("x: f32[1]", "y: f32[1], z: f32[1]", body), {"x": np.ones(1, np.float32)}
    )
    assert infinite["y"] == -np.inf and infinite["z"] == np.inf


def test_argmax_positions_ties_and_exclusion() -> None:
    body = """y[i] = argmax[k: 1..3, l: 2](x[i, k, l])
              z[i] = argmin[k: 3, l: 2 where x[i, k, l] > 1](x[i, k, l])"""
    x = np.array([[[9, 9], [2, 5], [5, 1]], [[0, 0], [1, 1], [1, 0]]], np.int32)
    p = kernel("x: s32[2, 3, 2]", "y: s32[2], z: s32[2]", body)
    got = interpret(p, {"x": x})
    assert got["y"].tolist() == [3, 2]  # flat position counts from 0 of each axis
    assert got["z"].tolist() == [2, -1]  # excluded all: -1


def test_infinities_win_an_argmax_and_nan_does_not() -> None:
    p = kernel("x: f32[3, 3]", "y: s32[3]", "y[i] = argmax[k: 3](x[i, k])")
    inf, nan = np.inf, np.nan
    x = np.array([[-inf, -inf, -inf], [nan, 1, 2], [nan, nan, nan]], np.float32)
    assert run(p, x=x).tolist() == [0, 2, 0]


def test_nan_passes_through_max() -> None:
    p = kernel(
        "x: f32[2]", "y: f32[2]", "y[i] = max(max[k: 2](x[k]), 0) if i == 0 else min(x[0], x[1])"
    )
    assert np.isnan(run(p, x=np.array([1, np.nan], np.float32))).all()


def test_masked_sum_ignores_nan_and_inf_of_skipped_elements() -> None:
    """Also on the matrix product path: large enough, factors over few axes each."""
    body = "y[i, j] = sum[k: 64 where k < n[i]](a[i, k] * b[k, j])"
    p = kernel("a: f32[16, 64], b: f32[64, 16], n: s32[16]", "y: f32[16, 16]", body)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(16, 64)), rng.normal(size=(64, 16))
    b[40:] = np.nan
    a[:, 50:] = np.inf
    n = np.arange(16, dtype=np.int32) * 2
    want = [a[i, : n[i]] @ b[: n[i]] for i in range(16)]
    np.testing.assert_allclose(run(p, a=a, b=b, n=n), want, rtol=1e-12)


def test_integer_products_are_exact_beyond_float64() -> None:
    p = kernel(
        "a: s32[32, 64], b: s32[64, 32]",
        "y: s64[32, 32]",
        "y[i, j] = sum[k: 64](s64(a[i, k]) * s64(b[k, j]))",
    )
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-(2**31), 2**31, s).astype(np.int32) for s in ((32, 64), (64, 32)))
    want = a.astype(object) @ b.astype(object)
    wrapped = (want + 2**63) % 2**64 - 2**63
    assert (run(p, a=a, b=b) == wrapped.astype(np.int64)).all()


def test_u32_sums_wrap() -> None:
    p = kernel(
        "a: u32[64, 64], b: u32[64, 64]",
        "y: u32[64, 64]",
        "y[i, j] = sum[k: 64](a[i, k] * b[k, j] - b[i, k])",
    )
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 2**32, (64, 64)).astype(np.uint32) for _ in range(2))
    want = (a.astype(np.uint64) @ b.astype(np.uint64) - b.sum(1, dtype=np.uint64)[:, None]) % 2**32
    assert (run(p, a=a, b=b) == want).all()


def test_sums_and_differences_of_products() -> None:
    """A complex product: each part is a sum of two matrix products."""
    body = """re[i, j] = sum[k: 40](a[i, k] * c[k, j] - b[i, k] * d[k, j])
              im[i, j] = sum[k: 40](-(a[i, k] * d[k, j]) - b[i, k] * c[k, j] + 0.5)"""
    p = kernel(
        "a: f32[30, 40], b: f32[30, 40], c: f32[40, 30], d: f32[40, 30]",
        "re: f32[30, 30], im: f32[30, 30]",
        body,
    )
    rng = np.random.default_rng(0)
    a, b, c, d = (rng.normal(size=s) for s in ((30, 40), (30, 40), (40, 30), (40, 30)))
    got = interpret(p, {"a": a, "b": b, "c": c, "d": d})
    np.testing.assert_allclose(got["re"], a @ c - b @ d, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(got["im"], 20 - a @ d - b @ c, rtol=1e-9, atol=1e-12)


def test_ties_across_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "y[i] = argmax[k: 6, l: 5](x[k, l] * i)  z[i] = argmin[k: 6, l: 5](x[k, l] * i)"
    p = kernel("x: s32[6, 5]", "y: s32[3], z: s32[3]", body)
    x = np.random.default_rng(2).integers(0, 3, (6, 5)).astype(np.int32)
    for lanes in (1, 2, 7, 11, 20):
        monkeypatch.setattr(limits, "PLAIN_LANES", lanes)
        monkeypatch.setattr(limits, "LEAST_LANES", lanes)
        got = interpret(p, {"x": x})
        assert got["y"].tolist() == [0, x.argmax(), x.argmax()]
        assert got["z"].tolist() == [0, x.argmin(), x.argmin()]


def test_reductions_ahead_of_a_stage_are_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PLAIN_LANES", 24)
    monkeypatch.setattr(limits, "LEAST_LANES", 24)
    body = "each c: 5 { y[c, j: 9, i: 6] = x[c, j] + sum[k: 9](x[c, k] * i) }"
    p = kernel("x: f32[5, 9]", "y: f32[5, 9, 6]", body)
    x = np.random.default_rng(0).normal(size=(5, 9))
    want = x[:, :, None] + x.sum(1)[:, None, None] * np.arange(6)
    np.testing.assert_allclose(run(p, x=x), want, rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------- loops
def test_each_iterations_are_kept_apart() -> None:
    body = """each c: C { seq t: 4 {
      z[k: 2] = x[c, t] + k
      h[t, k: 2] = pad(h[t-1, k], c) + z[k]
      y[c, t] = h[t, 1] - z[0]
    } }"""
    text = f"kernel k[C=3](x: f32[C, 4]) -> (y: f32[C, 4]) {{ compute {{ {body} }} }}"
    for count in (1, 3, 40):
        x = np.random.default_rng(0).normal(size=(count, 4))
        z = x[:, :, None] + np.arange(2)
        h = np.arange(count)[:, None, None] + z.cumsum(1)
        got = run(program(text, C=count), x=x)
        np.testing.assert_allclose(got, h[:, :, 1] - z[:, :, 0])


def test_each_that_needs_much_private_memory_runs_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = "each c: 50 { z[k: 8] = x[c] * k\n y[c] = sum[k: 8](z[k]) }"
    p = kernel("x: f32[50]", "y: f32[50]", body)
    x = np.random.default_rng(0).normal(size=50)
    monkeypatch.setattr(limits, "PRIVATE_BYTES", 8 * 8 * 7)
    np.testing.assert_allclose(run(p, x=x), x * 28)


# ---------------------------------------------------------------- programs that are wrong
def load(tensor: core.Tensor, *indices: core.Expr) -> core.Load:
    return core.Load(tensor, indices)


X = core.Tensor("x", F32, (4,), "input")
I = core.Var("i", 0)  # noqa: E741
PLUS_ONE = core.Binary("add", core.VarRef(I), core.Const(1, S32), S32)
INSIDE = core.Binary("lt", PLUS_ONE, core.Const(4, S32), BOOL)
ONES = np.ones(4, np.float32)


def test_reads_out_of_range_are_errors() -> None:
    with pytest.raises(InterpretError, match=r"'y' reads 'x' out of range: index 4 .* extent is 4"):
        run(vector_program(load(X, PLUS_ONE), I, 4, (X,)), x=ONES)
    with pytest.raises(InterpretError, match="out of range"):
        run(scalar_program(load(X, core.Const(-1, S32)), (X,)), x=ONES)
    n = core.Tensor("n", S32, (4,), "input")
    gather = load(X, load(n, core.VarRef(I)))
    with pytest.raises(InterpretError, match="index 9"):
        run(vector_program(gather, I, 4, (X, n)), x=ONES, n=np.array([0, 9, 1, 2], np.int32))


def test_the_untaken_branch_may_read_anything() -> None:
    zero = core.Const(0.0, F32)
    good = core.Select(INSIDE, load(X, PLUS_ONE), zero, F32)
    assert run(vector_program(good, I, 4, (X,)), x=ONES).tolist() == [1, 1, 1, 0]
    wrong_branch = core.Select(INSIDE, zero, load(X, PLUS_ONE), F32)
    with pytest.raises(InterpretError, match="out of range"):
        run(vector_program(wrong_branch, I, 4, (X,)), x=ONES)
    not_lazy = core.Binary("and", INSIDE, core.Binary("gt", load(X, PLUS_ONE), zero, BOOL), BOOL)
    with pytest.raises(InterpretError, match="out of range"):
        run(vector_program(not_lazy, I, 4, (X,)), x=ONES)


def test_integer_division_by_zero() -> None:
    n = core.Tensor("n", S32, (4,), "input")
    here = load(n, core.VarRef(I))
    ratio = core.Binary("fdiv", core.Const(7, S32), here, S32)
    data = np.array([1, 0, 2, 3], np.int32)
    with pytest.raises(InterpretError, match="'y' divides an integer by zero"):
        run(vector_program(ratio, I, 4, (n,)), n=data)
    positive = core.Binary("gt", here, core.Const(0, S32), BOOL)
    guarded = core.Select(positive, ratio, core.Const(-1, S32), S32)
    assert run(vector_program(guarded, I, 4, (n,)), n=data).tolist() == [7, -1, 3, 2]


def test_unwritten_history_is_poison() -> None:
    h = core.Tensor("h", F32, (4,), "stage")
    y = core.Tensor("y", F32, (4,), "output")
    t = core.Var("t", 0)
    at = core.VarRef(t)
    ahead = core.Binary("sub", core.Const(3, S32), at, S32)
    stages = (
        core.Stage("h", h, (t,), (), core.Const(1.0, F32)),
        core.Stage("y", y, (t,), (), load(h, ahead)),
    )
    loop = core.Loop("seq", t, 0, 4, False, stages)
    got = run(core.Program("p", (), (), (y,), (), (loop,), 1))
    assert np.isnan(got[:2]).all() and (got[2:] == 1).all()


BAD_INPUTS = [
    ({}, "input 'x' is missing"),
    ({"x": ONES, "z": ONES}, "unknown input 'z'; the inputs are x"),
    ({"x": ONES[:3]}, r"shape \(3,\), declared is \(4,\)"),
    ({"x": ONES.astype(np.int32)}, "dtype int32, declared is f32"),
    ({"x": [1.0] * 4}, "is a list, not an array"),
]


@pytest.mark.parametrize(("inputs", "message"), BAD_INPUTS)
def test_inputs_are_checked(inputs: dict, message: str) -> None:
    p = vector_program(load(X, core.VarRef(I)), I, 4, (X,))
    with pytest.raises(InterpretError, match=message):
        interpret(p, inputs)


def test_float64_inputs_are_for_f64_mode() -> None:
    p = vector_program(load(X, core.VarRef(I)), I, 4, (X,))
    fine = np.full(4, 1 + 2.0**-40)
    assert (interpret(p, {"x": fine})["y"] == fine).all()
    with pytest.raises(InterpretError, match="dtype float64"):
        interpret(p, {"x": fine}, "declared")


def test_inputs_may_be_strided_and_stay_unchanged() -> None:
    p = kernel("x: f32[3, 4]", "y: f32[4, 3]", "y[i, j] = x[j, i] * 2")
    x = np.arange(24, dtype=np.float32).reshape(4, 6).T[::2]
    kept = x.copy()
    assert (run(p, x=x) == 2 * kept.T).all()
    assert (x == kept).all()


def test_outputs_are_fresh() -> None:
    p = kernel("x: f32[3]", "y: f32[3]", "y[i] = x[i]")
    x = np.ones(3)
    run(p, x=x)[:] = 7
    assert (x == 1).all()


# ---------------------------------------------------------------- depth and size
def test_deep_expressions() -> None:
    expr: core.Expr = load(X, core.VarRef(I))
    for _ in range(3000):
        expr = core.Binary("add", expr, core.Const(1.0, F32), F32)
    assert run(vector_program(expr, I, 4, (X,)), x=ONES).tolist() == [3001.0] * 4
    for _ in range(3000):
        expr = core.Unary("neg", expr, F32)
    with pytest.raises(InterpretError, match="nested more than 5000 deep"):
        run(vector_program(expr, I, 4, (X,)), x=ONES)


def test_nested_reductions_are_compiled_once() -> None:
    """Each level would double the work if a body were compiled for each way to sum it."""
    expr: core.Expr = load(X, core.Const(0, S32))
    for level in range(60):
        axis = core.ReduceAxis(core.Var("k", 10 + level), core.Const(0, S32), core.Const(1, S32), 1)
        expr = core.Reduce("sum", (axis,), None, expr, F32)
    assert run(scalar_program(expr, (X,)), x=ONES) == 1


def test_temporaries_are_bounded() -> None:
    """|x - y| over 2000 x 2000 x 30: a full grid would take 960 MB."""
    body = "d[i, j] = sum[k: 30](abs(x[i, k] - z[j, k]))"
    p = kernel("x: f32[2000, 30], z: f32[1000, 30]", "d: f32[2000, 1000]", body)
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2000, 30)), rng.normal(size=(1000, 30))
    tracemalloc.start()
    got = run(p, x=x, z=z)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < got.nbytes + (64 << 20)
    np.testing.assert_allclose(got[7], np.abs(x[7] - z).sum(1))


def test_reductions_inside_a_cut_stage_are_computed_once() -> None:
    """The stage is cut along both axes; its row sums must not be recomputed for each piece."""
    body = "y[i, j] = exp(x[i, j]) / sum[k: 3000](exp(x[i, k])) + max[p: 500, q: 3000](x[p, q])"
    p = kernel("x: f32[500, 3000]", "y: f32[500, 3000]", body)
    x = np.random.default_rng(0).normal(size=(500, 3000))
    want = np.exp(x) / np.exp(x).sum(1, keepdims=True) + x.max()
    np.testing.assert_allclose(run(p, x=x), want)


def test_time_limit() -> None:
    body = "seq a: 1000 { seq b: 1000 { seq c: 1000 { h[a, b, c] = x[0] } } }\n y[i] = h[9, 9, 9]"
    p = kernel("x: f32[1]", "y: f32[1]", body.replace("1000", "200"))
    started = time.monotonic()
    with pytest.raises(InterpretError, match="the time limit ran out, in stage 'h'"):
        interpret(p, {"x": np.ones(1, np.float32)}, limit_s=0.2)
    assert time.monotonic() - started < 5


def test_too_much_memory() -> None:
    p = kernel("x: f32[1]", "y: f32[1]", "h[a: 30000, b: 30000] = x[0]\n y[i] = h[9, 9]")
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, before[1]))
    try:
        with pytest.raises(InterpretError, match="needs more memory than there is"):
            interpret(p, {"x": np.ones(1, np.float32)})
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
