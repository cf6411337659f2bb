"""Resizing of whole images and feature maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.resample.interpolation import images
from edgekernelbench.suite.twin import Graph, Value

PLANES = images(axes=(1, 2))


@pattern("resize_nearest_nchw")
def resize_nearest_nchw(x: Array, H: int, W: int, OH: int, OW: int) -> Array:
    return x[:, np.arange(OH)[:, None] * H // OH, np.arange(OW) * W // OW]


@resize_nearest_nchw.twin
def _(g: Graph, x: Value, C: int, OH: int, OW: int) -> Value:
    return resized(g, x, C, OH, OW, "asymmetric", mode="nearest", nearest_mode="floor")


def resize_bilinear(x: Array, sy: Array, sx: Array) -> Array:
    """x[C,H,W] at rows sy and columns sx, with the border repeated."""
    y0, x0 = np.floor(sy).astype(np.int64), np.floor(sx).astype(np.int64)
    y1, x1 = np.minimum(y0 + 1, x.shape[1] - 1), np.minimum(x0 + 1, x.shape[2] - 1)
    fy, fx = (sy - y0)[:, None], sx - x0
    rows = (1 - fy) * x[:, y0] + fy * x[:, y1]
    return (1 - fx) * rows[:, :, x0] + fx * rows[:, :, x1]


def resized(
    g: Graph, x: Value, C: int, OH: int, OW: int, transformation: str, **attributes: Any
) -> Value:
    """The resizing operator on x[C,H,W]."""
    planes = g.Resize(
        g.Unsqueeze(x, [0]),
        None,
        None,
        [1, C, OH, OW],
        coordinate_transformation_mode=transformation,
        **attributes,
    )
    return g.Squeeze(planes, [0])


def linear_resize(g: Graph, x: Value, C: int, OH: int, OW: int, transformation: str) -> Value:
    """The same with linear interpolation."""
    return resized(g, x, C, OH, OW, transformation, mode="linear")


@pattern("resize_bilinear_half_pixel_nchw", draw={"x": PLANES})
def resize_bilinear_half_pixel_nchw(x: Array, H: int, W: int, OH: int, OW: int) -> Array:
    sy = np.maximum((np.arange(OH) + 0.5) * H / OH - 0.5, 0)
    sx = np.maximum((np.arange(OW) + 0.5) * W / OW - 0.5, 0)
    return resize_bilinear(x, sy, sx)


@resize_bilinear_half_pixel_nchw.twin
def _(g: Graph, x: Value, C: int, OH: int, OW: int) -> Value:
    return linear_resize(g, x, C, OH, OW, "half_pixel")


@pattern("resize_bilinear_align_corners_nchw", draw={"x": PLANES})
def resize_bilinear_align_corners_nchw(x: Array, H: int, W: int, OH: int, OW: int) -> Array:
    sy = np.arange(OH) * (H - 1) / (OH - 1)
    sx = np.arange(OW) * (W - 1) / (OW - 1)
    return resize_bilinear(x, sy, sx)


@resize_bilinear_align_corners_nchw.twin
def _(g: Graph, x: Value, C: int, OH: int, OW: int) -> Value:
    return linear_resize(g, x, C, OH, OW, "align_corners")


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
    planes = g.Transpose(g.cast(x), perm=[2, 0, 1])
    exact = linear_resize(g, planes, C, OH, OW, "half_pixel")
    rounded = g.cast(g.Floor(g.Add(exact, 0.5)), DType.U8)
    return g.Transpose(rounded, perm=[1, 2, 0])


def cubic_taps(size: int, out_size: int) -> tuple[Array, Array]:
    """For each output position four source indices and their weights (Keys, a = -0.75)."""
    a = -0.75
    position = (np.arange(out_size) + 0.5) * size / out_size - 0.5
    first = np.floor(position).astype(np.int64) - 1
    indices = first[:, None] + np.arange(4)
    t = np.abs(position[:, None] - indices)
    near = (a + 2) * t**3 - (a + 3) * t**2 + 1
    far = a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a
    return indices.clip(0, size - 1), np.where(t <= 1, near, far)


@pattern("resize_bicubic_nchw", draw={"x": PLANES})
def resize_bicubic_nchw(x: Array, H: int, W: int, OH: int, OW: int) -> Array:
    rows, wy = cubic_taps(H, OH)
    columns, wx = cubic_taps(W, OW)
    y = np.zeros((x.shape[0], OH, OW))
    for u in range(4):
        for v in range(4):
            taken = x[:, rows[:, u, None], columns[:, v]]
            y += wy[:, u, None] * wx[:, v] * taken
    return y


@resize_bicubic_nchw.twin
def _(g: Graph, x: Value, C: int, OH: int, OW: int) -> Value:
    return resized(g, x, C, OH, OW, "half_pixel", mode="cubic", cubic_coeff_a=-0.75)


@pattern("resize_area_u8_hwc")
def resize_area_u8_hwc(x: Array, H: int, W: int, C: int, r: int) -> Array:
    boxes = x[: H // r * r, : W // r * r].reshape(H // r, r, W // r, r, C)
    return (boxes.sum(axis=(1, 3)) + r * r // 2) // (r * r)


@resize_area_u8_hwc.twin
def _(g: Graph, x: Value, H: int, W: int, C: int, r: int) -> Value:
    boxes = g.Reshape(g.cast(x, DType.S32), [H // r, r, W // r, r, C])
    s = g.ReduceSum(boxes, [1, 3], keepdims=0)
    half, area = np.int32(r * r // 2), np.int32(r * r)
    return g.cast(g.Div(g.Add(s, half), area), DType.U8)
