"""Inputs of random programs, and how much work a program is."""

from __future__ import annotations

import math

import numpy as np

from edgekernelbench.ir import core

Arrays = dict[str, np.ndarray]

_MOST_WORK = 3e6
_MOST_CHECKED = 2e4


def draw_inputs(program: core.Program, seed: int) -> Arrays:
    """Values in the ranges that `tests.property.programs` makes its programs for."""
    from tests.property.programs import _INT_RANGES

    rng = np.random.default_rng(seed)
    out = {}
    for tensor in program.inputs:
        if tensor.dtype.is_float:
            values = rng.integers(-12, 12, tensor.shape, endpoint=True) / 8
        else:
            low, high = _INT_RANGES[tensor.dtype.value]
            values = rng.integers(low, high, tensor.shape, endpoint=True)
        out[tensor.name] = np.asarray(values).astype(tensor.dtype.numpy)
    return out


def hostile_inputs(program: core.Program, seed: int) -> Arrays:
    """Integers of all sizes, extremes included; floats as `draw_inputs` has them."""
    rng = np.random.default_rng(seed)
    out = draw_inputs(program, seed)
    for tensor in program.inputs:
        if tensor.dtype.is_int:
            low, high = tensor.dtype.int_range
            pool = [v for v in (0, 1, 2, 3, -1, 5, low, high) if low <= v <= high]
            values = rng.choice(np.array(pool, tensor.dtype.numpy), tensor.shape)
            out[tensor.name] = np.asarray(values, tensor.dtype.numpy)
    return out


def work(program: core.Program) -> float:
    """Innermost evaluations of all stages, roughly."""
    total = 0.0
    for loops, stage in core.stages(program.body):
        around = math.prod(max(0, loop.hi - loop.lo) for loop in loops)
        points = around * math.prod(axis.extent for axis in stage.axes)
        total += points * _inner(stage.expr)
    return total


def _inner(expr: core.Expr) -> float:
    inside = sum(_inner(child) for child in core.children(expr)) + 1.0
    if isinstance(expr, core.Reduce):
        inside *= math.prod(max(1, axis.extent) for axis in expr.axes)
    return inside


def too_large(program: core.Program) -> bool:
    """Whether a run would take long: fuzzing wants many small ones."""
    return work(program) > _MOST_WORK


def checked_access_by_access(program: core.Program) -> bool:
    """Whether the program is small enough for the executor that checks every access."""
    return work(program) <= _MOST_CHECKED
