"""What the static report says of peaks that are there, or not."""

from __future__ import annotations

import pytest

from edgekernelbench.analysis.explain import Explanation, explain
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.peaks import Bandwidth, Peaks
from tests.lowering.support import TARGET, load_text, must_lower

PEAKS = Peaks(
    target="test",
    cpu="test",
    threads=2,
    flops_f32=1e11,
    bandwidths=(Bandwidth(working_set=1 << 20, bytes_per_s=1e10, kernel="copy"),),
    kernels={},
    date="2025-01-01",
    method="none",
)
BYTES = """kernel k[M=16, N=16, K=16](A: u8[M, K], B: const s8[K, N]) -> (C: s32[M, N]) {
  compute { C[i, j] = sum[k: K](A[i, k] * B[k, j]) }
  schedule for cpu { loops C (i, j by 16, k by 4, vectorize j, dot4 k) }
  memory for cpu { layout B [k, j] -> [j // 16, k // 4, j % 16, k % 4] }
}"""
FLOATS = "kernel k[N=64](x: f32[N]) -> (y: f32[N]) { compute { y[i] = x[i] * 2 } }"


def explained(text: str, peaks: Peaks | None, target: Target = TARGET) -> Explanation:
    kernel, program = load_text(text)
    module = must_lower(kernel, program, target).module
    assert module is not None
    return explain(program, module, target, peaks)


def test_only_the_peak_that_is_missing_is_named() -> None:
    found = explained(BYTES, PEAKS)
    assert found.instructions
    assert found.least_compute_us is None and found.bound is None
    assert found.least_memory_us is not None
    assert found.unmeasured.startswith("the peak of dot products of bytes is not measured")
    whole = explained(BYTES, PEAKS.model_copy(update={"ops_bytes": 1e11}))
    assert whole.least_compute_us == pytest.approx(1e6 * 2 * 16**3 / 1e11)
    assert whole.bound == "memory" and whole.unmeasured == ""


def test_without_any_peak_it_says_how_to_measure_them() -> None:
    found = explained(FLOATS, None)
    assert found.least_memory_us is None
    assert found.unmeasured.startswith("the peaks of this host are not measured: run `ekb devices")
    other = TARGET.model_copy(update={"backend": "cuda", "name": "card"})
    assert explained(FLOATS, None, other).unmeasured.startswith("the peaks of card are not")


def test_a_selection_by_comparison_counts_nothing() -> None:
    chosen = FLOATS.replace("x[i] * 2", "x[i] if x[i] > 0 else 0")
    assert explained(chosen, None).flops == 0
    assert explained(FLOATS.replace("x[i] * 2", "max(x[i], 0)"), None).flops == 64
