"""Subgraphs that the ONNX twins of several families share."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.patterns.registry import Array
from edgekernelbench.suite.twin import Graph, Value


def silu(g: Graph, x: Value) -> Value:
    return g.Mul(x, g.Sigmoid(x))


def conv1x1(g: Graph, x: Value, w: Array, b: Array) -> Value:
    """x[1,C,H,W], w[K,C]."""
    return g.Conv(x, w[:, :, None, None], b)


def conv3x3(g: Graph, x: Value, w: Array, b: Array) -> Value:
    """x[1,C,H,W], w[K,C,3,3], border of zeros."""
    return g.Conv(x, w, b, pads=[1, 1, 1, 1])


def depthwise(
    g: Graph, x: Value, w: Array, b: Array | None, stride: int, pads: tuple[int, int, int, int]
) -> Value:
    """x[1,C,H,W], w[C,R,S]; pads are top, left, bottom, right."""
    strides = [stride, stride]
    return g.Conv(x, w[:, None], b, group=w.shape[0], strides=strides, pads=list(pads))


def nearest(g: Graph, x: Value, factor: int) -> Value:
    """x[1,C,H,W], each pixel repeated along rows and columns."""
    scales = np.array([1, 1, factor, factor], np.float32)
    options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return g.Resize(x, None, scales, mode="nearest", **options)


def nhwc_to_nchw(g: Graph, x: Value) -> Value:
    """[H,W,C] to [1,C,H,W]."""
    return g.Unsqueeze(g.Transpose(x, perm=[2, 0, 1]), [0])


def nchw_to_nhwc(g: Graph, x: Value) -> Value:
    """[1,C,H,W] to [H,W,C]."""
    return g.Transpose(g.Squeeze(x, [0]), perm=[1, 2, 0])


def wide(g: Graph, x: Value) -> Value:
    """``x`` as float32."""
    return g.Cast(x, to=1) if g.float_dtype == np.float16 else x


def rms_norm(g: Graph, x: Value, gain: Array, eps: float) -> Value:
    """Over the last axis, in float32 where x is float16."""
    x = wide(g, x)
    mean = g.ReduceMean(g.Mul(x, x), [-1], keepdims=1)
    scaled = g.Div(x, g.Sqrt(g.Add(mean, np.float32(eps))))
    return g.cast(g.Mul(scaled, gain.astype(np.float32)))


def rope_half_split(g: Graph, x: Value, cos: Array | Value, sin: Array | Value) -> Value:
    """Rotates pairs (i, i + D/2) of x[..., D]; cos and sin broadcast against x[..., D/2].

    In float32, as the tables are.
    """
    a, b = g.op("Split", wide(g, x), outputs=2, axis=-1, num_outputs=2)
    first = g.Sub(g.Mul(a, cos), g.Mul(b, sin))
    second = g.Add(g.Mul(b, cos), g.Mul(a, sin))
    return g.cast(g.Concat(first, second, axis=-1))


def as_u8(w: Array) -> Array:
    """Weights of s8 as u8 with the zero point 128.

    On x86 without VNNI, ONNX Runtime's products of u8 and s8 saturate at 16 bits, and inside of
    a chain it turns s8 activations into u8 by itself.
    """
    return (w.astype(np.int16) + 128).astype(np.uint8)
