"""Operators that ONNX's reference evaluator lacks, or computes with less than float64.

Imported with ONNX only: the classes derive from its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_conv import Conv


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


class QLinearConv(OpRun):
    """For any number of axes; the evaluator's own takes scales of channels for images alone."""

    op_domain = ""

    def _run(
        self,
        x: np.ndarray,
        x_scale: np.ndarray,
        x_zero_point: np.ndarray,
        w: np.ndarray,
        w_scale: np.ndarray,
        w_zero_point: np.ndarray,
        y_scale: np.ndarray,
        y_zero_point: np.ndarray,
        B: np.ndarray | None = None,
        **attributes: Any,
    ) -> tuple[np.ndarray]:
        given = {name: value for name, value in attributes.items() if value is not None}
        operands: list[Any] = [
            x.astype(np.float64) - _single(x_zero_point),
            w.astype(np.float64) - _spread(w_zero_point.astype(np.float64), w.shape, 0, 0),
        ]
        if B is not None:
            operands.append(B.astype(np.float64))
        sums = np.asarray(Conv.eval(*operands, **given))  # float64 holds them exactly
        scale = _single(x_scale) * _spread(w_scale.astype(np.float64), sums.shape, 1, 0)
        return (_quantised(sums * (scale / _single(y_scale)), y_zero_point),)


class QLinearMatMul(OpRun):
    """Scales of rows of ``a`` and of columns of ``b`` too, and rounded before the zero point."""

    op_domain = ""

    def _run(
        self,
        a: np.ndarray,
        a_scale: np.ndarray,
        a_zero_point: np.ndarray,
        b: np.ndarray,
        b_scale: np.ndarray,
        b_zero_point: np.ndarray,
        y_scale: np.ndarray,
        y_zero_point: np.ndarray,
    ) -> tuple[np.ndarray]:
        rows = a.astype(np.float64) - _of_rows(a_zero_point)
        columns = b.astype(np.float64) - b_zero_point.astype(np.float64)
        scale = _of_rows(a_scale) * b_scale.astype(np.float64) / _of_rows(y_scale)
        return (_quantised((rows @ columns) * scale, _of_rows(y_zero_point, y_zero_point.dtype)),)


def _single(values: np.ndarray) -> np.float64:
    return np.float64(np.asarray(values).reshape(()))


def _of_rows(values: np.ndarray, dtype: np.dtype | type = np.float64) -> np.ndarray:
    """A vector holds one value for each row."""
    wide = values.astype(dtype)
    return wide[:, None] if wide.ndim == 1 and wide.size > 1 else wide


def _quantised(values: np.ndarray, zero: np.ndarray) -> np.ndarray:
    limits = np.iinfo(zero.dtype)
    moved = np.rint(values) + zero.astype(np.float64)
    return np.clip(moved, limits.min, limits.max).astype(zero.dtype)


def _spread(values: np.ndarray, shape: tuple[int, ...], axis: int, block: int) -> np.ndarray:
    """One value for all, for each slice along the axis, or for each block of slices."""
    if values.size == 1:
        return values.reshape(())
    if block:
        return values.repeat(block, axis=axis).take(range(shape[axis]), axis=axis)
    return values.reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))])


OPERATORS: list[type[OpRun]] = [DequantizeLinear, CumSum, QLinearConv, QLinearMatMul]
