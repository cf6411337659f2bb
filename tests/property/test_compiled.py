"""Random programs: what the lowering and the compiler make of them, against the interpreter."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.elaborate import elaborate
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.parse import parse
from edgekernelbench.targets.model import Target
from tests.lowering.run_nest import run_module
from tests.property.programs import RandomKernel, kernels
from tests.property.test_programs import SEEDS, assert_close, budget, program_of

TARGET = Target(
    name="test",
    backend="llvm",
    threads=2,
    vector_bits=256,
    cache_bytes=(32 << 10, 1 << 20),
    memory_bytes=1 << 30,
)


def prepared(kernel: RandomKernel) -> tuple[surface.Kernel, core.Program]:
    parsed = parse(kernel.text).kernel
    assert parsed is not None
    return parsed, program_of(kernel)


def call(folder: Path, program: core.Program, inputs: dict[str, np.ndarray]) -> dict:
    from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy, aligned_empty

    loaded = LoadedKernel(folder)
    consts = {t.name: aligned_copy(inputs[t.name]) for t in program.inputs if t.const}
    others = {t.name: aligned_copy(inputs[t.name]) for t in program.inputs if not t.const}
    outputs = {t.name: aligned_empty(t.shape, t.dtype) for t in program.outputs}
    loaded.bind(others, consts, outputs)()
    return outputs


@budget(30)
@given(kernels(), SEEDS)
def test_compiled_kernels_do_what_the_interpreter_says(kernel: RandomKernel, seed: int) -> None:
    from edgekernelbench.compilers.tvm import TvmCompiler

    parsed, program = prepared(kernel)
    inputs = kernel.draw(seed)
    with TemporaryDirectory() as name:
        built = TvmCompiler().compile(parsed, program, TARGET, Path(name))
        assert built.artifact is not None, (kernel.text, built.diagnostics)
        got = call(Path(name), program, inputs)
    want = interpret(program, inputs, "declared")
    assert_close(got, want, 2e-2 if kernel.loose else 2e-4, kernel.text)


@budget(40)
@given(kernels(), SEEDS)
def test_loop_programs_do_what_the_interpreter_says(kernel: RandomKernel, seed: int) -> None:
    """The checking executor also finds races, uninitialised reads and reads out of range."""
    from edgekernelbench.lowering.lower import lower

    parsed, program = prepared(kernel)
    inputs = kernel.draw(seed)
    lowered = lower(parsed, program, TARGET)
    assert lowered.module is not None, (kernel.text, lowered.diagnostics)
    tables = {table.tensor.name: table.array() for table in program.tables}
    got = run_module(lowered.module, {**inputs, **tables}, {t.name for t in program.outputs})
    want = interpret(program, inputs, "declared")
    assert_close(got, want, 2e-2 if kernel.loose else 2e-4, kernel.text)


FOUND = {
    "a stage that nothing reads": (
        "kernel k(x: f32[4]) -> (y: f32[4]) { compute { d = sum[k: 4](x[k])  y[i] = x[i] * 2 } }"
    ),
    "the last iterations of a loop that runs downwards": """kernel k(x: f32[5]) -> (y: f32[1]) {
      compute { seq t: 5 reversed { h[t] = pad(h[t + 1], 1) * 0.5 + x[t] }
                y[i] = h[2] + 10 * h[1] } }""",
}


@pytest.mark.parametrize("name", FOUND)
def test_cases_that_random_programs_found(name: str, tmp_path: Path) -> None:
    from edgekernelbench.compilers.tvm import TvmCompiler

    parsed = parse(FOUND[name]).kernel
    assert parsed is not None
    program = elaborate(parsed).program
    assert program is not None
    inputs = {"x": np.linspace(-1, 1, program.inputs[0].size).astype(np.float32)}
    built = TvmCompiler().compile(parsed, program, TARGET, tmp_path)
    assert built.artifact is not None, built.diagnostics
    assert_close(
        call(tmp_path, program, inputs), interpret(program, inputs, "declared"), 1e-6, name
    )
