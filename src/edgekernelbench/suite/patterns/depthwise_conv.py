"""Depthwise convolutions."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import depthwise, pad_hw, taps
from edgekernelbench.suite.twin import Graph, Value


@pattern("depthwise_conv2d_nchw")
def depthwise_conv2d_nchw(x: Array, w: Array, stride: int, pad: int) -> Array:
    return depthwise(pad_hw(x, pad, pad, pad, pad), w, stride)


@depthwise_conv2d_nchw.twin
def _(g: Graph, x: Value, w: Array, stride: int, pad: int) -> Value:
    return blocks.depthwise(g, x, w, None, stride, (pad, pad, pad, pad))


@pattern("depthwise_conv2d_nhwc", draw={"w": weights("R*S")})
def depthwise_conv2d_nhwc(
    x: Array, w: Array, stride: int, pt: int, pb: int, pl: int, pr: int
) -> Array:
    planes = pad_hw(x.transpose(0, 3, 1, 2), pt, pb, pl, pr)  # NHWC to NCHW
    return depthwise(planes, w.transpose(2, 0, 1), stride).transpose(0, 2, 3, 1)


@depthwise_conv2d_nhwc.twin
def _(g: Graph, x: Value, w: Array, stride: int, pt: int, pb: int, pl: int, pr: int) -> Value:
    planes = g.Transpose(x, perm=[0, 3, 1, 2])
    y = blocks.depthwise(g, planes, w.transpose(2, 0, 1), None, stride, (pt, pl, pb, pr))
    return g.Transpose(y, perm=[0, 2, 3, 1])


@pattern("depthwise_conv2d_dilated_nchw")
def depthwise_conv2d_dilated_nchw(x: Array, w: Array, dil: int) -> Array:
    _, _, H, W = x.shape
    _, R, S = w.shape
    pad_h, pad_w = R // 2 * dil, S // 2 * dil
    padded = pad_hw(x, pad_h, pad_h, pad_w, pad_w)
    y = np.zeros(x.shape)
    for r in range(R):
        for s in range(S):
            xrs = padded[:, :, r * dil : r * dil + H, s * dil : s * dil + W]
            y += xrs * w[:, r, s, None, None]
    return y


@depthwise_conv2d_dilated_nchw.twin
def _(g: Graph, x: Value, w: Array, C: int, R: int, S: int, dil: int) -> Value:
    border = [R // 2 * dil, S // 2 * dil]
    return g.Conv(x, w[:, None], group=C, dilations=[dil, dil], pads=border * 2)


@pattern("depthwise_conv2d_multiplier_nchw", draw={"w": weights("R*S")})
def depthwise_conv2d_multiplier_nchw(
    x: Array, w: Array, stride: int, pad: int, OH: int, OW: int
) -> Array:
    N, C, _, _ = x.shape
    _, M, R, S = w.shape
    y = np.zeros((N, C, M, OH, OW))
    for r, s, xrs in taps(pad_hw(x, pad, pad, pad, pad), R, S, stride):
        y += xrs[:, :, None] * w[:, :, r, s, None, None]
    return y.reshape(N, C * M, OH, OW)


@depthwise_conv2d_multiplier_nchw.twin
def _(g: Graph, x: Value, w: Array, C: int, M: int, R: int, S: int, stride: int, pad: int) -> Value:
    filters = w.reshape(C * M, 1, R, S)
    pads = [pad, pad, pad, pad]
    return g.Conv(x, filters, group=C, strides=[stride, stride], pads=pads)
