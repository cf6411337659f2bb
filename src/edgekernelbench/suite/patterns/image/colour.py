"""Colour spaces, tone curves and normalisation."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw, integers, uniform, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.image.textures import unit_range
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("rgb_to_gray_u8")
def rgb_to_gray_u8(x: Array) -> Array:
    return (x @ np.array([77, 150, 29]) + 128) >> 8


@rgb_to_gray_u8.twin
def _(g: Graph, x: Value) -> Value:
    luma = np.array([[77], [150], [29]], np.uint8)
    total = g.Add(g.MatMulInteger(x, luma), np.int32(128))
    return g.Squeeze(g.cast(g.Div(total, np.int32(256)), DType.U8), [2])


@pattern("nv12_to_rgb_u8", draw={"UV": integers("56", "200")})
def nv12_to_rgb_u8(Y: Array, UV: Array) -> Array:
    chroma = UV.repeat(2, axis=0).repeat(2, axis=1)  # one sample serves 2x2 pixels
    yuv = np.concatenate([Y[..., None] - 16, chroma - 128], axis=2)
    to_rgb = np.array([[298, 0, 409], [298, -100, -208], [298, 516, 0]])
    return np.clip((yuv @ to_rgb.T + 128) >> 8, 0, 255)


@nv12_to_rgb_u8.twin
def _(g: Graph, Y: Value, UV: Value, H: int, W: int) -> Value:
    planes = g.Unsqueeze(g.Transpose(UV, perm=[2, 0, 1]), [0])
    chroma = g.Resize(
        planes,
        None,
        None,
        [1, 2, H, W],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    yuv = g.Concat(g.Unsqueeze(Y, [2]), g.Transpose(g.Squeeze(chroma, [0]), perm=[1, 2, 0]), axis=2)
    centred = g.Sub(g.Cast(yuv, to=1), np.array([16, 128, 128], np.float32))
    # Exact in float32: multiples of 1/256 below 2**16.
    to_rgb = np.array([[298, 0, 409], [298, -100, -208], [298, 516, 0]], np.float32) / 256
    rounded = g.Floor(g.Add(g.MatMul(centred, to_rgb.T), np.float32(0.5)))
    return g.cast(g.Clip(rounded, np.float32(0), np.float32(255)), DType.U8)


def near_identity(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """A colour matrix: the identity and cross-talk between channels, of rows that sum to 1."""
    crosstalk = 0.2 * draw.rng(spec.name).standard_normal(spec.shape)
    return np.eye(3) + crosstalk - crosstalk.mean(axis=1, keepdims=True)


@pattern(
    "color_matrix_3x3",
    draw={"x": unit_range, "M_": near_identity, "o": weights(gain=0.1)},
)
def color_matrix_3x3(x: Array, M_: Array, o: Array) -> Array:
    return np.clip(x @ M_.T + o, 0, 1)


@color_matrix_3x3.twin
def _(g: Graph, x: Value, M_: Array, o: Array) -> Value:
    return g.Clip(g.Add(g.MatMul(x, M_.T), o), 0.0, 1.0)


@pattern("lut_u8")
def lut_u8(x: Array, table: Array) -> Array:
    return table[x]


@lut_u8.twin
def _(g: Graph, x: Value, table: Array) -> Value:
    return g.Gather(table, g.cast(x, DType.S32))


def colour_lattice(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Each lattice point's own colour, changed a little."""
    rng = draw.rng(spec.name)
    levels = np.linspace(0, 1, spec.shape[0])
    own = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), axis=-1)
    return own + 0.1 * rng.standard_normal(3) + 0.05 * rng.standard_normal(spec.shape)


@pattern("lut3d_trilinear", draw={"x": unit_range, "lut": colour_lattice})
def lut3d_trilinear(x: Array, lut: Array, Gn: int) -> Array:
    position = x * (Gn - 1)
    low = np.clip(np.floor(position), 0, Gn - 2).astype(int)
    weight = position - low
    y = np.zeros(x.shape)
    for corner in np.ndindex(2, 2, 2):
        share = np.where(corner, weight, 1 - weight).prod(axis=1)
        r, g, b = (low + corner).T
        y += share[:, None] * lut[r, g, b]
    return y


@lut3d_trilinear.twin
def _(g: Graph, x: Value, lut: Array, Px: int) -> Value:
    # GridSample names the last axis of the volume first.
    volume = lut.transpose(3, 2, 1, 0)[None]
    grid = g.Reshape(g.Sub(g.Mul(x, 2.0), 1.0), [1, 1, 1, Px, 3])
    y = g.GridSample(volume, grid, mode="linear", align_corners=1, padding_mode="border")
    return g.Transpose(g.Reshape(y, [3, Px]), perm=[1, 0])


@pattern(
    "image_normalize_to_nchw",
    draw={"mean": uniform(0.4, 0.5), "std": uniform(0.2, 0.3)},
)
def image_normalize_to_nchw(x: Array, mean: Array, std: Array) -> Array:
    return ((x / 255 - mean) / std).transpose(2, 0, 1)


@image_normalize_to_nchw.twin
def _(g: Graph, x: Value, mean: Array, std: Array) -> Value:
    unit = g.Div(g.cast(g.Transpose(x, perm=[2, 0, 1])), 255.0)
    shift, scale = (v.astype("float64")[:, None, None] for v in (mean, std))
    return g.Div(g.Sub(unit, shift), scale)
