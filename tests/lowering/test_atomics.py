"""Scatters on a GPU: integers land from all threads at once, in whatever order."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from edgekernelbench.lowering import nest
from edgekernelbench.targets.gpus import cuda_target

from .run_cuda import cuda_source
from .support import load_text, must_lower
from .test_device import pocl
from .test_gpu_layers import of_kind, refused, right

__all__ = ["pocl"]

KERNEL = """kernel k[L=%d, V=37](i: s32[L], x: %s[L], w: %s[L, 5]) -> (h: %s[V], y: %s[V, 5]) {
  compute {
    h[v] = %s[p: L where i[p] == v]((x[p]))
    y[v, d] = sum[p: L where i[p] == v and x[p] > 0](w[p, d])
  }
  %s
}"""


def scatters(dtype: str, op: str = "sum", loops: str = "", terms: int = 5000) -> str:
    layer = f"schedule for gpu {{ {loops} }}" if loops else ""
    return KERNEL % (terms, dtype, dtype, dtype, dtype, op, layer)


NESTS = {
    "rules": "",
    "threads": "loops h (parallel p, scatter v) loops y (parallel p, scatter v, d)",
    "blocks": "loops h (block p by 500, p by 64, thread p, scatter v)"
    " loops y (block d, block p by 2048, thread p by 16, p, scatter v)",
    "serial": "loops h (p, scatter v) loops y (parallel d, p, scatter v)",
}


@pytest.mark.parametrize("loops", NESTS.values(), ids=NESTS)
@pytest.mark.parametrize("dtype", ["s32", "u32"])
@pytest.mark.parametrize("op", ["sum", "min", "max"])
def test_results(dtype: str, op: str, loops: str, pocl) -> None:
    module = right(scatters(dtype, op, loops, 60000 if not loops else 5000), pocl)
    found = {(a.tensor.name, a.op) for a in of_kind(module, nest.Atomic)}
    assert found == {("h", op), ("y", "sum")}


def test_a_small_search_stays_one(pocl) -> None:
    assert not of_kind(right(scatters("s32", terms=300), pocl), nest.Atomic)


def test_floats_add_up_in_one_order(pocl) -> None:
    assert not of_kind(right(scatters("f32", terms=3000), pocl), nest.Atomic)
    found = refused(scatters("f32", loops=NESTS["threads"]))
    assert [code for code, _ in found] == ["E461", "E461"]
    assert "`h` is a f32 sum" in found[0][1]


def test_threads_behind_the_landing() -> None:
    loops = "loops y (parallel p, scatter v, thread d)"
    assert "E461" in [code for code, _ in refused(scatters("s32", loops=loops))]


@pytest.mark.parametrize("arch", ["sm_75", "sm_87", "sm_90"])
def test_nvcc_takes_it(arch: str, tmp_path: Path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed")
    kernel, program = load_text(scatters("u32", "max", NESTS["blocks"]))
    module = must_lower(kernel, program, cuda_target(arch)).module
    assert module is not None
    source = cuda_source(module, cuda_target(arch))
    assert "atomicMax(" in source and "atomicAdd(" in source
    (tmp_path / "k.cu").write_text(source, encoding="utf-8")
    command = ["nvcc", f"-arch={arch}", "-cubin", "-o", "k.cubin", "k.cu"]
    subprocess.run(command, cwd=tmp_path, check=True)
