"""Bilinear samples at positions that are data."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw, on_grid, uniform
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.resample.interpolation import bilinear, images, images_u8
from edgekernelbench.suite.twin import Graph, Value

EXACT_GRID = on_grid(uniform(-1.05, 1.05), 2.0**-14)
"""Positions of which float32 computes the pixel without an error."""


@pattern(
    "grid_sample_bilinear_nchw",
    draw={"x": images(axes=(1, 2)), "grid": EXACT_GRID},
)
def grid_sample_bilinear_nchw(x: Array, grid: Array, H: int, W: int) -> Array:
    sx = ((grid[..., 0] + 1) * W - 1) / 2
    sy = ((grid[..., 1] + 1) * H - 1) / 2
    return bilinear(x, sy, sx)


@grid_sample_bilinear_nchw.twin
def _(g: Graph, x: Value, grid: Value) -> Value:
    sampled = g.GridSample(
        g.Unsqueeze(x, [0]),
        g.Unsqueeze(grid, [0]),
        mode="linear",
        padding_mode="zeros",
        align_corners=0,
    )
    return g.Squeeze(sampled, [0])


def similarity_near_corner(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Rotation and scale about a point near a corner, so that some of the output lies outside."""
    rng = draw.rng(spec.name)
    H, W, OH, OW = (draw.size(name) for name in ("H", "W", "OH", "OW"))
    angle, scale = np.deg2rad(rng.uniform(-20, 20)), 2 ** rng.uniform(-1, 1)
    linear = scale * np.array(
        [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]],
    )
    inwards = rng.choice([-1, 1], 2)
    corner = np.where(inwards > 0, 0, [W - 1, H - 1])
    centre = corner + inwards * rng.uniform(0.2, 0.8, 2) * scale * np.array([OW, OH]) / 2
    shift = centre - linear @ np.array([(OW - 1) / 2, (OH - 1) / 2])
    return np.column_stack([linear, shift])


@pattern("affine_warp_u8_hwc", draw={"x": images_u8, "A": similarity_near_corner})
def affine_warp_u8_hwc(x: Array, A: Array, OH: int, OW: int) -> Array:
    i, j = np.arange(OH)[:, None], np.arange(OW)
    sx = A[0, 0] * j + A[0, 1] * i + A[0, 2]
    sy = A[1, 0] * j + A[1, 1] * i + A[1, 2]
    y = bilinear(x.transpose(2, 0, 1), sy, sx)
    return np.floor(y + 0.5).transpose(1, 2, 0)


@affine_warp_u8_hwc.twin
def _(g: Graph, x: Value, A: Value, H: int, W: int, OH: int, OW: int) -> Value:
    i, j = np.meshgrid(np.arange(OH), np.arange(OW), indexing="ij")
    positions = np.stack([j, i, np.ones_like(i)], axis=2).astype(np.float64)
    sources = g.MatMul(positions, g.Transpose(A, perm=[1, 0]))
    scale, shift = np.array([2 / W, 2 / H]), np.array([1 / W - 1, 1 / H - 1])
    grid = g.Unsqueeze(g.Add(g.Mul(sources, scale), shift), [0])
    planes = blocks.nhwc_to_nchw(g, g.cast(x))
    y = g.GridSample(planes, grid, mode="linear", padding_mode="zeros", align_corners=0)
    return blocks.nchw_to_nhwc(g, g.cast(g.Floor(g.Add(y, 0.5)), DType.U8))


def ordered_boxes(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Boxes (y0, x0, y1, x1) of differing size and shape, inside of the image."""
    rng = draw.rng(spec.name)
    first = rng.uniform(0.02, 0.4, (spec.shape[0], 2))
    last = rng.uniform(0.6, 0.98, (spec.shape[0], 2))
    return np.concatenate([first, last], axis=1)


@pattern("crop_and_resize_nhwc", draw={"x": images(axes=(0, 1)), "boxes": ordered_boxes})
def crop_and_resize_nhwc(x: Array, boxes: Array, H: int, W: int, OH: int, OW: int) -> Array:
    planes = x.transpose(2, 0, 1)  # HWC to CHW
    crops = []
    for y0, x0, y1, x1 in boxes:
        sy = y0 * (H - 1) + np.arange(OH) * (y1 - y0) * (H - 1) / (OH - 1)
        sx = x0 * (W - 1) + np.arange(OW) * (x1 - x0) * (W - 1) / (OW - 1)
        crops.append(bilinear(planes, sy[:, None], sx))
    return np.stack(crops).transpose(0, 2, 3, 1)


@crop_and_resize_nhwc.twin
def _(g: Graph, x: Value, boxes: Value, C: int, NBX: int, OH: int, OW: int) -> Value:
    planes = blocks.nhwc_to_nchw(g, x)
    crops = []
    for box in g.op("Split", boxes, outputs=NBX, axis=0, num_outputs=NBX):
        first, last = g.op("Split", g.Squeeze(box, [0]), outputs=2, axis=0, num_outputs=2)
        region = g.Concat(np.zeros(2), first, np.ones(2), last, axis=0)
        crop = g.Resize(
            planes,
            region,
            None,
            [1, C, OH, OW],
            mode="linear",
            coordinate_transformation_mode="tf_crop_and_resize",
        )
        crops.append(crop)
    return g.Transpose(g.Concat(*crops, axis=0), perm=[0, 2, 3, 1])
