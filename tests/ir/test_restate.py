"""Programs as kernels again: the text elaborates to a program with the same results."""

from __future__ import annotations

import numpy as np
import pytest

from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.diagnostics import render
from edgekernelbench.ir.interpret import Mode, interpret
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.ir.restate import restate
from edgekernelbench.suite import Definition, load_suite
from tests.ir.random_programs import Draw
from tests.lowering.programs import PROGRAMS
from tests.lowering.support import draw_inputs

SUITE = load_suite()
FIRST = {w.pattern: w for w in reversed(SUITE.workloads.values())}


def round_trip(program: Program) -> tuple[Program, dict[str, str], str]:
    restated = restate(program)
    text = print_kernel(restated.kernel)
    found = check_text(text)
    problems = "\n".join(render(d, text) for d in found.diagnostics if d.severity == "error")
    assert found.program is not None, f"{text}\n{problems}"
    return found.program, dict(restated.names), text


def assert_same(program: Program, inputs: dict[str, np.ndarray], mode: Mode) -> None:
    again, names, text = round_trip(program)
    renamed = {names[name]: array for name, array in inputs.items()}
    want, got = interpret(program, inputs, mode), interpret(again, renamed, mode)
    for name, array in want.items():
        assert np.array_equal(array, got[names[name]], equal_nan=array.dtype.kind == "f"), text


@pytest.mark.parametrize("definition", SUITE.definitions.values(), ids=lambda d: d.id)
def test_canonical_programs_mean_the_same(definition: Definition) -> None:
    small = FIRST[definition.id].small()
    program = check_text(small.canonical()).program
    assert program is not None
    for mode in ("f64", "declared"):
        assert_same(program, small.inputs(1), mode)


@pytest.mark.parametrize("name", ["half_arithmetic", "half_combiner", "rounding"])
def test_what_rounds_where_is_kept(name: str) -> None:
    program = check_text(PROGRAMS[name]).program
    assert program is not None
    assert_same(program, draw_inputs(program), "declared")


def test_interface_names_are_kept() -> None:
    small = SUITE.workloads["lstm_sequence__01"].small()
    program = check_text(small.canonical()).program
    assert program is not None
    names = restate(program).names
    assert all(names[t.name] == t.name for t in (*program.inputs, *program.outputs))


def random_inputs(program: Program, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    inputs = {}
    for tensor in program.inputs:
        numpy = tensor.dtype.numpy
        if tensor.dtype.is_float:
            inputs[tensor.name] = rng.standard_normal(tensor.shape).astype(numpy)
        else:
            low, high = tensor.dtype.int_range
            inputs[tensor.name] = rng.integers(low, high, tensor.shape, numpy, endpoint=True)
    return inputs


@pytest.mark.parametrize("block", range(4))
def test_random_programs_mean_the_same(block: int) -> None:
    tried = 0
    for n in range(100):
        draw = Draw(block * 1000 + n)
        program = check_text(draw.recurrence() if n % 4 == 0 else draw.program()).program
        if program is not None:
            assert_same(program, random_inputs(program, n), "declared")
            tried += 1
    assert tried > 15, "a draw that is nearly all refused tests nothing"


def test_borders_are_pads_again() -> None:
    text = (
        "kernel k(x: f32[5]) -> (y: f32[5]) { compute { y[i: 5] = x[i - 2] if 2 <= i else 0.5 } }"
    )
    program = check_text(text).program
    assert program is not None
    assert "pad(x[i - 2], 0.5)" in round_trip(program)[2]
    other = check_text(text.replace("2 <= i", "3 <= i")).program
    assert other is not None
    assert "if 3 <= i else 0.5" in round_trip(other)[2]
