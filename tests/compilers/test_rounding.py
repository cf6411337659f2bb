"""Which operations round by themselves: f16 arithmetic, `fma`, `nofma`, on compiled code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.compilers.tvm import TvmCompiler, build
from edgekernelbench.compilers.tvm.emit import emit_module
from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy, aligned_empty
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.interpret.fma import fma
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.model import Target

VECTOR = "schedule for cpu { loops y (i by 16, vectorize i) }"
LOOPS = pytest.mark.parametrize("schedule", ["schedule for cpu { loops y (i) }", VECTOR],
                                ids=["serial", "vector"])  # fmt: skip
HOST = host_target()


def variant(**changes: object) -> Target:
    return HOST.model_copy(update=changes)


def compiled(
    text: str, folder: Path, inputs: dict[str, np.ndarray], target: Target = HOST
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Outputs of the compiled text and of the interpreter in the declared dtypes."""
    found = check_text(text)
    assert found.kernel is not None and found.program is not None, found.diagnostics
    folder.mkdir(exist_ok=True)
    built = TvmCompiler().compile(found.kernel, found.program, target, folder)
    assert built.artifact is not None, built.diagnostics
    outputs = {t.name: aligned_empty(t.shape, t.dtype) for t in found.program.outputs}
    LoadedKernel(folder).bind({k: aligned_copy(v) for k, v in inputs.items()}, {}, outputs)()
    with np.errstate(all="ignore"):
        return outputs, interpret(found.program, inputs, "declared")


def elementwise(expression: str, dtype: str, schedule: str, before: str = "") -> str:
    return f"""kernel k[N=1000](a: {dtype}[N], b: {dtype}[N], c: {dtype}[N]) -> (y: {dtype}[N]) {{
  compute {{ {before} y[i] = {expression} }}
  {schedule}
}}"""


def operands(dtype: type, cancel: bool = True) -> dict[str, np.ndarray]:
    """Random values; half the time c is the rounded -a * b, so that what is left is the error."""
    rng = np.random.default_rng(4)
    a, b, c = rng.normal(size=(3, 1000)).astype(dtype)
    if cancel:
        c[::2] = -(a * b)[::2]
    return {"a": a, "b": b, "c": c}


# ---------------------------------------------------------------- fma and nofma
@LOOPS
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_fma_rounds_once(tmp_path: Path, dtype: type, schedule: str) -> None:
    name = f"f{np.dtype(dtype).itemsize * 8}"
    call = f"fma({name}(a[i]), {name}(b[i]), {name}(c[i]))"
    x = operands(dtype)
    unit = np.finfo(dtype).eps  # a sum just below the middle between two numbers
    x["a"][:2], x["b"][:2], x["c"][:2] = (1 + unit) / 2, (1 - unit) * unit, 1 + unit
    got, want = compiled(elementwise(call, name, schedule), tmp_path, x)
    np.testing.assert_array_equal(got["y"], want["y"])
    np.testing.assert_array_equal(got["y"], fma(x["a"], x["b"], x["c"]))
    assert (got["y"] != x["a"] * x["b"] + x["c"]).sum() > 100  # two roundings are another thing


def test_fma_without_such_an_instruction(tmp_path: Path) -> None:
    plain = variant(mcpu="x86-64", mattr=()) if is_x86() else HOST
    x = operands(np.float32)
    text = elementwise("fma(a[i], b[i], c[i])", "f32", VECTOR)
    got, _ = compiled(text, tmp_path, x, plain)
    np.testing.assert_array_equal(got["y"], fma(x["a"], x["b"], x["c"]))


def is_x86() -> bool:
    import platform

    return platform.machine() in ("x86_64", "AMD64")


UNFUSED = {
    "a product": ("nofma(a[i] * b[i]) + c[i]", ""),
    "a sum": ("nofma(a[i] * b[i] + c[i])", ""),
    "a difference": ("nofma(c[i] - -a[i] * b[i])", ""),
    "a let": ("nofma({ let p = a[i] * b[i]  return p + c[i] })", ""),
    "a let outside": ("{ let p = a[i] * b[i]  return nofma(p + c[i]) }", ""),
    "a negated let": ("{ let p = -a[i] * b[i]  return nofma(c[i] - p) }", ""),
    "a stage that is inlined": ("nofma(p[i] + c[i])", "p[i: N] = a[i] * b[i]"),
    "a choice": ("nofma((a[i] * b[i] if a[i] < 9 else b[i]) + c[i])", ""),
    "a macro": ("nofma(mul_add(a[i], b[i], c[i]))", "def mul_add(x, y, z) = x * y + z "),
}


