"""Integer and weight-quantised operators."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import activations, integers
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.quantisation import requant, requant_scales
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import pad_hw, taps
from edgekernelbench.suite.twin import Graph, Value

ZERO_POINT = integers("-10", "11")
BIAS = integers("-4096", "4097")


@pattern("qconv2d_s8s32_nhwc", draw={"zx": ZERO_POINT, "bias": BIAS})
def qconv2d_s8s32_nhwc(
    x: Array, zx: Array, w: Array, bias: Array, stride: int, pt: int, pb: int, pl: int, pr: int,
    OH: int, OW: int
) -> Array:  # fmt: skip
    K, R, S, _ = w.shape
    planes = pad_hw((x - zx[0]).transpose(2, 0, 1), pt, pb, pl, pr)  # HWC to CHW
    y = np.zeros((OH, OW, K), np.int64) + bias
    for r, s, xrs in taps(planes, R, S, stride):
        y += np.einsum("cij,kc->ijk", xrs, w[:, r, s])
    return y


@qconv2d_s8s32_nhwc.twin
def _(
    g: Graph, x: Value, zx: Array, w: Array, bias: Array, stride: int, pt: int, pb: int, pl: int,
    pr: int
) -> Value:  # fmt: skip
    acc = g.ConvInteger(
        blocks.nhwc_to_nchw(g, x),
        w.transpose(0, 3, 1, 2),
        zx[0].astype(np.int8),
        strides=[stride, stride],
        pads=[pt, pl, pb, pr],
    )
    return g.Add(blocks.nchw_to_nhwc(g, acc), bias)


@pattern(
    "qdepthwise_bias_requant_s8_nhwc",
    draw={
        "zx": ZERO_POINT,
        "bias": BIAS,
        "sc": requant_scales("R*S"),
        "zy": ZERO_POINT,
    },
)
def qdepthwise_bias_requant_s8_nhwc(
    x: Array, zx: Array, w: Array, bias: Array, sc: Array, zy: Array, stride: int, pt: int,
    pb: int, pl: int, pr: int, OH: int, OW: int
) -> Array:  # fmt: skip
    R, S, C = w.shape
    planes = pad_hw((x - zx[0]).transpose(2, 0, 1), pt, pb, pl, pr)  # HWC to CHW
    acc = np.zeros((OH, OW, C), np.int64) + bias
    for r, s, xrs in taps(planes, R, S, stride):
        acc += xrs.transpose(1, 2, 0) * w[r, s]
    return requant(acc, sc, zy[0])


@qdepthwise_bias_requant_s8_nhwc.twin
def _(
    g: Graph, x: Value, zx: Array, w: Array, bias: Array, sc: Array, zy: Array, stride: int,
    pt: int, pb: int, pl: int, pr: int
) -> Value:  # fmt: skip
    # Input and output at scale 1, so that the weights' scales are the whole rescaling.
    one = np.float32(1)
    planes = g.DequantizeLinear(blocks.nhwc_to_nchw(g, x), one, zx[0].astype(np.int8))
    filters = g.DequantizeLinear(w.transpose(2, 0, 1)[:, None], sc, axis=0)
    y = g.Conv(
        planes,
        filters,
        g.DequantizeLinear(bias, sc, axis=0),
        group=w.shape[2],
        strides=[stride, stride],
        pads=[pt, pl, pb, pr],
    )
    return blocks.nchw_to_nhwc(g, g.QuantizeLinear(y, one, zy[0].astype(np.int8)))


@pattern("gemv_q4_0_block32", draw={"d": activations(0.02, spread=0.5)})
def gemv_q4_0_block32(q: Array, d: Array, x: Array) -> Array:
    KB = q.shape[1]
    levels = np.concatenate([q & 15, q >> 4], axis=2) - 8  # low nibbles, then high ones
    return (d * (levels * x.reshape(KB, 32)).sum(axis=2)).sum(axis=1)


@gemv_q4_0_block32.twin
def _(g: Graph, q: Array, d: Array, x: Value, N: int, KB: int) -> Value:
    levels = np.concatenate([q & 15, q >> 4], axis=2).reshape(N, KB * 32)
    eight = g.uint4(np.full((KB, N), 8))
    scales = d.T.astype(np.float32)
    w = g.DequantizeLinear(g.uint4(levels.T), scales, eight, axis=0, block_size=32)
    return g.MatMul(x, w)
