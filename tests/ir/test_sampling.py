"""Inputs drawn for programs without a workload."""

from __future__ import annotations

import numpy as np
import pytest

from edgekernelbench.ir.elaborate import elaborate
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.sampling import random_inputs
from tests.ir.test_interpret_examples import EXAMPLES, load


def drawn(inputs: str, outputs: str, body: str, seed: int = 0) -> dict[str, np.ndarray]:
    kernel = parse(f"kernel k({inputs}) -> ({outputs}) {{ compute {{ {body} }} }}").kernel
    assert kernel is not None
    program = elaborate(kernel).program
    assert program is not None
    return random_inputs(program, np.random.default_rng(seed))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_example_gets_inputs_it_runs_on(path) -> None:
    program = load(path)
    inputs = random_inputs(program, np.random.default_rng(0))
    again = random_inputs(program, np.random.default_rng(0))
    for tensor in program.inputs:
        array = inputs[tensor.name]
        assert array.shape == tensor.shape and array.dtype == tensor.dtype.numpy
        assert (array == again[tensor.name]).all()
        if tensor.dtype.is_float and tensor.size > 8:
            assert (array < 0).any() and (array > 0).any()
    interpret(program, inputs)


def test_indices_cover_what_they_index() -> None:
    got = drawn(
        "idx: s32[500], x: f32[7, 90]",
        "y: f32[500]",
        "y[i] = { let row = idx[i]  return edge(x[row, 2*row]) }",
    )["idx"]
    assert got.min() == 0 and got.max() == 6


def test_values_compared_with_an_axis_cover_it() -> None:
    got = drawn("idx: s32[500]", "y: s32[9]", "y[v] = sum[p: 500 where idx[p] == v](1)")["idx"]
    assert got.min() == 0 and got.max() == 8


def test_row_pointers_rise() -> None:
    body = "y[i] = sum[e: clamp(ptr[i], 0, 99)..clamp(ptr[i + 1], 0, 99)](v[e])"
    got = drawn("ptr: s32[9], v: f32[99]", "y: f32[8]", body)["ptr"]
    assert (np.diff(got) >= 0).all() and got.min() >= 0 and 50 < got.max() <= 99


def test_shift_amounts_stay_small() -> None:
    got = drawn("x: s32[99], n: s32[99]", "y: s32[99]", "y[i] = x[i] >> n[i]")["n"]
    assert got.min() >= 1 and got.max() <= 15


def test_weights_are_scaled_by_the_length_of_their_sums() -> None:
    got = drawn(
        "x: f32[4, 4096], w: const f32[64, 4096]",
        "y: f32[4, 64]",
        "y[i, j] = sum[k: 4096](x[i, k] * w[j, k])",
    )
    assert 0.5 < np.std(got["x"]) < 4
    assert np.std(got["w"]) < 0.1
    assert 0.3 < np.std(got["x"] @ got["w"].T) < 10


def test_flags_and_bytes_vary() -> None:
    got = drawn(
        "b: bool[200], u: u8[200], s: s8[200]",
        "y: s32[200]",
        "y[i] = u[i] + s[i] if b[i] else 0",
    )
    assert 0 < got["b"].sum() < 200
    assert got["u"].max() > 200 and got["s"].min() < -100 and (got["u"] == 0).sum() > 5
