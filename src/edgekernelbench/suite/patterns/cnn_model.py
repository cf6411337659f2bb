"""Small convolutional networks and stages of larger ones, with all their weights."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import relu, silu, softmax
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import conv2d, depthwise, pad_hw, pointwise
from edgekernelbench.suite.twin import Graph, Value


def tf_same(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Border before and after of TensorFlow's SAME padding."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


@pattern(
    "ds_cnn_kws",
    draw={
        "w0": weights("40", 1.5),
        "wd": weights("9", 1.5),
        "wp": weights("C", 1.5),
        "Wf": weights("C", 0.5),
    },
)
def ds_cnn_kws(
    x: Array, w0: Array, b0: Array, wd: Array, bd: Array, wp: Array, bp: Array, Wf: Array,
    bf: Array, H: int, W: int
) -> Array:  # fmt: skip
    planes = x.transpose(2, 0, 1)[None]  # HWC to 1CHW
    t = pad_hw(planes, *tf_same(H, 10, 2), *tf_same(W, 4, 2))
    t = relu(conv2d(t, w0.transpose(3, 2, 0, 1), 2) + b0[:, None, None])
    for i in range(len(wd)):
        t = depthwise(pad_hw(t, 1, 1, 1, 1), wd[i].transpose(2, 0, 1))
        t = relu(t + bd[i][:, None, None])
        t = relu(pointwise(t, wp[i].T, bp[i]))
    g = t.mean(axis=(2, 3))[0]
    return softmax(g @ Wf + bf)


@ds_cnn_kws.twin
def _(
    g: Graph, x: Value, w0: Array, b0: Array, wd: Array, bd: Array, wp: Array, bp: Array,
    Wf: Array, bf: Array, H: int, W: int, NC: int
) -> Value:  # fmt: skip
    rows, columns = tf_same(H, 10, 2), tf_same(W, 4, 2)
    pads = [rows[0], columns[0], rows[1], columns[1]]
    planes = g.Reshape(x, [1, 1, H, W])
    t = g.Relu(g.Conv(planes, w0.transpose(3, 2, 0, 1), b0, strides=[2, 2], pads=pads))
    for i in range(len(wd)):
        filters = wd[i].transpose(2, 0, 1)
        t = g.Relu(blocks.depthwise(g, t, filters, bd[i], 1, (1, 1, 1, 1)))
        t = g.Relu(blocks.conv1x1(g, t, wp[i].T, bp[i]))
    pooled = g.Flatten(g.GlobalAveragePool(t))
    return g.Reshape(g.Softmax(g.Gemm(pooled, Wf, bf), axis=-1), [NC])


@pattern("yolov8_c2f", draw={"wa": weights("9*Q"), "wb": weights("9*Q")})
def yolov8_c2f(
    x: Array, w1: Array, b1: Array, wa: Array, ba: Array, wb: Array, bb: Array, w2: Array,
    b2: Array
) -> Array:  # fmt: skip
    def conv3x3(t: Array, w: Array, b: Array) -> Array:
        return silu(conv2d(pad_hw(t, 1, 1, 1, 1), w) + b[:, None, None])

    parts = np.split(silu(pointwise(x[None], w1, b1)), 2, axis=1)
    for i in range(len(wa)):
        inner = conv3x3(parts[-1], wa[i], ba[i])
        parts.append(parts[-1] + conv3x3(inner, wb[i], bb[i]))
    return silu(pointwise(np.concatenate(parts, axis=1), w2, b2))[0]


@yolov8_c2f.twin
def _(
    g: Graph, x: Value, w1: Array, b1: Array, wa: Array, ba: Array, wb: Array, bb: Array,
    w2: Array, b2: Array
) -> Value:  # fmt: skip
    z = blocks.silu(g, blocks.conv1x1(g, g.Unsqueeze(x, [0]), w1, b1))
    parts = list(g.op("Split", z, outputs=2, axis=1, num_outputs=2))
    for i in range(len(wa)):
        inner = blocks.silu(g, blocks.conv3x3(g, parts[-1], wa[i], ba[i]))
        outer = blocks.silu(g, blocks.conv3x3(g, inner, wb[i], bb[i]))
        parts.append(g.Add(parts[-1], outer))
    y = blocks.silu(g, blocks.conv1x1(g, g.Concat(*parts, axis=1), w2, b2))
    return g.Squeeze(y, [0])
