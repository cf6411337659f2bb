"""A fault of LLVM's loop vectoriser, kept away from kernels; see `compilers.tvm.vectorizer`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.compilers.tvm import build
from edgekernelbench.compilers.tvm.emit import emit_module
from edgekernelbench.compilers.tvm.vectorizer import OFF, cuts_loop_variables
from edgekernelbench.lowering import nest
from edgekernelbench.targets.host import host_target
from tests.compilers.test_data_indices import assert_compiled_agrees
from tests.lowering.support import load_text, must_lower

TARGET = host_target()


def kernel(index: str) -> str:
    return f"""kernel k(b: u8[3], x: s32[40, 4]) -> (y: s32[33, 3]) {{ compute {{
  y[i, j] = x[min(s32(b[j]), 39), {index}]
}} }}"""


def lowered(text: str) -> nest.Module:
    module = must_lower(*load_text(text), TARGET).module
    assert module is not None
    return module


@pytest.mark.parametrize(
    "index",
    ["i % 4", "i & 3", "3 & (i + 2)", "s32(u8(i)) & 3", "(2 * i + 1) % 4", "s32(u32(i)) % 4"],
)
def test_low_bits_of_a_loop_variable(index: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    inputs = {
        "b": rng.integers(0, 256, 3, dtype=np.uint8),
        "x": rng.integers(-99, 99, (40, 4), dtype=np.int32),
    }
    assert cuts_loop_variables([lowered(kernel(index)).main])
    assert_compiled_agrees(kernel(index), inputs, tmp_path)


@pytest.mark.parametrize("index", ["i % 3", "i // 16", "x[0, 0] % 4", "0"])
def test_other_kernels_keep_the_vectoriser(index: str) -> None:
    assert not cuts_loop_variables([lowered(kernel(index)).main])


def test_the_option_is_for_one_compilation() -> None:
    """A plain loop is vectorised without the option, not with it, and again without it."""
    text = "kernel k(x: f32[64]) -> (y: f32[64]) { compute { y[i] = x[i] * 2 }"
    module = emit_module(lowered(text + " schedule for cpu { loops y (i) } }"))

    def vectorised(*options: str) -> bool:
        target = build.tvm_target(TARGET, (), options)
        code = build.generate(build.lower(module, target), target)
        return "wide.load" in code.inspect_source("ll")

    assert [vectorised(), vectorised(OFF), vectorised()] == [True, False, True]
