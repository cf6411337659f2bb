"""Random layers and random programs by the C compiler, against the interpreter."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given

from edgekernelbench.compilers.c import CCompiler
from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy, aligned_empty
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.edit import with_layers
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.targets.cc import c_target
from tests.lowering.programs import PROGRAMS
from tests.lowering.random_layers import random_layers
from tests.lowering.support import compare, draw_inputs, load_text
from tests.property.programs import RandomKernel, kernels
from tests.property.test_compiled import prepared
from tests.property.test_programs import SEEDS, assert_close, budget

_TRIALS = 12


def called(
    kernel: Kernel, program: Program, inputs: dict[str, np.ndarray]
) -> dict[str, np.ndarray] | None:
    """What the compiled kernel yields; None where its layers are refused."""
    with TemporaryDirectory() as name:
        built = CCompiler().compile(kernel, program, c_target(), Path(name))
        if built.artifact is None:
            codes = {d.rule.code for d in built.diagnostics}
            assert all(code[:2] in ("E4", "E5") for code in codes), built.diagnostics
            return None
        arrays = {key: aligned_copy(value) for key, value in inputs.items()}
        consts = {t.name: arrays.pop(t.name) for t in program.inputs if t.const}
        outputs = {t.name: aligned_empty(t.shape, t.dtype) for t in program.outputs}
        for out in outputs.values():
            out.fill(77)
        LoadedKernel(Path(name)).bind(arrays, consts, outputs)()
        return outputs


@pytest.mark.parametrize("name", PROGRAMS)
def test_random_layers_keep_the_results(name: str) -> None:
    kernel, program = load_text(PROGRAMS[name])
    accepted = 0
    for seed in range(_TRIALS):
        schedule, memory = random_layers(program, random.Random(f"{name} c {seed}"))
        layered = with_layers(kernel, (schedule,), (memory,))
        inputs = draw_inputs(program, seed)
        got = called(layered, program, inputs)
        if got is None:
            continue
        want = interpret(program, inputs, "declared")
        for tensor in program.outputs:
            where = f"{tensor.name}\n{print_kernel(layered)}"
            compare(got[tensor.name], want[tensor.name], where)
        accepted += 1
    assert accepted


@budget(20)
@given(kernels(), SEEDS)
def test_random_programs_do_what_the_interpreter_says(kernel: RandomKernel, seed: int) -> None:
    parsed, program = prepared(kernel)
    inputs = kernel.draw(seed)
    got = called(parsed, program, inputs)
    assert got is not None, kernel.text
    want = interpret(program, inputs, "declared")
    assert_close(got, want, 2e-2 if kernel.loose else 2e-4, kernel.text)
