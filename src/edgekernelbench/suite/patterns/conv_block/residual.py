"""Blocks that add their input to what they made of it."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import near, weights
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import gelu, relu
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import (
    conv3x3,
    depthwise,
    pad_hw,
    pointwise,
    taps,
)
from edgekernelbench.suite.twin import Graph, Value


@pattern("residual_basic_block_nhwc", draw={"w1": weights("9*C"), "w2": weights("9*C")})
def residual_basic_block_nhwc(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    planes = x.transpose(2, 0, 1)[None]  # HWC to 1CHW
    t = relu(conv3x3(planes, w1.transpose(3, 2, 0, 1), b1))
    y = relu(conv3x3(t, w2.transpose(3, 2, 0, 1), b2) + planes)
    return y[0].transpose(1, 2, 0)


@residual_basic_block_nhwc.twin
def _(g: Graph, x: Value, w1: Array, b1: Array, w2: Array, b2: Array) -> Value:
    planes = blocks.nhwc_to_nchw(g, x)
    t = g.Relu(blocks.conv3x3(g, planes, w1.transpose(3, 2, 0, 1), b1))
    t = blocks.conv3x3(g, t, w2.transpose(3, 2, 0, 1), b2)
    return blocks.nchw_to_nhwc(g, g.Relu(g.Add(t, planes)))


@pattern("repvgg_branch_sum_nchw", draw={"sc": near(1.0)})
def repvgg_branch_sum_nchw(x: Array, w3: Array, w1: Array, sc: Array, sh: Array) -> Array:
    sc, sh = sc[:, :, None, None], sh[:, :, None, None]
    no_bias = np.zeros(len(w1))
    dense = conv3x3(x, w3, no_bias) * sc[0] + sh[0]
    narrow = pointwise(x, w1, no_bias) * sc[1] + sh[1]
    return relu(dense + narrow + x * sc[2] + sh[2])


@repvgg_branch_sum_nchw.twin
def _(g: Graph, x: Value, w3: Array, w1: Array, sc: Array, sh: Array) -> Value:
    mean, var = np.zeros(sc.shape[1]), np.ones(sc.shape[1])

    def bn(t: Value, branch: int) -> Value:
        return g.BatchNormalization(t, sc[branch], sh[branch], mean, var, epsilon=0.0)

    dense = bn(g.Conv(x, w3, pads=[1, 1, 1, 1]), 0)
    narrow = bn(g.Conv(x, w1[:, :, None, None]), 1)
    return g.Relu(g.Add(g.Add(dense, narrow), bn(x, 2)))


@pattern(
    "convnextv2_block_nchw",
    draw={"gamma": near(1.0), "gg": near(1.0, 0.5), "gb": weights(gain=0.5)},
)
def convnextv2_block_nchw(
    x: Array, wd: Array, bd: Array, gamma: Array, beta: Array, w1: Array, b1: Array, gg: Array,
    gb: Array, w2: Array, b2: Array
) -> Array:  # fmt: skip
    t = depthwise(pad_hw(x, 3, 3, 3, 3), wd) + bd[:, None, None]
    centred = t - t.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    t = centred / np.sqrt(variance + 1e-6) * gamma[:, None, None] + beta[:, None, None]
    t = gelu(pointwise(t, w1, b1))

    G = np.sqrt((t**2).sum(axis=(2, 3), keepdims=True))
    Nx = G / (G.mean(axis=1, keepdims=True) + 1e-6)
    t = gg[:, None, None] * (t * Nx) + gb[:, None, None] + t
    return x + pointwise(t, w2, b2)


@convnextv2_block_nchw.twin
def _(
    g: Graph, x: Value, wd: Array, bd: Array, gamma: Array, beta: Array, w1: Array, b1: Array,
    gg: Array, gb: Array, w2: Array, b2: Array
) -> Value:  # fmt: skip
    t = blocks.depthwise(g, x, wd, bd, 1, (3, 3, 3, 3))
    last = g.Transpose(t, perm=[0, 2, 3, 1])
    last = g.LayerNormalization(last, gamma, beta, axis=-1, epsilon=1e-6)
    t = g.Gelu(blocks.conv1x1(g, g.Transpose(last, perm=[0, 3, 1, 2]), w1, b1))
    norm = g.ReduceL2(t, [2, 3], keepdims=1)
    relative = g.Div(norm, g.Add(g.ReduceMean(norm, [1], keepdims=1), 1e-6))
    gain, shift = gg[:, None, None], gb[:, None, None]
    t = g.Add(g.Add(g.Mul(gain, g.Mul(t, relative)), shift), t)
    return g.Add(x, blocks.conv1x1(g, t, w2, b2))


@pattern(
    "non_bottleneck_1d_nchw",
    draw={
        "w1": weights(gain=1.4),
        "w2": weights(gain=1.4),
        "w3": weights(gain=1.4),
        "w4": weights(gain=1.4),
        "sc": near(1.0),
    },
)
def non_bottleneck_1d_nchw(
    x: Array, w1: Array, w2: Array, w3: Array, w4: Array, b: Array, sc: Array, sh: Array,
    dil: int
) -> Array:  # fmt: skip
    def column(t: Array, w: Array, b: Array, step: int) -> Array:
        """3x1 convolution: three rows, ``step`` apart."""
        H = t.shape[2]
        padded = pad_hw(t, step, step, 0, 0)
        y = b[:, None, None] + np.zeros_like(t)
        for r in range(3):
            rows = padded[:, :, r * step : r * step + H]
            y += np.einsum("kc,nchw->nkhw", w[:, :, r], rows, optimize=True)
        return y

    def row(t: Array, w: Array, b: Array, step: int) -> Array:
        """1x3 convolution: the same along columns."""
        return column(t.swapaxes(2, 3), w, b, step).swapaxes(2, 3)

    sc, sh = sc[:, :, None, None], sh[:, :, None, None]
    t = relu(column(x, w1, b[0], 1))
    t = relu(row(t, w2, b[1], 1) * sc[0] + sh[0])
    t = relu(column(t, w3, b[2], dil))
    return relu(row(t, w4, b[3], dil) * sc[1] + sh[1] + x)


@non_bottleneck_1d_nchw.twin
def _(
    g: Graph, x: Value, w1: Array, w2: Array, w3: Array, w4: Array, b: Array, sc: Array,
    sh: Array, C: int, dil: int
) -> Value:  # fmt: skip
    def column(t: Value, w: Array, b: Array, step: int) -> Value:
        return g.Conv(t, w[:, :, :, None], b, dilations=[step, 1], pads=[step, 0, step, 0])

    def row(t: Value, w: Array, b: Array, step: int) -> Value:
        return g.Conv(t, w[:, :, None, :], b, dilations=[1, step], pads=[0, step, 0, step])

    def bn(t: Value, which: int) -> Value:
        mean, var = np.zeros(C), np.ones(C)
        return g.BatchNormalization(t, sc[which], sh[which], mean, var, epsilon=0.0)

    t = g.Relu(column(x, w1, b[0], 1))
    t = g.Relu(bn(row(t, w2, b[1], 1), 0))
    t = g.Relu(column(t, w3, b[2], dil))
    return g.Relu(g.Add(bn(row(t, w4, b[3], dil), 1), x))


@pattern(
    "pool_mixer_block_nchw",
    draw={"ls1": near(0.6), "ls2": near(0.6), "w2": weights(gain=1.4)},
)
def pool_mixer_block_nchw(
    x: Array, ls1: Array, w1: Array, b1: Array, w2: Array, b2: Array, ls2: Array
) -> Array:
    def window_sum(values: Array) -> Array:
        return np.sum([xrs for _, _, xrs in taps(pad_hw(values, 1, 1, 1, 1), 3, 3)], axis=0)

    pooled = window_sum(x) / window_sum(np.ones_like(x))  # pixels outside do not count
    t = x + ls1[:, None, None] * (pooled - x)
    return t + ls2[:, None, None] * pointwise(gelu(pointwise(t, w1, b1)), w2, b2)


@pool_mixer_block_nchw.twin
def _(
    g: Graph, x: Value, ls1: Array, w1: Array, b1: Array, w2: Array, b2: Array, ls2: Array
) -> Value:
    pooled = g.AveragePool(x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=0)
    t = g.Add(x, g.Mul(ls1[:, None, None], g.Sub(pooled, x)))
    mixed = blocks.conv1x1(g, g.Gelu(blocks.conv1x1(g, t, w1, b1)), w2, b2)
    return g.Add(t, g.Mul(ls2[:, None, None], mixed))