@LOOPS
@pytest.mark.parametrize("case", UNFUSED)
def test_nofma_rounds_twice(tmp_path: Path, case: str, schedule: str) -> None:
    expression, before = UNFUSED[case]
    x = operands(np.float32)
    got, want = compiled(elementwise(expression, "f32", schedule, before), tmp_path, x)
    np.testing.assert_array_equal(got["y"], x["a"] * x["b"] + x["c"])
    np.testing.assert_array_equal(got["y"], want["y"])


def test_without_nofma_this_host_fuses(tmp_path: Path) -> None:
    """Else the tests above show nothing."""
    if not is_x86():
        pytest.skip("whether products are fused is known of x86 with FMA only")
    x = operands(np.float32)
    fused = variant(mcpu="haswell", mattr=())
    text = elementwise("a[i] * b[i] + c[i]", "f32", VECTOR)
    got, _ = compiled(text, tmp_path, x, fused)
    assert (got["y"] != x["a"] * x["b"] + x["c"]).sum() > 100


@LOOPS
def test_error_free_product_and_sum(tmp_path: Path, schedule: str) -> None:
    """The classic uses: p + e is a * b exactly, s + e is a + b exactly."""
    two_sum = (
        "nofma({ let s = a[i] + b[i]  let t = s - a[i]  return (a[i] - (s - t)) + (b[i] - t) })"
    )
    x = operands(np.float32, cancel=False)
    wide = {k: v.astype(np.float64) for k, v in x.items()}
    product = elementwise("{ let p = a[i] * b[i]  return fma(a[i], b[i], -p) }", "f32", schedule)
    got, _ = compiled(product, tmp_path / "p", x)
    exact = wide["a"] * wide["b"]
    np.testing.assert_array_equal(got["y"] + (x["a"] * x["b"]).astype(np.float64), exact)
    got, _ = compiled(elementwise(two_sum, "f32", schedule), tmp_path / "s", x)
    exact = wide["a"] + wide["b"]
    np.testing.assert_array_equal(got["y"] + (x["a"] + x["b"]).astype(np.float64), exact)


def test_sums_of_unfused_products(tmp_path: Path) -> None:
    """Each product rounds before it is added: as one long sum in the order of k."""
    text = """kernel k[M=7, K=33](a: f32[M, K], b: f32[K]) -> (y: f32[M]) {
  compute { y[m] = sum[k: K](nofma(a[m, k] * b[k])) }
  schedule for cpu { loops y (m, k) }
}"""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(7, 33)).astype(np.float32), rng.normal(size=33).astype(np.float32)
    got, _ = compiled(text, tmp_path, {"a": a, "b": b})
    want = np.add.accumulate(a * b, axis=1, dtype=np.float32)[:, -1]
    np.testing.assert_array_equal(got["y"], want)


# ---------------------------------------------------------------- f16
HALF = [
    "f16(a[i]) * f16(b[i]) + f16(c[i])",
    "f16(a[i]) / (f16(b[i]) * f16(b[i]) + 0.1) - 1",
    "sqrt(abs(f16(a[i]))) * 0.3",
    "max(f16(a[i]), f16(b[i])) - min(f16(c[i]), 0.25)",
    "f16(a[i]) ** 3",
    "floor(f16(a[i]) * 7) / 7",
    "{ let h = f16(a[i])  let g = h * h + h  return g * h - 0.5 }",
    "f16(a[i]) * f16(b[i]) if f16(a[i]) * 3 < f16(c[i]) else -f16(c[i])",
    "f32(f16(a[i]) + f16(b[i])) * c[i]",
    "nofma(f16(a[i]) * f16(b[i]) + f16(c[i]))",
    "f16(s32(f16(a[i]) * 100) % 7) * f16(b[i])",
    "relu(f16(a[i]) + f16(q[i]))",
]


@LOOPS
@pytest.mark.parametrize("expression", HALF)
def test_every_f16_operation_rounds(tmp_path: Path, expression: str, schedule: str) -> None:
    text = elementwise(expression, "f16", schedule, "q[i: N] = f16(b[i]) * f16(c[i])")
    got, want = compiled(text, tmp_path, operands(np.float16))
    np.testing.assert_array_equal(got["y"], want["y"])


def test_f16_is_not_f32_rounded_at_the_end(tmp_path: Path) -> None:
    x = operands(np.float16)
    half = elementwise("f16(a[i]) * f16(b[i]) + f16(c[i])", "f16", VECTOR)
    got, _ = compiled(half, tmp_path / "half", x)
    wide, _ = compiled(elementwise("a[i] * b[i] + c[i]", "f16", VECTOR), tmp_path / "wide", x)
    np.testing.assert_array_equal(got["y"], x["a"] * x["b"] + x["c"])
    assert (got["y"] != wide["y"]).sum() > 100


