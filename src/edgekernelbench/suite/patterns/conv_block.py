"""Convolution blocks of a few fused operators."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import hsigmoid, hswish, relu, silu
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import depthwise, max_pool, pad_hw
from edgekernelbench.suite.twin import Graph, Value


def pointwise(x: Array, w: Array, b: Array) -> Array:
    """1x1 convolution of x[1,C,H,W] by w[K,C]."""
    return np.einsum("kc,nchw->nkhw", w, x, optimize=True) + b[:, None, None]


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


@pattern("sppf_nchw")
def sppf_nchw(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    a = silu(pointwise(x, w1, b1))
    pyramid = [a]
    for _ in range(3):
        bordered = pad_hw(pyramid[-1], 2, 2, 2, 2, -np.inf)
        pyramid.append(max_pool(bordered, 5, 5))
    return silu(pointwise(np.concatenate(pyramid, axis=1), w2, b2))


@sppf_nchw.twin
def _(g: Graph, x: Value, w1: Array, b1: Array, w2: Array, b2: Array) -> Value:
    pyramid = [blocks.silu(g, blocks.conv1x1(g, x, w1, b1))]
    for _ in range(3):
        pool = g.MaxPool(pyramid[-1], kernel_shape=[5, 5], pads=[2, 2, 2, 2])
        pyramid.append(pool)
    return blocks.silu(g, blocks.conv1x1(g, g.Concat(*pyramid, axis=1), w2, b2))
