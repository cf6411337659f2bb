"""Linear and smoothing filters, sums over windows."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw, uniform
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.image.stencils import sobel, sobel_planes, unfold
from edgekernelbench.suite.patterns.image.textures import smooth
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import pad_hw, taps
from edgekernelbench.suite.twin import Graph, Value


@pattern("sobel_magnitude")
def sobel_magnitude(x: Array) -> Array:
    gx, gy = sobel(x)
    return np.sqrt(gx**2 + gy**2)


@sobel_magnitude.twin
def _(g: Graph, x: Value) -> Value:
    return g.Squeeze(g.ReduceL2(sobel_planes(g, x), [1], keepdims=0), [0])


@pattern("pyr_down_5x5")
def pyr_down_5x5(x: Array, H: int, W: int) -> Array:
    k = np.array([1, 4, 6, 4, 1])
    padded = np.pad(x, 2, mode="reflect")  # without repeating the outermost pixels
    total = np.zeros((H // 2, W // 2), np.int64)
    for r, s, xrs in taps(padded, 5, 5, stride=2):
        total += k[r] * k[s] * xrs[: H // 2, : W // 2]
    return (total + 128) >> 8


@pyr_down_5x5.twin
def _(g: Graph, x: Value) -> Value:
    k = np.array([1, 4, 6, 4, 1], np.uint8)
    # The last row and column of the border are not reached when sizes are even.
    padded = g.Pad(g.Unsqueeze(x, [0, 1]), [0, 0, 2, 2, 0, 0, 1, 1], mode="reflect")
    total = g.ConvInteger(padded, np.outer(k, k)[None, None], strides=[2, 2])
    y = g.Div(g.Add(total, np.int32(128)), np.int32(256))
    return g.Squeeze(g.cast(y, DType.U8), [0, 1])


def gaussian(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """A Gaussian whose widths along rows and columns differ, and off the centre a little."""
    rng = draw.rng(spec.name)
    profiles = []
    for extent in spec.shape:
        offsets = np.arange(extent) - extent // 2 - rng.uniform(-0.3, 0.3)
        profiles.append(np.exp(-(offsets**2) / (2 * rng.uniform(1, 2.5) ** 2)))
    return np.outer(*profiles)


@pattern("bilateral_filter", draw={"x": uniform(0, 1), "ws": gaussian})
def bilateral_filter(x: Array, ws: Array, inv2s: float, Rr: int) -> Array:
    half = Rr // 2
    total, norm = np.zeros(x.shape), np.zeros(x.shape)
    for r, s, q in taps(np.pad(x, half, mode="edge"), Rr, Rr):
        weight = ws[r, s] * np.exp(-((q - x) ** 2) * inv2s)
        total += weight * q
        norm += weight
    return total / norm


@bilateral_filter.twin
def _(g: Graph, x: Value, ws: Array, inv2s: float, Rr: int) -> Value:
    around = unfold(g, x, Rr // 2)
    distance = g.Sub(around, x)
    likeness = g.Exp(g.Mul(g.Mul(distance, distance), -inv2s))
    weight = g.Mul(likeness, ws.reshape(1, -1, 1, 1))
    total = g.ReduceSum(g.Mul(weight, around), [1], keepdims=0)
    return g.Squeeze(g.Div(total, g.ReduceSum(weight, [1], keepdims=0)), [0])


@pattern("integral_image")
def integral_image(x: Array) -> Array:
    return x.cumsum(axis=0).cumsum(axis=1)


@integral_image.twin
def _(g: Graph, x: Value) -> Value:
    columns = g.CumSum(g.cast(x, DType.S32), np.int32(0))
    return g.CumSum(columns, np.int32(1))


def window_mean(x: Array, r: int) -> Array:
    """Mean over the part of a window of 2*r+1 pixels a side that lies within the image."""

    def window_sum(values: Array) -> Array:
        rows = sum(xrs for _, _, xrs in taps(pad_hw(values, r, r, r, r), 2 * r + 1, 1))
        return np.asarray(sum(xrs for _, _, xrs in taps(np.asarray(rows), 1, 2 * r + 1)))

    return window_sum(x) / window_sum(np.ones_like(x))


def matte(draw: Draw) -> dict[str, np.ndarray]:
    """A guide of flat and of textured regions, and a coarse version of it to refine."""
    H, W = draw.shape("I")
    rng = draw.rng("I")
    shade = np.clip(0.5 + 0.3 * smooth(rng, H, W, 4), 0, 1)
    guide = 0.8 * np.where(shade > 0.5, shade, 0.2) + 0.2 * rng.uniform(0, 1, (H, W))
    rng = draw.rng("p")
    coarse = 0.6 * (guide > 0.5) + 0.4 * rng.uniform(0, 1, (H, W))
    return {"I": guide, "p": coarse}


@pattern("guided_filter_gray")
def guided_filter_gray(I: Array, p: Array, eps: float, r: int) -> Array:  # noqa: E741
    mean_I, mean_p = window_mean(I, r), window_mean(p, r)
    variance = window_mean(I * I, r) - mean_I**2
    a = (window_mean(I * p, r) - mean_I * mean_p) / (variance + eps)
    b = mean_p - a * mean_I
    return window_mean(a, r) * I + window_mean(b, r)


guided_filter_gray.inputs(matte)


@guided_filter_gray.twin
def _(g: Graph, I: Value, p: Value, eps: float, r: int) -> Value:  # noqa: E741
    def mean(x: Value) -> Value:
        return g.AveragePool(x, kernel_shape=[2 * r + 1] * 2, pads=[r] * 4, count_include_pad=0)

    guide, coarse = g.Unsqueeze(I, [0, 1]), g.Unsqueeze(p, [0, 1])
    mean_guide, mean_coarse = mean(guide), mean(coarse)
    variance = g.Sub(mean(g.Mul(guide, guide)), g.Mul(mean_guide, mean_guide))
    covariance = g.Sub(mean(g.Mul(guide, coarse)), g.Mul(mean_guide, mean_coarse))
    a = g.Div(covariance, g.Add(variance, eps))
    b = g.Sub(mean_coarse, g.Mul(a, mean_guide))
    return g.Squeeze(g.Add(g.Mul(mean(a), guide), mean(b)), [0, 1])
