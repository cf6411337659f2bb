"""Indices computed from data: clamps that the lowering adds must survive TVM's simplifier."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.compilers.tvm import TvmCompiler
from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy, aligned_empty
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.targets.host import host_target

READS = [
    "pad(x[i[p] - 1], 9)",
    "pad(x[i[p] + 1], 9)",
    "pad(x[i[p] - 2], x[0])",
    "pad(x[29 - i[p]], 9)",
    "x[i[p] - 1] if 1 <= i[p] < 30 else 9",
    "x[i[p] - 1] if 0 <= i[p] - 1 < 30 else 9",
    "edge(x[i[p] - 1])",
    "x[clamp(i[p], 0, 29)]",
]


def assert_compiled_agrees(text: str, inputs: dict[str, np.ndarray], folder: Path) -> None:
    """The s32 output ``y`` of the compiled text equals the interpreter's."""
    checked = check_text(text)
    assert checked.kernel is not None
    assert checked.program is not None
    built = TvmCompiler().compile(checked.kernel, checked.program, host_target(), folder)
    assert built.artifact is not None, built.diagnostics
    want = interpret(checked.program, inputs, "declared")["y"]
    outputs = {"y": aligned_empty(want.shape, np.dtype(np.int32))}
    LoadedKernel(folder).bind({k: aligned_copy(v) for k, v in inputs.items()}, {}, outputs)()
    np.testing.assert_array_equal(outputs["y"], want)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("dtype", ["s32", "s16"])
@pytest.mark.parametrize("vector", ["", "schedule for cpu { loops y (p by 8, vectorize p) }"])
def test_guarded_reads_at_data(read: str, dtype: str, vector: str, tmp_path: Path) -> None:
    text = f"""kernel k[L=30](i: {dtype}[L], x: s32[L]) -> (y: s32[L]) {{
  compute {{ y[p] = {read} }}
  {vector}
}}"""
    numpy = DType(dtype).numpy
    index = np.arange(30).astype(numpy)
    index[3], index[4], index[5] = np.iinfo(numpy).max, np.iinfo(numpy).min, -1
    inputs = {"i": index, "x": np.arange(100, 130, dtype=np.int32)}
    assert_compiled_agrees(text, inputs, tmp_path)


WRAPPED = [
    "s32(s8(b[i])) % 5",
    "s32(s8(b[i])) // 5",
    "s32(u[i]) % 5",
    "s32(u[i] * u32(3)) // 5",
    "s32(s64(u[i]) * s64(7)) % 5",
    "x[clamp(s32(s8(b[i])), 0, 7)]",
    "x[max(s32(s8(b[i])), 0) // 16]",
    "edge(x[s32(s16(b[i] * 257))])",
    "sum[k: 8 where s32(s8(b[i])) % 8 == k](x[k])",
]


@pytest.mark.parametrize("value", WRAPPED)
@pytest.mark.parametrize("vector", ["", "schedule for cpu { loops y (i by 8, vectorize i) }"])
def test_casts_that_wrap_are_not_taken_for_casts_that_fit(
    value: str, vector: str, tmp_path: Path
) -> None:
    vector = "" if "sum[" in value else vector
    text = f"""kernel k(b: u8[256], u: u32[256], x: s32[8]) -> (y: s32[256]) {{
  compute {{ y[i] = {value} }}
  {vector}
}}"""
    every = np.arange(256)
    inputs = {
        "b": every.astype(np.uint8),
        "u": (every * 0x1234567 & 0xFFFFFFFF).astype(np.uint32),
        "x": np.arange(100, 108, dtype=np.int32),
    }
    assert_compiled_agrees(text, inputs, tmp_path)
