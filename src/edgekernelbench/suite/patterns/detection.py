"""Heads and post-processing of detectors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw, activations, on_grid, uniform
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.functions import sigmoid, softmax
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import max_pool, pad_hw
from edgekernelbench.suite.twin import Graph, Value


def spaced_scores(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Scores on a grid of 1/256: equal ones tie in any precision, others never do."""
    rng = draw.rng(spec.name)
    scale = 2 ** rng.uniform(0, 1, (spec.shape[0], 1, 1))
    scores = np.clip(rng.standard_normal(spec.shape) * scale - 1, -7, 7)
    return np.rint(scores * 256) / 256


@pattern("heatmap_peak_nms", draw={"x": spaced_scores})
def heatmap_peak_nms(x: Array) -> Array:
    s = sigmoid(x)
    return np.where(s == max_pool(pad_hw(s, 1, 1, 1, 1), 3, 3), s, 0)


@heatmap_peak_nms.twin
def _(g: Graph, x: Value) -> Value:
    s = g.Sigmoid(g.Unsqueeze(x, [0]))
    peaks = g.Equal(s, g.MaxPool(s, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    return g.Squeeze(g.Where(peaks, s, 0.0), [0])


def prior_boxes(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Centres in [0, 1], sizes in [0.05, 0.5]."""
    rng = draw.rng(spec.name)
    centres = rng.uniform(0, 1, (spec.shape[0], 2))
    return np.concatenate([centres, rng.uniform(0.05, 0.5, centres.shape)], axis=1)


@pattern("box_decode_anchor", draw={"t": activations(2.0), "anchors": prior_boxes})
def box_decode_anchor(t: Array, anchors: Array, v0: float, v1: float) -> Array:
    position, size = anchors[:, :2], anchors[:, 2:]
    centre = position + t[:, :2] * v0 * size
    half = size * np.exp(t[:, 2:] * v1) / 2
    return np.concatenate([centre - half, centre + half], axis=1)


@box_decode_anchor.twin
def _(g: Graph, t: Value, anchors: Array, v0: float, v1: float) -> Value:
    position, size = anchors[:, :2], anchors[:, 2:].astype(np.float64)
    shift, growth = g.op("Split", t, [2, 2], outputs=2, axis=1)
    centre = g.Add(g.Mul(shift, v0 * size), position)
    half = g.Mul(g.Exp(g.Mul(growth, v1)), size / 2)
    return g.Concat(g.Sub(centre, half), g.Add(centre, half), axis=1)


def overlapping_boxes(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Corners (x0, y0, x1, y1) near the image's edge, so close that half of the pairs overlap."""
    rng = draw.rng(spec.name)
    corner = rng.uniform(-0.2, 0.2, (spec.shape[0], 2))
    return np.concatenate([corner, corner + rng.uniform(0.05, 0.3, corner.shape)], axis=1)


def box_iou(a: Array, b: Array) -> Array:
    """Intersection over union of every box (x0, y0, x1, y1) of a with every one of b."""
    low = np.maximum(a[:, None, :2], b[:, :2])
    high = np.minimum(a[:, None, 2:], b[:, 2:])
    inter = np.maximum(high - low, 0).prod(axis=2)
    area_a = (a[:, 2:] - a[:, :2]).prod(axis=1)
    area_b = (b[:, 2:] - b[:, :2]).prod(axis=1)
    return inter / (area_a[:, None] + area_b - inter)


@pattern("iou_matrix", draw={"a": overlapping_boxes, "b": overlapping_boxes})
def iou_matrix(a: Array, b: Array) -> Array:
    return box_iou(a, b)


@iou_matrix.twin
def _(g: Graph, a: Value, b: Value) -> Value:
    low_a, high_a = g.op("Split", g.Unsqueeze(a, [1]), outputs=2, axis=2, num_outputs=2)
    low_b, high_b = g.op("Split", g.Unsqueeze(b, [0]), outputs=2, axis=2, num_outputs=2)

    def area(low: Value, high: Value) -> Value:
        return g.ReduceProd(g.Relu(g.Sub(high, low)), [2], keepdims=0)

    inter = area(g.Max(low_a, low_b), g.Min(high_a, high_b))
    both = g.Add(area(low_a, high_a), area(low_b, high_b))
    return g.Div(inter, g.Sub(both, inter))


def wide_scores(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Logits of a detector's head; some rows so large that a naive exponential overflows."""
    rng = draw.rng(spec.name)
    A, _, H, _ = spec.shape
    large = 20.0 if spec.dtype is DType.F16 else 100.0
    offset = rng.choice([0.0, -large, large], (A, 1, H, 1), p=[0.8, 0.1, 0.1])
    return activations()(draw, spec) * 2 ** rng.uniform(-1, 1, (A, 1, H, 1)) + offset


@pattern("yolo_anchor_head_decode", draw={"t": wide_scores, "anchor": uniform(10, 300)})
def yolo_anchor_head_decode(t: Array, anchor: Array, stride: int) -> Array:
    A, channels, H, W = t.shape
    s = sigmoid(t.transpose(0, 2, 3, 1))  # channels last
    i, j = np.mgrid[:H, :W]
    xy = (2 * s[..., :2] - 0.5 + np.stack([j, i], axis=-1)) * stride
    wh = (2 * s[..., 2:4]) ** 2 * anchor[:, None, None]
    return np.concatenate([xy, wh, s[..., 4:]], axis=-1).reshape(A * H * W, channels)


@yolo_anchor_head_decode.twin
def _(
    g: Graph, t: Value, anchor: Array, stride: int, A: int, NC: int, H: int, W: int
) -> Value:  # fmt: skip
    s = g.Transpose(g.Sigmoid(t), perm=[0, 2, 3, 1])
    place, size, scores = g.op("Split", s, [2, 2, 1 + NC], outputs=3, axis=3)
    i, j = np.mgrid[:H, :W]
    xy = g.Mul(g.Add(g.Mul(place, 2.0), np.stack([j, i], axis=-1) - 0.5), float(stride))
    doubled = g.Mul(size, 2.0)
    wh = g.Mul(g.Mul(doubled, doubled), anchor[:, None, None])
    return g.Reshape(g.Concat(xy, wh, scores, axis=3), [A * H * W, 5 + NC])


def bin_logits(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Moderate differences over the bins; some anchors so far off that exp overflows."""
    rng = draw.rng(spec.name)
    _, _, L = spec.shape
    large = 20.0 if spec.dtype is DType.F16 else 100.0
    offset = rng.choice([0.0, -large, large], (4, 1, L), p=[0.8, 0.1, 0.1])
    scale = 2 ** rng.uniform(-1, 1, (4, 1, L))
    return rng.standard_normal(spec.shape) * scale + offset


def anchor_strides(draw: Draw, spec: TensorSpec) -> np.ndarray:
    return draw.rng(spec.name).choice([8.0, 16.0, 32.0], spec.shape)


@pattern(
    "dfl_box_decode",
    draw={"t": bin_logits, "ctr": uniform(0, 320), "st": anchor_strides},
)
def dfl_box_decode(t: Array, ctr: Array, st: Array) -> Array:
    p = softmax(t.transpose(0, 2, 1))  # bins last
    d = p @ np.arange(p.shape[-1]) * st  # distances to left, top, right, bottom
    x, y = ctr.T
    return np.stack([x - d[0], y - d[1], x + d[2], y + d[3]], axis=1)


@dfl_box_decode.twin
def _(g: Graph, t: Value, ctr: Array, st: Array, NBn: int) -> Value:
    bins = np.arange(NBn, dtype=np.float64)[:, None]
    d = g.Mul(g.ReduceSum(g.Mul(g.Softmax(t, axis=1), bins), [1], keepdims=0), st)
    before, after = g.op("Split", d, outputs=2, axis=0, num_outputs=2)
    corners = g.Concat(g.Sub(ctr.T, before), g.Add(after, ctr.T), axis=0)
    return g.Transpose(corners, perm=[1, 0])


def clustered_boxes(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Jittered copies of a few objects, in any order, at whole pixels.

    Areas and intersections are then exact in float32, and the nearest that an overlap comes to
    the threshold without being equal to it is far more than a rounding error. Equal to it are
    some pairs that lie apart from all others: none of them suppresses the other.
    """
    rng = draw.rng(spec.name)
    L = spec.shape[0]
    objects = max(2, L // 4)
    corner = rng.integers(-20, 260, (objects, 2))
    size = rng.integers(16, 128, (objects, 2))
    chosen = rng.integers(0, objects, L)
    jitter = rng.normal(0, 0.15, (2, L, 2)) * size[chosen]
    low = corner[chosen] + np.rint(jitter[0])
    high = np.maximum(corner[chosen] + size[chosen] + np.rint(jitter[1]), low + 4)
    boxes = np.concatenate([low, high], axis=1)
    pairs = max(1, L // 32)
    boxes[rng.permutation(L)[: 2 * pairs]] = pairs_at_threshold(rng, pairs, draw.sizes["thr"])
    return boxes


def pairs_at_threshold(rng: np.random.Generator, pairs: int, thr: float) -> np.ndarray:
    """Boxes [2 * pairs, 4] of which each two, one moved along x, overlap by exactly ``thr``.

    Moved by d, boxes of width w overlap by (w - d) / (w + d).
    """
    share = Fraction(thr).limit_denominator(100)
    unit = rng.integers(2, 6, pairs)
    width = (share.denominator + share.numerator) * unit
    shift = (share.denominator - share.numerator) * unit
    x, y = 1000 * (1 + np.arange(pairs)), rng.integers(-20, 260, pairs)
    bottom = y + rng.integers(16, 128, pairs)
    first = np.stack([x, y, x + width, bottom], axis=1)
    return np.concatenate([first, first + np.outer(shift, [1, 0, 1, 0])])


@pattern("nms_static", draw={"box": clustered_boxes})
def nms_static(box: Array, thr: float) -> Array:
    L = len(box)
    overlaps = box_iou(box, box) > thr
    keep = np.ones(L, bool)
    for i in range(L):
        if keep[i]:
            keep[i + 1 :] &= ~overlaps[i, i + 1 :]
    return keep.astype(np.int64)


@nms_static.twin
def _(g: Graph, box: Value, thr: float, L: int) -> Value:
    scores = np.linspace(1, 0, L)[None, None]  # the boxes come sorted
    picked = g.NonMaxSuppression(g.Unsqueeze(box, [0]), scores, [L], np.float32(thr))
    rows = g.Squeeze(g.Slice(picked, [2], [3], [1]), [1])  # of batch, class, box
    ones = g.Expand(np.uint8(1), g.Shape(rows))
    return g.ScatterElements(np.zeros(L, np.uint8), rows, ones, axis=0)


def noisy_bumps(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """One smooth peak for each map over noise; maps at differing levels, most of them far off.

    The levels times beta overflow a naive exponential.
    """
    rng = draw.rng(spec.name)
    C, H, W = spec.shape
    i, j = np.mgrid[:H, :W]
    row, column = rng.uniform(0, H - 1, (C, 1, 1)), rng.uniform(0, W - 1, (C, 1, 1))
    width = rng.uniform(0.04, 0.1, (C, 1, 1)) * max(H, W)
    bump = np.exp(-((i - row) ** 2 + (j - column) ** 2) / (2 * width**2))
    noise = 0.1 * 2 ** rng.uniform(-1, 1, (C, 1, 1)) * rng.standard_normal(spec.shape)
    return 0.6 * bump + noise + rng.uniform(-12, 12, (C, 1, 1))


@pattern("soft_argmax_2d", draw={"x": noisy_bumps})
def soft_argmax_2d(x: Array, beta: float) -> Array:
    C, H, W = x.shape
    p = softmax(beta * x.reshape(C, H * W)).reshape(C, H, W)
    u = (p * np.arange(W)).sum(axis=(1, 2))
    v = (p * np.arange(H)[:, None]).sum(axis=(1, 2))
    return np.stack([u, v], axis=1)


@soft_argmax_2d.twin
def _(g: Graph, x: Value, beta: float, H: int, W: int) -> Value:
    p = g.Softmax(g.Mul(g.Flatten(x, axis=1), beta), axis=1)
    i, j = np.mgrid[:H, :W].reshape(2, H * W).astype(np.float64)
    return g.MatMul(p, np.stack([j, i], axis=1))


def half_pixel_position(size: int, out_size: int) -> tuple[Array, Array, Array]:
    """For each output position its two source indices and the second one's weight."""
    position = np.maximum((np.arange(out_size) + 0.5) * size / out_size - 0.5, 0)
    low = position.astype(np.int64)
    return low, np.minimum(low + 1, size - 1), position - low


# Scales of sizes are powers of two and logits lie on a grid, so that interpolation is exact in
# float32 in whatever order, and equal logits tie.
@pattern("bilinear_upsample_argmax", draw={"x": on_grid(activations(), 1 / 16)})
def bilinear_upsample_argmax(x: Array, H: int, W: int, OH: int, OW: int) -> Array:
    y0, y1, fy = half_pixel_position(H, OH)
    x0, x1, fx = half_pixel_position(W, OW)
    rows = x[:, y0] * (1 - fy)[:, None] + x[:, y1] * fy[:, None]
    z = rows[:, :, x0] * (1 - fx) + rows[:, :, x1] * fx
    return z.argmax(axis=0)  # the lowest index on ties


@bilinear_upsample_argmax.twin
def _(g: Graph, x: Value, C: int, OH: int, OW: int) -> Value:
    z = g.Resize(
        g.Unsqueeze(g.cast(x, DType.F32), [0]),
        None,
        None,
        [1, C, OH, OW],
        mode="linear",
        coordinate_transformation_mode="half_pixel",
    )
    index = g.ArgMax(g.Squeeze(z, [0]), axis=0, keepdims=0, select_last_index=0)
    return g.cast(index, DType.S32)
