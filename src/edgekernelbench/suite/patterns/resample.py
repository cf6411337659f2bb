"""Resizing and resampling of images."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def half_pixel(size: int, out_size: int) -> tuple[Array, Array, Array]:
    """For each output position its two source indices and the second one's weight.

    Weights are integers, in units of 1 / (2 * out_size).
    """
    unit = 2 * out_size
    position = np.maximum((2 * np.arange(out_size) + 1) * size - out_size, 0)
    low = position // unit
    return low, np.minimum(low + 1, size - 1), position % unit


@pattern("resize_bilinear_u8_hwc")
def resize_bilinear_u8_hwc(x: Array, H: int, W: int, OH: int, OW: int) -> Array:
    y0, y1, fy = half_pixel(H, OH)
    x0, x1, fx = half_pixel(W, OW)
    fy, fx = fy[:, None, None], fx[None, :, None]
    top = (2 * OW - fx) * x[y0][:, x0] + fx * x[y0][:, x1]
    bottom = (2 * OW - fx) * x[y1][:, x0] + fx * x[y1][:, x1]
    whole = 4 * OH * OW  # exact integers: many pixels lie halfway between two levels, and round up
    return ((2 * OH - fy) * top + fy * bottom + whole // 2) // whole


@resize_bilinear_u8_hwc.twin
def _(g: Graph, x: Value, OH: int, OW: int, C: int) -> Value:
    planes = g.Unsqueeze(g.Transpose(g.cast(x), perm=[2, 0, 1]), [0])
    resized = g.Resize(
        planes,
        None,
        None,
        [1, C, OH, OW],
        mode="linear",
        coordinate_transformation_mode="half_pixel",
    )
    rounded = g.cast(g.Floor(g.Add(resized, 0.5)), DType.U8)
    return g.Transpose(g.Squeeze(rounded, [0]), perm=[1, 2, 0])
