"""Operators that ONNX's reference evaluator lacks, or computes with less than float64.

Imported with ONNX only: the classes derive from its own.
"""

from __future__ import annotations

import numpy as np
from onnx.reference.op_run import OpRun


class DequantizeLinear(OpRun):
    """All versions; the evaluator's own begins with opset 19 and holds integers in float32."""

    op_domain = ""

    def _run(
        self,
        x: np.ndarray,
        x_scale: np.ndarray,
        x_zero_point: np.ndarray | None = None,
        axis: int | None = 1,
        block_size: int | None = 0,
        output_dtype: int | None = None,
    ) -> tuple[np.ndarray]:
        where = (x.shape, 1 if axis is None else axis, block_size or 0)
        wide = x.astype(np.float64)
        if x_zero_point is not None:
            wide = wide - _spread(x_zero_point.astype(np.float64), *where)
        return (wide * _spread(x_scale.astype(np.float64), *where),)


class CumSum(OpRun):
    """Takes the axis as a vector of one element too, as ONNX Runtime does."""

    op_domain = ""

    def _run(
        self, x: np.ndarray, axis: np.ndarray, exclusive: int | None = 0, reverse: int | None = 0
    ) -> tuple[np.ndarray]:
        along = int(np.asarray(axis).reshape(-1)[0])
        given = np.flip(x, along) if reverse else x
        sums = np.cumsum(given, axis=along, dtype=x.dtype)
        if exclusive:
            sums = sums - given
        return (np.flip(sums, along) if reverse else sums,)


def _spread(values: np.ndarray, shape: tuple[int, ...], axis: int, block: int) -> np.ndarray:
    """One value for all, for each slice along the axis, or for each block of slices."""
    if values.size == 1:
        return values.reshape(())
    if block:
        return values.repeat(block, axis=axis).take(range(shape[axis]), axis=axis)
    return values.reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))])


OPERATORS: list[type[OpRun]] = [DequantizeLinear, CumSum]
