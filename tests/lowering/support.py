"""Helpers of the lowering tests: programs from text, inputs, comparison with the interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from edgekernelbench.ir.core import Program
from edgekernelbench.ir.elaborate import elaborate
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.lowering.lower import LowerResult, lower
from edgekernelbench.targets.model import Target

from .run_nest import run_module

DATA = Path(__file__).parents[1] / "data"

TARGET = Target(
    name="test",
    backend="llvm",
    threads=2,
    vector_bits=512,
    cache_bytes=(48 << 10, 2 << 20),
    memory_bytes=1 << 30,
)


def load_text(text: str, sizes: dict[str, int | float] | None = None) -> tuple[Kernel, Program]:
    parsed = parse(text)
    assert parsed.kernel is not None, [d.message for d in parsed.diagnostics]
    made = elaborate(parsed.kernel, sizes)
    assert made.program is not None, [d.message for d in made.diagnostics]
    return parsed.kernel, made.program


def draw_inputs(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    out = {}
    for tensor in program.inputs:
        if tensor.dtype.is_float:
            values = rng.uniform(0.1, 1.5, tensor.shape) * rng.choice(
                [-1, 1], tensor.shape, p=[0.3, 0.7]
            )
            out[tensor.name] = values.astype(tensor.dtype.numpy)
        else:
            low, high = tensor.dtype.int_range
            values = rng.integers(max(low, -4), min(high, 12), tensor.shape, endpoint=True)
            out[tensor.name] = values.astype(tensor.dtype.numpy)
    return out


def must_lower(kernel: Kernel, program: Program, target: Target = TARGET) -> LowerResult:
    result = lower(kernel, program, target)
    assert result.module is not None, [d.message for d in result.diagnostics]
    return result


def check(kernel: Kernel, program: Program, target: Target = TARGET, seed: int = 0) -> LowerResult:
    """Lowers, runs the loop program, and compares with the interpreter."""
    result = must_lower(kernel, program, target)
    assert result.module is not None
    inputs = draw_inputs(program, seed)
    outputs = {tensor.name for tensor in program.outputs}
    tables = {table.tensor.name: table.array() for table in program.tables}
    got = run_module(result.module, {**inputs, **tables}, outputs)
    want = interpret(program, inputs, "declared")
    for tensor in program.outputs:
        compare(got[tensor.name], want[tensor.name], tensor.name)
    return result


def compare(got: np.ndarray, want: np.ndarray, name: str) -> None:
    assert got.shape == want.shape, name
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, err_msg=name)
        return
    scale = float(np.max(np.abs(want[np.isfinite(want)]), initial=1e-6))
    rtol = 1e-4 if got.dtype == np.float32 else 2e-2 if got.dtype == np.float16 else 1e-9
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * scale, err_msg=name)
