"""Integer products with s32 accumulators as results."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import integers
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.quantisation import BIAS, ZERO_POINT
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import pad_hw, taps
from edgekernelbench.suite.twin import Graph, Value


@pattern("qmatmul_s8s8s32_nt")
def qmatmul_s8s8s32_nt(A: Array, B: Array) -> Array:
    return A @ B.T


@qmatmul_s8s8s32_nt.twin
def _(g: Graph, A: Value, B: Array) -> Value:
    return g.MatMulInteger(A, B.T)


@pattern("qmatmul_u8s8s32_zero_point", draw={"za": integers("108", "149"), "bias": BIAS})
def qmatmul_u8s8s32_zero_point(A: Array, za: Array, B: Array, bias: Array) -> Array:
    return (A - za[0]) @ B.T + bias


@qmatmul_u8s8s32_zero_point.twin
def _(g: Graph, A: Value, za: Array, B: Array, bias: Array) -> Value:
    zero_point = za[0].astype(np.uint8)
    return g.Add(g.MatMulInteger(A, blocks.as_u8(B.T), zero_point, np.uint8(128)), bias)


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


@pattern("qdepthwise_conv2d_s8s32_nhwc", draw={"zx": ZERO_POINT, "bias": BIAS})
def qdepthwise_conv2d_s8s32_nhwc(
    x: Array, zx: Array, w: Array, bias: Array, stride: int, pt: int, pb: int, pl: int, pr: int,
    OH: int, OW: int
) -> Array:  # fmt: skip
    R, S, C = w.shape
    planes = pad_hw((x - zx[0]).transpose(2, 0, 1), pt, pb, pl, pr)  # HWC to CHW
    y = np.zeros((OH, OW, C), np.int64) + bias
    for r, s, xrs in taps(planes, R, S, stride):
        y += xrs.transpose(1, 2, 0) * w[r, s]
    return y


@qdepthwise_conv2d_s8s32_nhwc.twin
def _(
    g: Graph, x: Value, zx: Array, w: Array, bias: Array, stride: int, pt: int, pb: int, pl: int,
    pr: int
) -> Value:  # fmt: skip
    acc = g.ConvInteger(
        blocks.nhwc_to_nchw(g, x),
        w.transpose(2, 0, 1)[:, None],
        zx[0].astype(np.int8),
        group=w.shape[2],
        strides=[stride, stride],
        pads=[pt, pl, pb, pr],
    )
    return g.Add(blocks.nchw_to_nhwc(g, acc), bias)
