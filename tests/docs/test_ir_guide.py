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
MAX_BYTES = 16 * 1024

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
            value = rng.standard_normal(t.shape) / 2
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
