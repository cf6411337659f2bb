"""From image to image: segmentation, super-resolution, depth."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import activations, near, weights
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.conv_block.merging import conv_transpose2x2
from edgekernelbench.suite.patterns.functions import relu
from edgekernelbench.suite.patterns.ranges import with_means
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import conv2d, conv3x3, max_pool, pad_hw, pointwise
from edgekernelbench.suite.twin import Graph, Value

RELU_GAIN = 1.4
"""Keeps the scale of activations, half of which become zero."""


def atrous(x: Array, w: Array, b: Array, rate: int) -> Array:
    """Depthwise 3x3 convolution of x[1,C,H,W] with taps ``rate`` apart."""
    _, _, H, W = x.shape
    padded = pad_hw(x, rate, rate, rate, rate)
    y = b[:, None, None] + np.zeros_like(x)
    for r in range(3):
        for s in range(3):
            moved = padded[:, :, r * rate : r * rate + H, s * rate : s * rate + W]
            y += w[:, r, s, None, None] * moved
    return y


@pattern(
    "aspp_separable_head",
    draw={
        "x": with_means(activations(), axes=(1, 2)),
        "wd": weights("9", RELU_GAIN),
        "wp": weights("C", RELU_GAIN),
        "w5": weights("5*K", RELU_GAIN),
    },
)
def aspp_separable_head(
    x: Array, w0: Array, bb0: Array, wd: Array, bd: Array, wp: Array, bp: Array, w4: Array,
    bb4: Array, w5: Array, b5: Array, w6: Array, b6: Array
) -> Array:  # fmt: skip
    x = x[None]
    branches = [relu(pointwise(x, w0, bb0))]
    for i, rate in enumerate([6, 12, 18]):
        t = relu(atrous(x, wd[i], bd[i], rate))
        branches.append(relu(pointwise(t, wp[i], bp[i])))
    mean = relu(pointwise(x.mean(axis=(2, 3), keepdims=True), w4, bb4))
    branches.append(np.broadcast_to(mean, branches[0].shape))
    z = relu(pointwise(np.concatenate(branches, axis=1), w5, b5))
    return pointwise(z, w6, b6)[0]


@aspp_separable_head.twin
def _(
    g: Graph, x: Value, w0: Array, bb0: Array, wd: Array, bd: Array, wp: Array, bp: Array,
    w4: Array, bb4: Array, w5: Array, b5: Array, w6: Array, b6: Array, K: int, H: int, W: int
) -> Value:  # fmt: skip
    planes = g.Unsqueeze(x, [0])
    branches = [g.Relu(blocks.conv1x1(g, planes, w0, bb0))]
    for i, rate in enumerate([6, 12, 18]):
        filters = wd[i][:, None]
        spread = {"dilations": [rate, rate], "pads": [rate] * 4, "group": len(filters)}
        t = g.Relu(g.Conv(planes, filters, bd[i], **spread))
        branches.append(g.Relu(blocks.conv1x1(g, t, wp[i], bp[i])))
    mean = g.Relu(blocks.conv1x1(g, g.GlobalAveragePool(planes), w4, bb4))
    branches.append(g.Expand(mean, [1, K, H, W]))
    z = g.Relu(blocks.conv1x1(g, g.Concat(*branches, axis=1), w5, b5))
    return g.Squeeze(blocks.conv1x1(g, z, w6, b6), [0])


@pattern(
    "unet_lite",
    draw={
        **{name: weights(gain=RELU_GAIN) for name in ("wa0", "wb0", "wb1", "wb2")},
        # Maximum pooling has raised the scale.
        **{name: weights() for name in ("wa1", "wa2", "wc0", "wc1", "wo")},
        "wt0": weights("2*C"),
        "wt1": weights("4*C"),
    },
)
def unet_lite(
    x: Array, wa0: Array, ba0: Array, wb0: Array, bb0: Array, wa1: Array, ba1: Array, wb1: Array,
    bb1: Array, wa2: Array, ba2: Array, wb2: Array, bb2: Array, wt1: Array, bt1: Array,
    wc1: Array, bc1: Array, wt0: Array, bt0: Array, wc0: Array, bc0: Array, wo: Array, bo: Array
) -> Array:  # fmt: skip
    def cc(t: Array, wa: Array, ba: Array, wb: Array, bb: Array) -> Array:
        return relu(conv3x3(relu(conv3x3(t, wa, ba)), wb, bb))

    def up(skip: Array, t: Array, wt: Array, bt: Array, wc: Array, bc: Array) -> Array:
        joined = np.concatenate([skip, conv_transpose2x2(t, wt, bt)], axis=1)
        return relu(conv3x3(joined, wc, bc))

    e0 = cc(x[None], wa0, ba0, wb0, bb0)
    e1 = cc(max_pool(e0, 2, 2, stride=2), wa1, ba1, wb1, bb1)
    e2 = cc(max_pool(e1, 2, 2, stride=2), wa2, ba2, wb2, bb2)
    d1 = up(e1, e2, wt1, bt1, wc1, bc1)
    d0 = up(e0, d1, wt0, bt0, wc0, bc0)
    return pointwise(d0, wo, bo)[0]


@unet_lite.twin
def _(
    g: Graph, x: Value, wa0: Array, ba0: Array, wb0: Array, bb0: Array, wa1: Array, ba1: Array,
    wb1: Array, bb1: Array, wa2: Array, ba2: Array, wb2: Array, bb2: Array, wt1: Array,
    bt1: Array, wc1: Array, bc1: Array, wt0: Array, bt0: Array, wc0: Array, bc0: Array,
    wo: Array, bo: Array
) -> Value:  # fmt: skip
    def cc(t: Value, wa: Array, ba: Array, wb: Array, bb: Array) -> Value:
        return g.Relu(blocks.conv3x3(g, g.Relu(blocks.conv3x3(g, t, wa, ba)), wb, bb))

    def down(t: Value) -> Value:
        return g.MaxPool(t, kernel_shape=[2, 2], strides=[2, 2])

    def up(skip: Value, t: Value, wt: Array, bt: Array, wc: Array, bc: Array) -> Value:
        u = g.ConvTranspose(t, wt, bt, strides=[2, 2])
        return g.Relu(blocks.conv3x3(g, g.Concat(skip, u, axis=1), wc, bc))

    e0 = cc(g.Unsqueeze(x, [0]), wa0, ba0, wb0, bb0)
    e1 = cc(down(e0), wa1, ba1, wb1, bb1)
    e2 = cc(down(e1), wa2, ba2, wb2, bb2)
    d1 = up(e1, e2, wt1, bt1, wc1, bc1)
    d0 = up(e0, d1, wt0, bt0, wc0, bc0)
    return g.Squeeze(blocks.conv1x1(g, d0, wo, bo), [0])


def depth_to_space(x: Array, r: int) -> Array:
    """x[1,C*r*r,H,W] to [1,C,H*r,W*r]: r*r channels become a tile of r x r pixels."""
    _, _, H, W = x.shape
    tiles = x.reshape(1, -1, r, r, H, W)
    return tiles.transpose(0, 1, 4, 2, 5, 3).reshape(1, -1, H * r, W * r)


@pattern(
    "espcn_super_resolution",
    draw={"w1": weights(gain=1.5), "w2": weights(gain=1.5), "w3": weights(gain=1.5)},
)
def espcn_super_resolution(
    x: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array, r: int
) -> Array:
    t = np.tanh(conv2d(pad_hw(x[None], 2, 2, 2, 2), w1) + b1[:, None, None])
    t = np.tanh(conv3x3(t, w2, b2))
    return depth_to_space(conv3x3(t, w3, b3), r)[0]


@espcn_super_resolution.twin
def _(
    g: Graph, x: Value, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array, r: int
) -> Value:
    t = g.Tanh(g.Conv(g.Unsqueeze(x, [0]), w1, b1, pads=[2, 2, 2, 2]))
    t = g.Tanh(blocks.conv3x3(g, t, w2, b2))
    y = g.DepthToSpace(blocks.conv3x3(g, t, w3, b3), blocksize=r, mode="CRD")
    return g.Squeeze(y, [0])


@pattern(
    "srvgg_compact",
    draw={
        "w0": weights(gain=1.3),
        "wb": weights("9*C", 1.2),
        "a0": near(0.25, 0.15),
        "ab": near(0.25, 0.15),
    },
)
def srvgg_compact(
    x: Array, w0: Array, b0: Array, a0: Array, wb: Array, bb: Array, ab: Array, wl: Array,
    bl: Array, r: int
) -> Array:  # fmt: skip
    def prelu(t: Array, slope: Array) -> Array:
        return np.where(t > 0, t, slope[:, None, None] * t)

    t = prelu(conv3x3(x[None], w0, b0), a0)
    for i in range(len(wb)):
        t = prelu(conv3x3(t, wb[i], bb[i]), ab[i])
    nearest = x.repeat(r, axis=1).repeat(r, axis=2)
    return depth_to_space(conv3x3(t, wl, bl), r)[0] + nearest


@srvgg_compact.twin
def _(
    g: Graph, x: Value, w0: Array, b0: Array, a0: Array, wb: Array, bb: Array, ab: Array,
    wl: Array, bl: Array, r: int
) -> Value:  # fmt: skip
    planes = g.Unsqueeze(x, [0])
    t = g.PRelu(blocks.conv3x3(g, planes, w0, b0), a0[:, None, None])
    for i in range(len(wb)):
        t = g.PRelu(blocks.conv3x3(g, t, wb[i], bb[i]), ab[i][:, None, None])
    detail = g.DepthToSpace(blocks.conv3x3(g, t, wl, bl), blocksize=r, mode="CRD")
    return g.Squeeze(g.Add(detail, blocks.nearest(g, planes, r)), [0])


def double_rows(x: Array) -> Array:
    """x[1,C,H,W] to [1,C,2*H,W], linear between rows, first and last rows kept in place."""
    H = x.shape[2]
    position = np.arange(2 * H) * (H - 1) / (2 * H - 1)
    low = np.minimum(np.floor(position).astype(int), H - 2)
    weight = (position - low)[:, None]
    return (1 - weight) * x[:, :, low] + weight * x[:, :, low + 1]


@pattern("midas_fusion_block", draw={"w": weights("9*C")})
def midas_fusion_block(x: Array, s: Array, w: Array, b: Array, wo: Array, bo: Array) -> Array:
    def rcu(z: Array, i: int) -> Array:
        inner = relu(conv3x3(relu(z), w[i, 0], b[i, 0]))
        return z + conv3x3(inner, w[i, 1], b[i, 1])

    t = rcu(x[None] + rcu(s[None], 0), 1)
    t = double_rows(double_rows(t).swapaxes(2, 3)).swapaxes(2, 3)
    return pointwise(t, wo, bo)[0]


@midas_fusion_block.twin
def _(g: Graph, x: Value, s: Value, w: Array, b: Array, wo: Array, bo: Array) -> Value:
    def rcu(z: Value, i: int) -> Value:
        inner = g.Relu(blocks.conv3x3(g, g.Relu(z), w[i, 0], b[i, 0]))
        return g.Add(z, blocks.conv3x3(g, inner, w[i, 1], b[i, 1]))

    t = g.Add(g.Unsqueeze(x, [0]), rcu(g.Unsqueeze(s, [0]), 0))
    scales = np.array([1, 1, 2, 2], np.float32)
    options = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    t = g.Resize(rcu(t, 1), None, scales, **options)
    return g.Squeeze(blocks.conv1x1(g, t, wo, bo), [0])
