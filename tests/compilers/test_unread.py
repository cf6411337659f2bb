"""A fault of TVM's storage planner, kept away from kernels; see `compilers.tvm.unread`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.compilers.tvm import emit
from edgekernelbench.compilers.tvm.unread import without_unread
from edgekernelbench.lowering import nest
from edgekernelbench.targets.host import host_target
from tests.compilers.test_data_indices import assert_compiled_agrees
from tests.lowering.support import load_text, must_lower

BEST = """combiner best((v, i), (w, j)) init (-2147483648, 2147483647) =
  (max(v, w), i if v > w or v == w and i < j else j)
"""
KERNEL = (
    BEST
    + """kernel k(x: s32[4, 4, 6]) -> (y: s32[4, 4]) {
  compute {
    v[i: 4, j: 4], p[i: 4, j: 4] = best[k: 6](x[i, j, k], k)
    y[i, j] = p[i, j]
  }
  schedule for cpu { loops v (%s)  loops y (i, j) }
  memory for cpu { layout p [i, j] -> [i // 2, j, i %% 2] }
}"""
)


def lowered(text: str) -> nest.Function:
    module = must_lower(*load_text(text), host_target()).module
    assert module is not None
    return module.main


def made(function: nest.Function) -> set[str]:
    """The buffers that a function allocates or stores to."""
    return {
        s.tensor.name
        for s in nest.statements(function.body)
        if isinstance(s, nest.Store | nest.Alloc)
    }


@pytest.mark.parametrize(
    "loops", ["i, j, k", "parallel k by 3, i, k, vectorize j", "i, k, vectorize j"]
)
def test_what_nobody_reads_takes_no_memory_from_others(loops: str, tmp_path: Path) -> None:
    inputs = {"x": np.random.default_rng(5).integers(-9, 9, (4, 4, 6), dtype=np.int32)}
    assert_compiled_agrees(KERNEL % loops, inputs, tmp_path)


def test_the_planner_still_has_the_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """When this fails, TVM is free of it, and `compilers.tvm.unread` can go."""
    monkeypatch.setattr(emit, "without_unread", lambda function: function)
    inputs = {"x": np.random.default_rng(5).integers(-9, 9, (4, 4, 6), dtype=np.int32)}
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        assert_compiled_agrees(KERNEL % "i, j, k", inputs, tmp_path)


def test_a_chain_that_nobody_reads_goes_with_its_loops() -> None:
    text = """kernel k(x: f32[8]) -> (y: f32[8]) { compute {
      a[i: 8] = x[i] * x[i]
      seq t: 8 { b[i: 8] = a[i] + 1  c[t, i: 8] = b[i] * 2  y[t] = x[t] }
    } }"""
    before = lowered(text)
    after = without_unread(before)
    assert made(after) == {"y"}
    assert sum(isinstance(s, nest.For) for s in nest.statements(after.body)) == 1


def test_what_is_read_stays_as_it_is() -> None:
    function = lowered(KERNEL % "i, j, k")
    after = without_unread(function)
    assert made(function) - made(after) == {"v"}
    assert without_unread(after) == after
