"""The interpreter against NumPy and SciPy on the example kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.ir import core
from edgekernelbench.ir.elaborate import elaborate
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.sampling import random_inputs
from tests.ir.example_formulas import DRAWS, FORMULAS, twiddles

DATA = Path(__file__).parents[1] / "data"
EXAMPLES = sorted(
    [*(DATA / "examples").glob("*.ekir"), *(DATA / "examples-layered").glob("*.ekir")]
)


def load(path: Path) -> core.Program:
    kernel = parse(path.read_text()).kernel
    assert kernel is not None
    program = elaborate(kernel).program
    assert program is not None
    return program


def draw(name: str, program: core.Program, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    inputs = random_inputs(program, rng)
    if name in DRAWS:
        inputs |= DRAWS[name](rng, inputs, dict(program.sizes))
    return inputs


def in_double(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in arrays.items()}


def test_enough_examples_have_a_formula() -> None:
    names = {path.stem for path in EXAMPLES}
    assert names >= FORMULAS.keys() >= DRAWS.keys()
    assert len(FORMULAS) >= 50


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_formula(name: str) -> None:
    program = load(DATA / "examples" / f"{name}.ekir")
    for seed in range(3):
        inputs = draw(name, program, seed)
        inputs = in_double(inputs)
        if name == "fft_radix2_stockham":
            inputs["tw"] = twiddles(program.inputs[1].shape[0])
        want = FORMULAS[name](inputs, dict(program.sizes))
        got = interpret(program, inputs)
        assert got.keys() == want.keys()
        for tensor in program.outputs:
            value = got[tensor.name]
            assert value.shape == tensor.shape
            if tensor.dtype.is_float:
                np.testing.assert_allclose(value, want[tensor.name], rtol=1e-9, atol=1e-9)
            else:
                assert value.dtype == tensor.dtype.numpy
                np.testing.assert_array_equal(value, want[tensor.name])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_declared_mode_is_near(path: Path) -> None:
    """Every example runs in both modes, on inputs on which rounding decides no branch."""
    program = load(path)
    inputs = draw(path.stem, program, 0)
    exact, rounded = interpret(program, inputs), interpret(program, inputs, "declared")
    for tensor in program.outputs:
        one, two = exact[tensor.name], rounded[tensor.name]
        assert two.dtype == tensor.dtype.numpy and two.shape == tensor.shape
        if tensor.dtype.is_float:
            coarse = 2e-2 if tensor.dtype.bits == 16 else 2e-3
            scale = np.nanmax(np.abs(one), initial=1.0, where=np.isfinite(one))
            np.testing.assert_allclose(two.astype(float), one, rtol=coarse, atol=1e-3 * scale)
        else:
            apart = np.abs(one.astype(np.int64) - two.astype(np.int64))
            assert apart.max(initial=0) <= 1
