"""Blocks of mobile networks: depthwise and pointwise convolutions in turn."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import hsigmoid, hswish, relu
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import conv3x3, depthwise, max_pool, pad_hw, pointwise
from edgekernelbench.suite.twin import Graph, Value


@pattern("depthwise_separable_nhwc", draw={"wd": weights("9"), "wp": weights("C")})
def depthwise_separable_nhwc(
    x: Array, wd: Array, bd: Array, wp: Array, bp: Array, stride: int, pt: int, pb: int, pl: int,
    pr: int
) -> Array:  # fmt: skip
    planes = pad_hw(x.transpose(2, 0, 1)[None], pt, pb, pl, pr)  # HWC to 1CHW
    t = relu(depthwise(planes, wd.transpose(2, 0, 1), stride) + bd[:, None, None])
    return relu(pointwise(t, wp.T, bp))[0].transpose(1, 2, 0)


@depthwise_separable_nhwc.twin
def _(
    g: Graph, x: Value, wd: Array, bd: Array, wp: Array, bp: Array, stride: int, pt: int, pb: int,
    pl: int, pr: int
) -> Value:  # fmt: skip
    planes = blocks.nhwc_to_nchw(g, x)
    pads = (pt, pl, pb, pr)
    t = g.Relu(blocks.depthwise(g, planes, wd.transpose(2, 0, 1), bd, stride, pads))
    return blocks.nchw_to_nhwc(g, g.Relu(blocks.conv1x1(g, t, wp.T, bp)))


@pattern("inverted_residual_se_hswish_nchw")
def inverted_residual_se_hswish_nchw(
    x: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array, w4: Array,
    b4: Array, w5: Array, b5: Array, stride: int, res: int
) -> Array:  # fmt: skip
    pad = w2.shape[1] // 2
    t = hswish(pointwise(x, w1, b1))
    t = hswish(depthwise(pad_hw(t, pad, pad, pad, pad), w2, stride) + b2[:, None, None])
    pooled = t.mean(axis=(2, 3))[0]
    gate = hsigmoid(w4 @ relu(w3 @ pooled + b3) + b4)
    y = pointwise(t * gate[:, None, None], w5, b5)
    return y + x if res else y


@inverted_residual_se_hswish_nchw.twin
def _(
    g: Graph, x: Value, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array,
    w4: Array, b4: Array, w5: Array, b5: Array, stride: int, res: int, R: int
) -> Value:  # fmt: skip
    pad = R // 2
    t = g.HardSwish(blocks.conv1x1(g, x, w1, b1))
    t = g.HardSwish(blocks.depthwise(g, t, w2, b2, stride, (pad, pad, pad, pad)))
    squeezed = g.Relu(blocks.conv1x1(g, g.GlobalAveragePool(t), w3, b3))
    gate = g.HardSigmoid(blocks.conv1x1(g, squeezed, w4, b4), alpha=1 / 6, beta=0.5)
    y = blocks.conv1x1(g, g.Mul(t, gate), w5, b5)
    return g.Add(y, x) if res else y


@pattern("inverted_residual_nchw")
def inverted_residual_nchw(
    x: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array, stride: int,
    res: int
) -> Array:  # fmt: skip
    t = np.clip(pointwise(x, w1, b1), 0, 6)
    t = depthwise(pad_hw(t, 1, 1, 1, 1), w2, stride) + b2[:, None, None]
    y = pointwise(np.clip(t, 0, 6), w3, b3)
    return y + x if res else y


@inverted_residual_nchw.twin
def _(
    g: Graph, x: Value, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array,
    stride: int, res: int
) -> Value:  # fmt: skip
    t = g.Clip(blocks.conv1x1(g, x, w1, b1), 0.0, 6.0)
    t = g.Clip(blocks.depthwise(g, t, w2, b2, stride, (1, 1, 1, 1)), 0.0, 6.0)
    y = blocks.conv1x1(g, t, w3, b3)
    return g.Add(y, x) if res else y


@pattern("fused_mbconv_residual_nhwc", draw={"w1": weights("9*C"), "w2": weights("E")})
def fused_mbconv_residual_nhwc(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    planes = x.transpose(2, 0, 1)[None]  # HWC to 1CHW
    t = relu(conv3x3(planes, w1.transpose(3, 2, 0, 1), b1))
    return x + pointwise(t, w2.T, b2)[0].transpose(1, 2, 0)


@fused_mbconv_residual_nhwc.twin
def _(g: Graph, x: Value, w1: Array, b1: Array, w2: Array, b2: Array) -> Value:
    planes = blocks.nhwc_to_nchw(g, x)
    t = g.Relu(blocks.conv3x3(g, planes, w1.transpose(3, 2, 0, 1), b1))
    return blocks.nchw_to_nhwc(g, g.Add(planes, blocks.conv1x1(g, t, w2.T, b2)))


@pattern("shufflenet_v2_unit_nchw")
def shufflenet_v2_unit_nchw(
    x: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array, C: int
) -> Array:
    kept, t = x[:, :C], x[:, C:]
    t = relu(pointwise(t, w1, b1))
    t = depthwise(pad_hw(t, 1, 1, 1, 1), w2) + b2[:, None, None]
    t = relu(pointwise(t, w3, b3))
    return np.stack([kept, t], axis=2).reshape(x.shape)  # channels of the two in turn


@shufflenet_v2_unit_nchw.twin
def _(
    g: Graph, x: Value, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array, C: int,
    H: int, W: int
) -> Value:  # fmt: skip
    kept, t = g.op("Split", x, outputs=2, axis=1, num_outputs=2)
    t = g.Relu(blocks.conv1x1(g, t, w1, b1))
    t = blocks.depthwise(g, t, w2, b2, 1, (1, 1, 1, 1))
    t = g.Relu(blocks.conv1x1(g, t, w3, b3))
    halves = g.Reshape(g.Concat(kept, t, axis=1), [1, 2, C, H, W])
    return g.Reshape(g.Transpose(halves, perm=[0, 2, 1, 3, 4]), [1, 2 * C, H, W])


@pattern("ghost_module_nchw")
def ghost_module_nchw(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    primary = relu(pointwise(x, w1, b1))
    ghost = relu(depthwise(pad_hw(primary, 1, 1, 1, 1), w2) + b2[:, None, None])
    return np.concatenate([primary, ghost], axis=1)


@ghost_module_nchw.twin
def _(g: Graph, x: Value, w1: Array, b1: Array, w2: Array, b2: Array) -> Value:
    primary = g.Relu(blocks.conv1x1(g, x, w1, b1))
    ghost = g.Relu(blocks.depthwise(g, primary, w2, b2, 1, (1, 1, 1, 1)))
    return g.Concat(primary, ghost, axis=1)


@pattern("blaze_block_s2_nhwc", draw={"wd": weights("Kk*Kk"), "wp": weights("C")})
def blaze_block_s2_nhwc(
    x: Array, wd: Array, bd: Array, wp: Array, bp: Array, C: int, K: int, Kk: int, p0: int
) -> Array:
    planes = x.transpose(2, 0, 1)[None]  # HWC to 1CHW
    after = Kk - 2 - p0
    t = depthwise(pad_hw(planes, p0, after, p0, after), wd.transpose(2, 0, 1), stride=2)
    t = pointwise(t + bd[:, None, None], wp.T, bp)
    t[:, :C] += max_pool(planes, 2, 2, stride=2)  # the channels from C on get nothing
    return relu(t)[0].transpose(1, 2, 0)


@blaze_block_s2_nhwc.twin
def _(
    g: Graph, x: Value, wd: Array, bd: Array, wp: Array, bp: Array, C: int, K: int, Kk: int,
    p0: int
) -> Value:  # fmt: skip
    planes = blocks.nhwc_to_nchw(g, x)
    after = Kk - 2 - p0
    t = blocks.depthwise(g, planes, wd.transpose(2, 0, 1), bd, 2, (p0, p0, after, after))
    t = blocks.conv1x1(g, t, wp.T, bp)
    pool = g.MaxPool(planes, kernel_shape=[2, 2], strides=[2, 2])
    padded = g.Pad(pool, [0, 0, 0, 0, 0, K - C, 0, 0])
    return blocks.nchw_to_nhwc(g, g.Relu(g.Add(t, padded)))
