"""One convolution, and what follows it."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import uniform, weights
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import relu, silu
from edgekernelbench.suite.patterns.ranges import batch_statistics
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import conv2d, conv3x3, depthwise, pad_hw
from edgekernelbench.suite.twin import Graph, Value


def batch_norm(x: Array, mean: Array, var: Array, gamma: Array, beta: Array, eps: float) -> Array:
    """x[1,C,H,W], each channel by its own statistics."""
    mean, var, gamma, beta = (v[:, None, None] for v in (mean, var, gamma, beta))
    return (x - mean) / np.sqrt(var + eps) * gamma + beta


@pattern("conv2d_bias_relu_nchw")
def conv2d_bias_relu_nchw(x: Array, w: Array, b: Array, stride: int, pad: int) -> Array:
    return relu(conv2d(pad_hw(x, pad, pad, pad, pad), w, stride) + b[:, None, None])


@conv2d_bias_relu_nchw.twin
def _(g: Graph, x: Value, w: Array, b: Array, stride: int, pad: int) -> Value:
    return g.Relu(g.Conv(x, w, b, strides=[stride, stride], pads=[pad] * 4))


@pattern("conv2d_bn_silu_nchw")
def conv2d_bn_silu_nchw(
    x: Array, w: Array, mean: Array, var: Array, gamma: Array, beta: Array, stride: int, pad: int
) -> Array:
    t = conv2d(pad_hw(x, pad, pad, pad, pad), w, stride)
    return silu(batch_norm(t, mean, var, gamma, beta, 1e-3))


conv2d_bn_silu_nchw.inputs(batch_statistics(1e-3))


@conv2d_bn_silu_nchw.twin
def _(
    g: Graph, x: Value, w: Array, mean: Array, var: Array, gamma: Array, beta: Array, stride: int,
    pad: int
) -> Value:  # fmt: skip
    t = g.Conv(x, w, strides=[stride, stride], pads=[pad] * 4)
    return blocks.silu(g, g.BatchNormalization(t, gamma, beta, mean, var, epsilon=1e-3))


@pattern("depthwise_conv2d_bn_relu6_nchw")
def depthwise_conv2d_bn_relu6_nchw(
    x: Array, w: Array, mean: Array, var: Array, gamma: Array, beta: Array, stride: int, pad: int
) -> Array:
    t = depthwise(pad_hw(x, pad, pad, pad, pad), w, stride)
    return np.clip(batch_norm(t, mean, var, gamma, beta, 1e-5), 0, 6)


depthwise_conv2d_bn_relu6_nchw.inputs(batch_statistics(1e-5, gain=2.0, spread=0.5))


@depthwise_conv2d_bn_relu6_nchw.twin
def _(
    g: Graph, x: Value, w: Array, mean: Array, var: Array, gamma: Array, beta: Array, stride: int,
    pad: int
) -> Value:  # fmt: skip
    t = blocks.depthwise(g, x, w, None, stride, (pad, pad, pad, pad))
    t = g.BatchNormalization(t, gamma, beta, mean, var, epsilon=1e-5)
    return g.Clip(t, 0.0, 6.0)


@pattern(
    "pixel_shuffle_tail_nchw",
    draw={"w": weights(gain=0.15), "b": weights(gain=0.2), "img": uniform(-0.1, 1.1)},
)
def pixel_shuffle_tail_nchw(x: Array, w: Array, b: Array, img: Array, r: int) -> Array:
    _, _, H, W = x.shape
    tiles = conv3x3(x, w, b).reshape(3, r, r, H, W)  # an r x r tile for each pixel
    detail = tiles.transpose(0, 3, 1, 4, 2).reshape(1, 3, H * r, W * r)
    nearest = img.repeat(r, axis=2).repeat(r, axis=3)
    return np.clip(detail + nearest, 0, 1)


@pixel_shuffle_tail_nchw.twin
def _(g: Graph, x: Value, w: Array, b: Array, img: Value, r: int) -> Value:
    detail = g.DepthToSpace(blocks.conv3x3(g, x, w, b), blocksize=r, mode="CRD")
    return g.Clip(g.Add(detail, blocks.nearest(g, img, r)), 0.0, 1.0)
