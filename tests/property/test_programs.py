"""Random programs: the interpreter's modes, `normalize`, the verifier and the compilers agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from edgekernelbench.ir import core
from edgekernelbench.ir.elaborate import elaborate
from edgekernelbench.ir.interpret import interpret, limits
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.verify import verify
from edgekernelbench.lowering.normalize import normalize
from tests.property.naive import run_naive
from tests.property.programs import RandomKernel, kernels

SEEDS = st.integers(0, 1000)


def budget(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate, Phase.target, Phase.shrink],
    )


def program_of(kernel: RandomKernel) -> core.Program:
    parsed = parse(kernel.text)
    assert parsed.kernel is not None, (kernel.text, parsed.diagnostics)
    result = elaborate(parsed.kernel)
    assert result.program is not None, (kernel.text, result.diagnostics)
    return result.program


def assert_close(
    got: dict[str, np.ndarray], want: dict[str, np.ndarray], rtol: float, text: str
) -> None:
    assert got.keys() == want.keys()
    for name, expected in want.items():
        assert got[name].shape == expected.shape
        if expected.dtype.kind == "f":
            tight = np.asarray(got[name], np.float64), np.asarray(expected, np.float64)
            np.testing.assert_allclose(*tight, rtol=rtol, atol=rtol * 8, err_msg=f"{name}\n{text}")
        else:
            np.testing.assert_array_equal(got[name], expected, err_msg=f"{name}\n{text}")


def is_normal(program: core.Program) -> bool:
    for _, stage in core.stages(program.body):
        inside = [e for e in core.walk(stage.expr) if isinstance(e, core.Reduce)]
        if inside and (len(inside) > 1 or inside[0] is not stage.expr):
            return False
    return True


@budget(100)
@given(kernels(), SEEDS)
def test_normalize_keeps_values_and_proofs(kernel: RandomKernel, seed: int) -> None:
    program = program_of(kernel)
    normal = normalize(program)
    assert is_normal(normal)
    for checked in (program, normal):
        assert not [d.message for d in verify(checked) if d.severity == "error"], kernel.text
    inputs = kernel.draw(seed)
    assert_close(interpret(normal, inputs), interpret(program, inputs), 1e-11, kernel.text)


@budget(100)
@given(kernels(), SEEDS)
def test_interpreter_does_what_the_core_says(kernel: RandomKernel, seed: int) -> None:
    program = program_of(kernel)
    inputs = kernel.draw(seed)
    assert_close(interpret(program, inputs), run_naive(program, inputs), 1e-9, kernel.text)
    declared = interpret(program, inputs, "declared")
    loose = 2e-2 if kernel.loose else 2e-5
    assert_close(declared, run_naive(program, inputs, declared=True), loose, kernel.text)


TINY = {
    "PLAIN_LANES": 5, "LEAST_LANES": 2, "FACTOR_LANES": 7, "LEAST_PRODUCT": 1, "BATCH_LANES": 2,
    "PRIVATE_BYTES": 100, "FEW_ITERATIONS": 1,
}  # fmt: skip


@budget(100)
@given(kernels(), SEEDS)
def test_cutting_into_pieces_changes_nothing(kernel: RandomKernel, seed: int) -> None:
    program = program_of(kernel)
    inputs = kernel.draw(seed)
    whole = interpret(program, inputs)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in TINY.items():
            patch.setattr(limits, name, value)
        pieces = interpret(program, inputs)
    assert_close(pieces, whole, 1e-11, kernel.text)


@budget(100)
@given(kernels(), SEEDS)
def test_declared_dtypes_stay_near_float64(kernel: RandomKernel, seed: int) -> None:
    program = program_of(kernel)
    inputs = kernel.draw(seed)
    exact = interpret(program, inputs)
    rounded = interpret(program, inputs, "declared")
    for tensor in program.outputs:
        assert rounded[tensor.name].dtype == tensor.dtype.numpy
        if tensor.dtype.is_float:
            assert exact[tensor.name].dtype == np.float64
            assert np.isfinite(exact[tensor.name]).all()
    assert_close(rounded, exact, 2e-2 if kernel.loose else 2e-4, kernel.text)