FUNCTIONS = [
    "exp",
    "tanh",
    "sigmoid",
    "erf",
    "rsqrt",
    "log",
    "sin",
    "fast_exp",
    "fast_tanh",
    "silu",
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_f16_are_those_of_f32_rounded(tmp_path: Path, name: str) -> None:
    text = elementwise(f"{name}(abs(f16(a[i])) + 0.125)", "f16", VECTOR)
    got, want = compiled(text, tmp_path, operands(np.float16))
    steps = np.abs(got["y"].view(np.int16).astype(int) - want["y"].view(np.int16).astype(int))
    assert steps.max() <= 1  # where the f32 function is off by a hair next to a middle
    assert (steps == 0).mean() > 0.98


SUMS = {
    "serial": "loops y (m, n, k)",
    "tile in registers": "loops y (m by 2, n by 16, k, unroll m, vectorize n)",
}


@pytest.mark.parametrize("case", SUMS)
@pytest.mark.parametrize("sizes", [(5, 37, 19), (1, 1, 1), (4, 64, 32)])
def test_f16_sums_round_at_every_step(
    tmp_path: Path, case: str, sizes: tuple[int, int, int]
) -> None:
    m, k, n = sizes
    text = f"""kernel k[M={m}, K={k}, N={n}](a: f16[M, K], b: f16[K, N]) -> (y: f16[M, N]) {{
  compute {{ y[m, n] = sum[k: K](f16(a[m, k]) * f16(b[k, n])) }}
  schedule for cpu {{ {SUMS[case] if n > 1 else "loops y (m, n, k)"} }}
}}"""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(m, k)).astype(np.float16)
    b = rng.normal(size=(k, n)).astype(np.float16)
    got, want = compiled(text, tmp_path, {"a": a, "b": b})
    total = np.zeros((m, n), np.float16)
    for p in range(k):
        total = total + a[:, p : p + 1] * b[p]
    np.testing.assert_array_equal(got["y"], total)
    np.testing.assert_array_equal(want["y"], total)


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("lanes", ["", "schedule for cpu { loops y (m, vectorize k) }"])
def test_f16_reductions(tmp_path: Path, op: str, lanes: str) -> None:
    """In any order: a sum of 41 terms is within 41 half units of its largest partial sum."""
    out = "s32" if op.startswith("arg") else "f16"
    text = f"""kernel k[M=3, K=41](a: f16[M, K]) -> (y: {out}[M]) {{
  compute {{ y[m] = {op}[k: K](f16(a[m, k]) * 0.5 + 0.75) }}
  {lanes}
}}"""
    a = np.random.default_rng(1).uniform(-1, 1, (3, 41)).astype(np.float16)
    got, want = compiled(text, tmp_path, {"a": a})
    if op in ("sum", "prod"):
        wide = [v["y"].astype(np.float64) for v in (got, want)]
        np.testing.assert_allclose(*wide, rtol=41 * 2.0**-11)
    else:
        np.testing.assert_array_equal(got["y"], want["y"])


NATIVE = {
    "f16 of ARM": (
        variant(mcpu="cortex-a76", mattr=("+fullfp16", "+neon"),
                mtriple="aarch64-linux-gnu", vector_bits=128),
        ("fmla\tv", ".8h"), "fcvt",
    ),
    "f16 of AVX-512": (
        variant(mcpu="sapphirerapids", mattr=(), mtriple=None, vector_bits=512),
        ("ph\t", "vfmadd"), "vcvt",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NATIVE)
def test_targets_with_f16_units_use_them(case: str) -> None:
    """The products run in f16 registers, fused and without a conversion."""
    target, wanted, conversion = NATIVE[case]
    if target.mtriple is None and not is_x86():
        pytest.skip("compiled for the machine's own architecture")
    text = """kernel k[M=16, K=64, N=64](a: f16[M, K], b: f16[K, N]) -> (y: f16[M, N]) {
  compute { y[m, n] = sum[k: K](f16(a[m, k]) * f16(b[k, n])) }
  schedule for cpu { loops y (m by 4, n by 32, k, unroll m, vectorize n) }
}"""
    found = check_text(text)
    assert found.kernel is not None and found.program is not None
    module = lower(found.kernel, found.program, target).module
    assert module is not None
    spec = build.tvm_target(target)
    code = build.generate(build.lower(emit_module(module), spec), spec)
    lines = code.inspect_source("s").splitlines()
    assert any(all(part in line for part in wanted) for line in lines)
    assert not [line for line in lines if conversion in line]
