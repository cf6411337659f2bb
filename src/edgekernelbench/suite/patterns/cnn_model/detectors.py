"""Stages and heads of detectors, and a whole one."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import relu, sigmoid, silu
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import (
    conv2d,
    conv3x3,
    depthwise,
    max_pool,
    pad_hw,
    pointwise,
)
from edgekernelbench.suite.twin import Graph, Value


@pattern("yolov8_c2f", draw={"wa": weights("9*Q"), "wb": weights("9*Q")})
def yolov8_c2f(
    x: Array, w1: Array, b1: Array, wa: Array, ba: Array, wb: Array, bb: Array, w2: Array,
    b2: Array
) -> Array:  # fmt: skip
    parts = np.split(silu(pointwise(x[None], w1, b1)), 2, axis=1)
    for i in range(len(wa)):
        inner = silu(conv3x3(parts[-1], wa[i], ba[i]))
        parts.append(parts[-1] + silu(conv3x3(inner, wb[i], bb[i])))
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


@pattern(
    "yolov8_detect_head",
    draw={name: weights(gain=1.6) for name in ("wb1", "wb2", "wb3", "wc1", "wc2", "wc3")},
)
def yolov8_detect_head(
    x: Array, wb1: Array, bb1: Array, wb2: Array, bb2: Array, wb3: Array, bb3: Array, wc1: Array,
    bc1: Array, wc2: Array, bc2: Array, wc3: Array, bc3: Array
) -> Array:  # fmt: skip
    def cbs(t: Array, w: Array, b: Array) -> Array:
        return silu(conv3x3(t, w, b))

    box = pointwise(cbs(cbs(x[None], wb1, bb1), wb2, bb2), wb3, bb3)
    cls = sigmoid(pointwise(cbs(cbs(x[None], wc1, bc1), wc2, bc2), wc3, bc3))
    return np.concatenate([box, cls], axis=1)[0]


@yolov8_detect_head.twin
def _(
    g: Graph, x: Value, wb1: Array, bb1: Array, wb2: Array, bb2: Array, wb3: Array, bb3: Array,
    wc1: Array, bc1: Array, wc2: Array, bc2: Array, wc3: Array, bc3: Array
) -> Value:  # fmt: skip
    def cbs(t: Value, w: Array, b: Array) -> Value:
        return blocks.silu(g, blocks.conv3x3(g, t, w, b))

    planes = g.Unsqueeze(x, [0])
    box = blocks.conv1x1(g, cbs(cbs(planes, wb1, bb1), wb2, bb2), wb3, bb3)
    cls = blocks.conv1x1(g, cbs(cbs(planes, wc1, bc1), wc2, bc2), wc3, bc3)
    return g.Squeeze(g.Concat(box, g.Sigmoid(cls), axis=1), [0])


@pattern(
    "blazeface_front",
    draw={
        "w0": weights(gain=1.4),
        **{f"wd{i}": weights(gain=1.0) for i in range(1, 17)},
        **{f"bd{i}": weights(gain=1.5) for i in range(1, 17)},
        **{f"wp{i}": weights(gain=0.6) for i in range(1, 17)},
        **{f"bp{i}": weights(gain=0.5) for i in range(1, 17)},
        **{name: weights(gain=0.2) for name in ("c8", "c16", "r8", "r16")},
        **{name: weights(gain=3.0) for name in ("cb8", "cb16", "rb8", "rb16")},
    },
)
def blazeface_front(
    x: Array, w0: Array, b0: Array, c8: Array, cb8: Array, c16: Array, cb16: Array, r8: Array,
    rb8: Array, r16: Array, rb16: Array, **layers: Array
) -> tuple[Array, Array]:  # fmt: skip
    t = relu(conv2d(pad_hw(x[None], 1, 2, 1, 2), w0, stride=2) + b0[:, None, None])
    features = {}
    for i in range(1, 17):
        stride = 2 if i in (3, 6, 12) else 1
        border = (0, 2, 0, 2) if stride == 2 else (1, 1, 1, 1)
        h = depthwise(pad_hw(t, *border), layers[f"wd{i}"], stride)
        h = pointwise(h + layers[f"bd{i}"][:, None, None], layers[f"wp{i}"], layers[f"bp{i}"])
        r = max_pool(t, 2, 2, stride=2) if stride == 2 else t
        h[:, : r.shape[1]] += r  # channels beyond those of the input get nothing
        t = relu(h)
        features[i] = t

    def head(t: Array, w: Array, b: Array, numbers: int) -> Array:
        """A row of so many numbers for each anchor, pixel by pixel."""
        return pointwise(t, w, b)[0].transpose(1, 2, 0).reshape(-1, numbers)

    f8, f16 = features[11], features[16]
    scores = np.concatenate([head(f8, c8, cb8, 1), head(f16, c16, cb16, 1)])
    boxes = np.concatenate([head(f8, r8, rb8, 16), head(f16, r16, rb16, 16)])
    return scores, boxes


@blazeface_front.twin
def _(
    g: Graph, x: Value, w0: Array, b0: Array, c8: Array, cb8: Array, c16: Array, cb16: Array,
    r8: Array, rb8: Array, r16: Array, rb16: Array, **layers: Array
) -> tuple[Value, Value]:  # fmt: skip
    planes = g.Unsqueeze(x, [0])
    t = g.Relu(g.Conv(planes, w0, b0, strides=[2, 2], pads=[1, 1, 2, 2]))
    features = {}
    for i in range(1, 17):
        wd, bd, wp, bp = (layers[f"{name}{i}"] for name in ("wd", "bd", "wp", "bp"))
        if i in (3, 6, 12):
            h = blocks.depthwise(g, t, wd, bd, 2, (0, 0, 2, 2))
            t = g.MaxPool(t, kernel_shape=[2, 2], strides=[2, 2])
        else:
            h = blocks.depthwise(g, t, wd, bd, 1, (1, 1, 1, 1))
        widened = wp.shape[0] - wp.shape[1]
        if widened:
            t = g.Pad(t, [0, 0, 0, 0, 0, widened, 0, 0])
        t = g.Relu(g.Add(blocks.conv1x1(g, h, wp, bp), t))
        features[i] = t

    def head(t: Value, w: Array, b: Array, numbers: int) -> Value:
        rows = g.Transpose(blocks.conv1x1(g, t, w, b), perm=[0, 2, 3, 1])
        return g.Reshape(rows, [-1, numbers])

    f8, f16 = features[11], features[16]
    scores = g.Concat(head(f8, c8, cb8, 1), head(f16, c16, cb16, 1), axis=0)
    boxes = g.Concat(head(f8, r8, rb8, 16), head(f16, r16, rb16, 16), axis=0)
    return scores, boxes
