# ruff: noqa: E501 (kernel texts)
"""Reductions split over threads, compiled: right, and the same bits on every run."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.compilers.tvm.compiler import compile_module
from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy, aligned_empty
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets.host import host_target
from tests.ir.combiner_cases import BEST, LSE, WELFORD
from tests.lowering.support import compare, draw_inputs, load_text

HEAD = "[N=5000, M=24](x: f32[N, M], q: s8[N])"
CASES = {
    "sum": ("", "(y: f32)", "y = sum[n: N, m: M](x[n, m])", "loops y (parallel n by 300, n, vectorize m)"),
    "sum_of_columns": (
        "", "(y: f32[M])", "y[m] = sum[n: N](x[n, m])", "loops y (parallel n by 300, n, vectorize m)",
    ),
    "argmax": (
        "", "(y: s32, z: s32)", "y = argmax[n: N](x[n, 0])  z = argmin[n: N](q[n])",
        "loops y (parallel n by 300, vectorize n)  loops z (parallel n by 20, n)",
    ),
    "softmax": (
        LSE, "(y: f32[N])",
        "m, s = lse[n: N](x[n, 1], 1)  y[n] = exp(x[n, 1] - m) / s",
        "loops m (parallel n by 300, vectorize n)",
    ),
    "moments": (
        WELFORD, "(y: f32[M], z: f32[M])",
        "y[m], v[m: M], c[m: M] = welford[n: N](x[n, m], 0, 1)  z[m] = v[m] / c[m]",
        "loops y (parallel n by 300, n, vectorize m)",
    ),
    "scatter": (
        "", "(y: s32[32], z: f32[M])",
        "y[v] = sum[n: N where q[n] == v](1)  z[v] = sum[n: N where q[n] == v](x[n, v])",
        "loops y (parallel n by 300, n, scatter v)  loops z (parallel n by 300, n, scatter v)",
    ),
    "scatter_of_rows": (
        "", "(y: f32[24, M], z: f32[24])",
        "y[v, m] = sum[n: N where q[n] == v](x[n, m])  z[v] = max[n: N where q[n] == v](x[n, 0])",
        "loops y (parallel n by 300, n, scatter v, vectorize m)  loops z (parallel n by 50, n, scatter v)",
    ),
    "best_with_scores_inside": (
        BEST, "(y: f32, z: s32)",
        "s[n: N] = sum[m: M](x[n, m] * x[0, m])  y, z = best[n: N](s[n], n)",
        "loops y (parallel n by 300, n)  place s in y.n0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_right_and_the_same_on_every_run(tmp_path: Path, name: str) -> None:
    before, outputs, body, lines = CASES[name]
    text = (
        f"{before}kernel k{HEAD} -> {outputs} {{\n"
        f"  compute {{ {body} }}\n  schedule for cpu {{ {lines} }}\n}}\n"
    )
    kernel, program = load_text(text)
    module = lower(kernel, program, host_target()).module
    assert module is not None and ".parts" in module.nest
    assert compile_module(module, program, host_target(), tmp_path).artifact is not None
    data = {n: aligned_copy(v) for n, v in draw_inputs(program, 5).items()}
    made = {t.name: aligned_empty(t.shape, t.dtype) for t in program.outputs}
    call = LoadedKernel(tmp_path).bind(data, {}, made)
    call()
    first = {n: v.copy() for n, v in made.items()}
    for tensor in program.outputs:
        compare(first[tensor.name], interpret(program, data, "f64")[tensor.name], tensor.name)
    for _ in range(20):
        for out in made.values():
            out.fill(77)
        call()
        assert all(made[n].tobytes() == first[n].tobytes() for n in made)
