"""From the sensor's colour mosaic to an image."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import integers, uniform
from edgekernelbench.suite.patterns.image.colour import near_identity
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import taps
from edgekernelbench.suite.twin import Graph, Value


def rggb(H: int, W: int) -> Array:
    """Which pixels are red, green and blue: masks [3,H,W]; pixel (0, 0) is red."""
    odd_row, odd_column = np.arange(H)[:, None] % 2 == 1, np.arange(W) % 2 == 1
    return np.stack([~odd_row & ~odd_column, odd_row ^ odd_column, odd_row & odd_column])


@pattern("bayer_demosaic_bilinear", draw={"x": integers("0", "1024")})
def bayer_demosaic_bilinear(x: Array) -> Array:
    H, W = x.shape
    # Reflected about the outer pixels, a border continues the mosaic.
    mosaic = np.pad(x, 1, mode="reflect")
    masks = np.pad(rggb(H, W), [(0, 0), (1, 1), (1, 1)], mode="reflect")
    cross = np.array([[0, 1, 0], [1, 4, 1], [0, 1, 0]])  # green, in quarters
    square = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]])  # red and blue
    planes = []
    for mask, quarters in zip(masks, [square, cross, square], strict=True):
        samples = np.where(mask, mosaic, 0)
        planes.append(sum(q * quarters[r, s] for r, s, q in taps(samples, 3, 3)) / 4)
    return np.stack(planes, axis=2)


def demosaic(g: Graph, mosaic: Value, H: int, W: int) -> Value:
    """[H,W] to [1,3,H,W]."""
    cross = np.array([[0, 1, 0], [1, 4, 1], [0, 1, 0]]) / 4
    square = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 4
    masks = np.pad(rggb(H, W), [(0, 0), (1, 1), (1, 1)], mode="reflect")
    border = [0, 0, 1, 1, 0, 0, 1, 1]
    padded = g.Pad(g.Unsqueeze(mosaic, [0, 1]), border, mode="reflect")
    samples = g.Mul(padded, masks[None].astype(np.float32))
    kernels = np.stack([square, cross, square])[:, None].astype(np.float32)
    return g.Conv(samples, kernels, group=3)


@bayer_demosaic_bilinear.twin
def _(g: Graph, x: Value, H: int, W: int) -> Value:
    rgb = demosaic(g, g.Cast(x, to=1), H, W)
    return g.Transpose(g.Squeeze(rgb, [0]), perm=[1, 2, 0])


@pattern(
    "isp_raw_to_rgb",
    draw={"x": integers("40", "1024"), "gain": uniform(1, 2), "M": near_identity},
)
def isp_raw_to_rgb(x: Array, gain: Array, M: Array, bl: int) -> Array:
    gains = (rggb(*x.shape) * gain[:, None, None]).sum(axis=0)
    linear = np.maximum(x - bl, 0) * gains / (1023 - bl)
    rgb = np.clip(bayer_demosaic_bilinear(linear) @ M.T, 0, 1)
    return np.floor(255 * rgb ** (1 / 2.2) + 0.5).astype(int)


@isp_raw_to_rgb.twin
def _(g: Graph, x: Value, gain: Value | Array, M: Array, bl: int, H: int, W: int) -> Value:
    masks = rggb(H, W).transpose(1, 2, 0).astype(np.float32)
    gains = g.MatMul(masks, gain)
    light = g.Relu(g.Sub(g.Cast(x, to=1), np.float32(bl)))
    linear = g.Div(g.Mul(light, gains), np.float32(1023 - bl))
    rgb = g.Transpose(g.Squeeze(demosaic(g, linear, H, W), [0]), perm=[1, 2, 0])
    corrected = g.Clip(g.MatMul(rgb, M.T), np.float32(0), np.float32(1))
    encoded = g.Mul(g.Pow(corrected, np.float32(1 / 2.2)), np.float32(255))
    return g.cast(g.Floor(g.Add(encoded, np.float32(0.5))), DType.U8)
