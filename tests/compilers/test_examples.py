"""Every example program, compiled, against the interpreter in the declared dtypes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.compilers.tvm import TvmCompiler
from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy, aligned_empty
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.targets.host import host_target
from tests.lowering.support import DATA, compare, draw_inputs, load_text
from tests.lowering.test_layered import SHAPES

EXAMPLES = sorted((DATA / "examples").glob("*.ekir"))

# These run whole networks: small images are enough.
SIZES: dict[str, dict[str, int | float]] = {
    "mobilenet_v1_classifier": {"H": 8, "W": 8},
    "espcn_super_resolution": {"H": 3, "W": 4},
}


def symmetric(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    half = rng.normal(size=shape)
    return (half @ half.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])).astype(np.float32)


def inputs_for(name: str, program: Program) -> dict[str, np.ndarray]:
    """Random inputs; matrices to be factorised are positive definite."""
    inputs = draw_inputs(program)
    rng = np.random.default_rng(1)
    if name in ("cholesky_batched", "lu_nopivot_batched", "jacobi_eigen3x3_batched"):
        inputs["A"] = symmetric(inputs["A"].shape, rng)
    return inputs


def compiled(text: str, sizes: dict[str, int | float] | None, name: str, folder: Path) -> None:
    kernel, program = load_text(text, sizes)
    built = TvmCompiler().compile(kernel, program, host_target(), folder)
    assert built.artifact is not None, built.diagnostics
    inputs = inputs_for(name, program)
    want = interpret(program, inputs, "declared")
    arrays = {key: aligned_copy(value) for key, value in inputs.items()}
    consts = {t.name: arrays.pop(t.name) for t in program.inputs if t.const}
    outputs = {t.name: aligned_empty(t.shape, t.dtype) for t in program.outputs}
    call = LoadedKernel(folder).bind(arrays, consts, outputs)
    for _ in range(2):  # a second call must not depend on what the first one left
        for out in outputs.values():
            out.view(np.uint8)[...] = 0xA5
        call()
    for tensor in program.outputs:
        assert np.isfinite(want[tensor.name].astype(np.float64)).any()
        compare(outputs[tensor.name], want[tensor.name], tensor.name)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path: Path, tmp_path: Path) -> None:
    compiled(path.read_text(), SIZES.get(path.stem), path.stem, tmp_path)


@pytest.mark.parametrize(
    ("name", "sizes"), [(name, sizes) for name, shapes in SHAPES.items() for sizes in shapes]
)
def test_layered_example(name: str, sizes: dict[str, int | float], tmp_path: Path) -> None:
    text = (DATA / "examples-layered" / f"{name}.ekir").read_text()
    compiled(text, sizes, name, tmp_path)
