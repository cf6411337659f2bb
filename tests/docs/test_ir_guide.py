"""The IR guide: every fenced block is a complete kernel that does what the guide says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.compilers.tvm import TvmCompiler
from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy, aligned_empty
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.diagnostics import Diagnostic, render
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets.host import host_target

GUIDE = Path(__file__).parents[2] / "docs" / "ir.md"
TEXT = GUIDE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, flags=re.S | re.M)
KERNELS = [body for language, body in BLOCKS if language == "ekir"]
NAMES = [m.group(1) if (m := re.search(r"kernel (\w+)\[", k)) else "?" for k in KERNELS]
MAX_BYTES = 18 * 1024

Tensors = dict[str, np.ndarray]


def told(findings: tuple[Diagnostic, ...], text: str) -> str:
    return "\n".join(render(d, text) for d in findings)


def checked(text: str) -> tuple[Kernel, Program]:
    found = check_text(text)
    assert found.kernel is not None and found.program is not None, told(found.diagnostics, text)
    assert not found.diagnostics, told(found.diagnostics, text)
    return found.kernel, found.program


def drawn(program: Program, seed: int) -> Tensors:
    """Small integers and well-scaled floats; symmetric positive matrices where one is factored."""
    rng = np.random.default_rng(seed)
    out: Tensors = {}
    for t in program.inputs:
        if t.dtype.is_int:
            low, high = max(t.dtype.int_range[0], -9), min(t.dtype.int_range[1], 9)
            value = rng.integers(low, high, t.shape, endpoint=True)
        elif program.name == "chol":
            g = rng.standard_normal(t.shape)
            value = g @ g.T + np.eye(t.shape[0])
        else:
            value = rng.standard_normal(t.shape) / max(2, t.shape[-1] ** 0.5 if t.const else 2)
        out[t.name] = value.astype(t.dtype.numpy)
    return out


def ran(kernel: Kernel, program: Program, inputs: Tensors, folder: Path) -> Tensors:
    built = TvmCompiler().compile(kernel, program, host_target(), folder)
    assert built.artifact is not None, built.diagnostics
    outputs = {t.name: aligned_empty(t.shape, t.dtype) for t in program.outputs}
    for out in outputs.values():
        out.view(np.uint8)[...] = 0xA5
    arrays = {name: aligned_copy(value) for name, value in inputs.items()}
    constants = {t.name: arrays.pop(t.name) for t in program.inputs if t.const}
    LoadedKernel(folder).bind(arrays, constants, outputs)()
    return outputs


def agree(got: Tensors, want: Tensors, rtol: float) -> None:
    assert set(got) == set(want)
    for name, expected in want.items():
        scale = float(np.sqrt(np.mean(np.square(expected.astype(np.float64)))))
        np.testing.assert_allclose(got[name], expected, rtol, rtol * scale, err_msg=name)


def test_the_guide_is_short_and_all_its_blocks_are_kernels() -> None:
    assert len(TEXT.encode()) <= MAX_BYTES
    assert {language for language, _ in BLOCKS} == {"ekir"}
    assert len(KERNELS) == len(set(NAMES)) >= 12


@pytest.mark.parametrize("text", KERNELS, ids=NAMES)
def test_block_parses_verifies_and_interprets(text: str) -> None:
    kernel, program = checked(text)
    assert parse(print_kernel(kernel)).kernel == kernel
    inputs = drawn(program, 0)
    exact = interpret(program, inputs, mode="f64")
    agree(interpret(program, inputs, mode="declared"), exact, 2e-4)
    assert all(np.isfinite(v).all() for v in exact.values())


@pytest.mark.parametrize("text", KERNELS, ids=NAMES)
def test_block_compiles_and_agrees_with_the_interpreter(text: str, tmp_path: Path) -> None:
    kernel, program = checked(text)
    lowered = lower(kernel, program, host_target())
    assert lowered.module is not None, told(lowered.diagnostics, text)
    assert not lowered.diagnostics, told(lowered.diagnostics, text)
    inputs = drawn(program, 1)
    agree(ran(kernel, program, inputs, tmp_path), interpret(program, inputs, mode="f64"), 2e-4)


# ---------------------------------------------------------------- claims of the prose
HEADER = "kernel k[N=24](x: f32[N], w: const f32[N, N], idx: s32[N], q: s8[N]) -> (y: f32[N])"

LEGAL = [
    "y[i] = x[reflect(i - 2, N)]",
    "y[i] = x[reflect(idx[i], N)]",
    "y[i] = x[i - 1] if i != 0 else x[i]",
    "y[i] = 0 if i == 0 else x[i - 1]",
    "y[i] = x[i] if i > 0 and x[i - 1] > 0 else 7",
    "y[i] = x[i - 3] if 0 <= i - 3 < N else 1",
    "y[i] = sum[p: N where p <= i](x[i - p])",
    "y[i] = pad(exp(x[i - 1]), x[i])",
    "y[i] = x[i] * (N / 8) + (x[i] > 0) + f32(idx[i])",
    "y[x] = idx[x] + 0.5",
    "let P = max(N//2, 1)  y[i] = x[i] if i < P else elu(x[i])",
    "e[i: N] = x[i] * 2  y[i] = e[i] / sum[k: N](e[k]) + sum[k: N](x[k])",
    "y[i] = u32(s8(x[i])) + u32(q[i])",
    "seq t: N reversed { y[t] = pad(y[t+1], 1) * 0.5 + x[t] }",
    "template f(v, n) -> (a, b) { a[i: n] = v[i]  b[i: n] = v[i] * N }\n"
    "p, r = f(w[1], N//2)  y[i] = pad(p[i], 0) + edge(r[i])",
]
REFUSED = [
    ("y[i] = x[i - 1] * (i > 0)", "E300"),
    ("y[i] = x[idx[i]]", "E300"),
    ("y[i] = sum[k: N](x[k + i - 2]) if i == 2 else 0", "E302"),
    ("y[i] = x[i // idx[i] % 2]", "E310"),
    ("y[i] = sum[i: N](x[i])", "E203"),
    ("a[i] = x[i]  y[i] = a[i]", "E222"),
    ("y[i] = pad(x[i - 1] * x[i + 1], 0)", "E225"),
    ("y[i] = u32(idx[i]) + idx[i]", "E232"),
    ("z: s8[i: N] = idx[i]  y[i] = z[i]", "E224"),
    ("let s = x[0]  y[i] = x[i] * s", "E216"),
    ("seq t: N { s = x[t] }  y[i] = s", "E320"),
    ("y[i] += x[i]", "E141"),
    ("y[i] = sum[k: N] x[k]", "E151"),
]


@pytest.mark.parametrize("body", LEGAL)
def test_claims_about_what_is_legal(body: str) -> None:
    text = f"{HEADER} {{ compute {{ {body} }} }}"
    found = check_text(text)
    assert found.program is not None, told(found.diagnostics, text)


@pytest.mark.parametrize(("body", "code"), REFUSED)
def test_claims_about_what_is_refused(body: str, code: str) -> None:
    found = check_text(f"{HEADER} {{ compute {{ {body} }} }}")
    assert code in {d.rule.code for d in found.diagnostics}


LAYERED = """kernel k[M=20, K=24, N=50](X: f32[M, K], W: const f32[K, N]) -> (Y: f32[M, N]) {{
  compute {{
    wd[k: K, j: N] = W[k, j] * 2
    acc[i: M, j: N] = sum[k: K](X[i, k] * wd[k, j])
    m[i: M] = max[j: N](acc[i, j])
    seq t: M {{
      h[t, j: N] = pad(h[t-1, j], 0) + acc[t, j] - m[t]
      Y[t, j] = h[t, j] * sum[k: K](X[t, k])
    }}
  }}
  schedule for cpu {{ {} }}
  memory for cpu {{ {} }}
}}"""

LEGAL_LINES = [
    ("loops acc (parallel i by 8, parallel j by 32, k by 7, unroll i, k, vectorize j)", ""),
    ("loops acc (parallel rows = i by min(8, M), j by ?{16, 32}, k, unroll i, vectorize j)", ""),
    ("loops m (parallel i by 4, unroll i, vectorize j)", ""),
    ("loops acc (parallel k by 7, i by 4, k, unroll i, vectorize j)", ""),
    ("loops m (parallel j by 16, i, vectorize j)", ""),
    ("loops acc (parallel i by 4, k, i, vectorize j)  place m in acc.i0", ""),
    ("loops Y (j by 8, vectorize j)  place h in Y.j0  loops h (j by 64, vectorize j)", ""),
    ("loops Y.sum (k by 8, vectorize k)  loops h (parallel j by 16, vectorize j)", ""),
    ("", "layout wd [k, j] -> [j // 32, k, j % 32]  layout acc [i, j] -> [j, i]"),
    ("loops X.packed (k, i)", "layout X [i, k] -> [k, i]"),
    ("place wd in acc.k  loops acc (i, k, j)", ""),
    ("inline wd", ""),
]  # fmt: skip
REFUSED_LINES = [
    ("loops acc (i, j)", "", "E410"),
    ("loops Y (t, j)", "", "E410"),
    ("loops acc (i by 8, j, k, i by 2)", "", "E411"),
    ("loops acc (i by 32, j, k, i)", "", "E412"),
    ("loops acc (i, parallel j, k)", "", "E414"),
    ("loops acc (parallel k by 8, i, k, j)  place m in acc.k0", "", "E424"),
    ("loops acc (i, vectorize j, k)", "", "E415"),
    ("loops acc (i, unroll j, unroll k)", "", "E416"),
    ("loops m (i by 4, j by 8, i, vectorize j)", "", "E417"),
    ("loops acc (i, k, j)  place m in acc.k", "", "E424"),
    ("loops m (parallel i, j)  place acc in m.i  loops acc (parallel i, j, k)", "", "E414"),
    ("loops m (i, vectorize j)  place acc in m.i", "", "E423"),
    ("loops h (vectorize j)  place acc in h.j", "", "E420"),
    ("inline acc", "", "E427"),
    ("", "layout Y [t, j] -> [j, t]", "E512"),
    ("", "layout W [k, j] -> [j // 32, k]", "E515"),
]


@pytest.mark.parametrize(("schedule", "memory"), LEGAL_LINES)
def test_claims_about_legal_layers(schedule: str, memory: str, tmp_path: Path) -> None:
    text = LAYERED.format(schedule, memory)
    kernel, program = checked(text)
    lowered = lower(kernel, program, host_target())
    assert lowered.module is not None, told(lowered.diagnostics, text)
    inputs = drawn(program, 2)
    agree(ran(kernel, program, inputs, tmp_path), interpret(program, inputs, mode="f64"), 2e-4)


@pytest.mark.parametrize(("schedule", "memory", "code"), REFUSED_LINES)
def test_claims_about_refused_layers(schedule: str, memory: str, code: str) -> None:
    kernel, program = checked(LAYERED.format(schedule, memory))
    lowered = lower(kernel, program, host_target())
    assert lowered.module is None
    assert code in {d.rule.code for d in lowered.diagnostics}
