"""Waves, compiled: the bits of the order of the program, whatever the threads do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.compilers.tvm.compiler import compile_module
from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy, aligned_empty
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.lowering.lower import lower
from edgekernelbench.suite import load_suite
from edgekernelbench.suite.header import canonical_kernel
from edgekernelbench.targets.host import host_target
from tests.lowering.support import compare, draw_inputs, load_text
from tests.lowering.wave_cases import CASES

Arrays = dict[str, np.ndarray]


def ran(kernel: Kernel, program: Program, inputs: Arrays, folder: Path, times: int) -> list[Arrays]:
    """The outputs of several calls, each into poisoned buffers."""
    module = lower(kernel, program, host_target()).module
    assert module is not None
    assert compile_module(module, program, host_target(), folder).artifact is not None
    data = {n: aligned_copy(v) for n, v in inputs.items()}
    consts = {t.name: data.pop(t.name) for t in program.inputs if t.const}
    made = {t.name: aligned_empty(t.shape, t.dtype) for t in program.outputs}
    call = LoadedKernel(folder).bind(data, consts, made)
    out = []
    for _ in range(times):
        for array in made.values():
            array.fill(77)
        call()
        out.append({name: array.copy() for name, array in made.items()})
    return out


@pytest.mark.parametrize("name", ["filter", "chamfer", "several_histories", "many_channels"])
def test_compiled_waves_give_the_same_bits(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    kernel, program = load_text(case.text("", 61, 83))
    inputs = draw_inputs(program, 4)
    folder = tmp_path / "plain"
    folder.mkdir()
    (want,) = ran(kernel, program, inputs, folder, 1)
    for tensor in program.outputs:
        compare(want[tensor.name], interpret(program, inputs, "declared")[tensor.name], tensor.name)
    for k, wave in enumerate(case.waves):
        folder = tmp_path / str(k)
        folder.mkdir()
        kernel, program = load_text(case.text(wave, 61, 83))
        for got in ran(kernel, program, inputs, folder, 10 if "parallel" in wave else 1):
            for output, array in want.items():
                assert got[output].tobytes() == array.tobytes(), wave


CANONICAL = {
    "dtw_distance": ("wave D (i, vectorize j)", "wave D (parallel i by 16, j by 16, i, j)"),
    "chamfer_distance_transform": ("wave f (j, vectorize i)  wave d (j, vectorize i)",),
}


@pytest.mark.parametrize("pattern", CANONICAL)
def test_canonical_recurrences_as_waves(tmp_path: Path, pattern: str) -> None:
    suite = load_suite()
    workload = next(w for w in suite.workloads.values() if w.pattern == pattern)
    text = canonical_kernel(workload).rstrip()
    assert text.endswith("}")
    kernel, program = load_text(text)
    inputs = draw_inputs(program, 8)
    folder = tmp_path / "plain"
    folder.mkdir()
    (want,) = ran(kernel, program, inputs, folder, 1)
    for k, lines in enumerate(CANONICAL[pattern]):
        folder = tmp_path / str(k)
        folder.mkdir()
        kernel, program = load_text(f"{text[:-1]}  schedule for cpu {{ {lines} }}\n}}\n")
        (got,) = ran(kernel, program, inputs, folder, 1)
        for output, array in want.items():
            assert got[output].tobytes() == array.tobytes(), lines
