"""Classifiers: images and sounds to the probabilities of classes."""

from __future__ import annotations

import math

import numpy as np

from edgekernelbench.suite.draw import Draw, Generator, activations, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.cnn_model.heads import balanced_head
from edgekernelbench.suite.patterns.functions import relu, softmax
from edgekernelbench.suite.patterns.ranges import with_means
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
        "Wf": weights("C", 0.1),
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


ds_cnn_kws.inputs(balanced_head)


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


def outputs_last(gain: float, centred: bool = False) -> Generator:
    """Weights whose last axis is the output channel: scale by all the others.

    Centred ones sum to zero over the inputs of each output. In a deep network they see how
    channels differ, which tells images apart, not the mean, which does not.
    """

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        rng = draw.rng(spec.name)
        scale = gain / math.sqrt(math.prod(spec.shape[:-1]))
        channels = 2.0 ** rng.uniform(-0.75, 0.75, spec.shape[-1])
        values = scale * channels * rng.standard_normal(spec.shape)
        if centred:
            values -= values.mean(axis=tuple(range(values.ndim - 1)))
        return values

    return generate


def pixels(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Images [H,W,C], most of it positive as pixels are.

    They differ in their mean colour, and so in what is left of them after pooling.
    """
    return 3 + with_means(activations(), axes=(0, 1))(draw, spec)


def conv_same(x: Array, w: Array, b: Array, stride: int = 1) -> Array:
    """x[1,C,H,W] by w[R,S,C,K] with the border of SAME."""
    _, _, H, W = x.shape
    R, S, _, _ = w.shape
    bordered = pad_hw(x, *tf_same(H, R, stride), *tf_same(W, S, stride))
    return conv2d(bordered, w.transpose(3, 2, 0, 1), stride) + b[:, None, None]


def depthwise_same(x: Array, w: Array, b: Array, stride: int = 1) -> Array:
    """x[1,C,H,W] by w[R,S,C] with the border of SAME."""
    _, _, H, W = x.shape
    R, S, _ = w.shape
    bordered = pad_hw(x, *tf_same(H, R, stride), *tf_same(W, S, stride))
    return depthwise(bordered, w.transpose(2, 0, 1), stride) + b[:, None, None]


def conv_same_twin(g: Graph, x: Value, w: Array, b: Array, stride: int = 1) -> Value:
    strides = [stride, stride]
    return g.Conv(x, w.transpose(3, 2, 0, 1), b, strides=strides, auto_pad="SAME_UPPER")


def head_twin(g: Graph, t: Value, Wf: Array, bf: Array, NC: int) -> Value:
    """Mean over all positions, one dense layer, softmax."""
    pooled = g.Flatten(g.GlobalAveragePool(t))
    return g.Reshape(g.Softmax(g.Gemm(pooled, Wf, bf), axis=-1), [NC])


@pattern(
    "mobilenet_v1_classifier",
    draw={
        "x": pixels,
        "w0": outputs_last(1.4),
        "b0": weights(gain=0.2),
        "Wf": outputs_last(0.1),
        **{f"wd{i}": outputs_last(1.5) for i in range(1, 14)},
        **{f"bd{i}": weights(gain=0.2) for i in range(1, 14)},
        **{f"wp{i}": outputs_last(1.8, centred=True) for i in range(1, 14)},
        **{f"bp{i}": weights(gain=0.2) for i in range(1, 14)},
    },
)
def mobilenet_v1_classifier(
    x: Array, w0: Array, b0: Array, Wf: Array, bf: Array, **layers: Array
) -> Array:
    def relu6(t: Array) -> Array:
        return np.clip(t, 0, 6)

    t = relu6(conv_same(x.transpose(2, 0, 1)[None], w0, b0, 2))  # HWC to 1CHW
    for i, stride in enumerate([1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1], start=1):
        t = relu6(depthwise_same(t, layers[f"wd{i}"], layers[f"bd{i}"], stride))
        t = relu6(pointwise(t, layers[f"wp{i}"].T, layers[f"bp{i}"]))
    g = t.mean(axis=(2, 3))[0]
    return softmax(g @ Wf + bf)


mobilenet_v1_classifier.inputs(balanced_head)


@mobilenet_v1_classifier.twin
def _(
    g: Graph, x: Value, w0: Array, b0: Array, Wf: Array, bf: Array, NC: int, **layers: Array
) -> Value:
    def relu6(t: Value) -> Value:
        return g.Clip(t, 0.0, 6.0)

    t = relu6(conv_same_twin(g, blocks.nhwc_to_nchw(g, x), w0, b0, 2))
    for i, stride in enumerate([1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1], start=1):
        filters = layers[f"wd{i}"].transpose(2, 0, 1)[:, None]
        t = g.Conv(
            t,
            filters,
            layers[f"bd{i}"],
            group=len(filters),
            strides=[stride, stride],
            auto_pad="SAME_UPPER",
        )
        t = relu6(blocks.conv1x1(g, relu6(t), layers[f"wp{i}"].T, layers[f"bp{i}"]))
    return head_twin(g, t, Wf, bf, NC)


@pattern(
    "resnet8_cifar",
    draw={
        "x": pixels,
        "Wf": outputs_last(0.1),
        **{name: outputs_last(1.3) for name in ("w0", "wa1", "wa2", "wa3")},
        **{name: outputs_last(1.0) for name in ("wb1", "wb2", "wb3", "wr2", "wr3")},
    },
)
def resnet8_cifar(
    x: Array, w0: Array, b0: Array, wa1: Array, ba1: Array, wb1: Array, bb1: Array, wa2: Array,
    ba2: Array, wb2: Array, bb2: Array, wr2: Array, br2: Array, wa3: Array, ba3: Array,
    wb3: Array, bb3: Array, wr3: Array, br3: Array, Wf: Array, bf: Array
) -> Array:  # fmt: skip
    t = relu(conv_same(x.transpose(2, 0, 1)[None], w0, b0))  # HWC to 1CHW
    a = relu(conv_same(t, wa1, ba1))
    t = relu(conv_same(a, wb1, bb1) + t)
    for wa, ba, wb, bb, wr, br in (
        (wa2, ba2, wb2, bb2, wr2, br2),
        (wa3, ba3, wb3, bb3, wr3, br3),
    ):
        a = relu(conv_same(t, wa, ba, 2))
        shortcut = pointwise(t[:, :, ::2, ::2], wr.T, br)
        t = relu(conv_same(a, wb, bb) + shortcut)
    g = t.mean(axis=(2, 3))[0]
    return softmax(g @ Wf + bf)


resnet8_cifar.inputs(balanced_head)


@resnet8_cifar.twin
def _(
    g: Graph, x: Value, w0: Array, b0: Array, wa1: Array, ba1: Array, wb1: Array, bb1: Array,
    wa2: Array, ba2: Array, wb2: Array, bb2: Array, wr2: Array, br2: Array, wa3: Array,
    ba3: Array, wb3: Array, bb3: Array, wr3: Array, br3: Array, Wf: Array, bf: Array, NC: int
) -> Value:  # fmt: skip
    t = g.Relu(conv_same_twin(g, blocks.nhwc_to_nchw(g, x), w0, b0))
    a = g.Relu(conv_same_twin(g, t, wa1, ba1))
    t = g.Relu(g.Add(conv_same_twin(g, a, wb1, bb1), t))
    for wa, ba, wb, bb, wr, br in (
        (wa2, ba2, wb2, bb2, wr2, br2),
        (wa3, ba3, wb3, bb3, wr3, br3),
    ):
        a = g.Relu(conv_same_twin(g, t, wa, ba, 2))
        shortcut = conv_same_twin(g, t, wr[None, None], br, 2)
        t = g.Relu(g.Add(conv_same_twin(g, a, wb, bb), shortcut))
    return head_twin(g, t, Wf, bf, NC)


def log_energies(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Frames of a filterbank: mostly negative, so that the network cancels large sums."""
    return activations(spread=1)(draw, spec) - 4


@pattern(
    "streaming_wakeword_ds1d",
    draw={
        "x": log_energies,
        **{f"wd{i}": outputs_last(1.2) for i in (1, 2, 3, 4)},
        **{f"wp{i}": outputs_last(1.3) for i in (1, 2, 3, 4)},
        "Wf": outputs_last(0.1),
    },
)
def streaming_wakeword_ds1d(
    x: Array, wd1: Array, wp1: Array, b1: Array, wd2: Array, wp2: Array, b2: Array, wd3: Array,
    wp3: Array, b3: Array, wd4: Array, wp4: Array, b4: Array, Wf: Array, bf: Array
) -> Array:  # fmt: skip
    t = x
    for wd, wp, b in ((wd1, wp1, b1), (wd2, wp2, b2), (wd3, wp3, b3), (wd4, wp4, b4)):
        steps = len(t) - len(wd) + 1
        t = sum((t[k : k + steps] * wd[k] for k in range(len(wd))), np.zeros(1))
        t = relu(t @ wp + b)
    return softmax(t[0] @ Wf + bf)


streaming_wakeword_ds1d.inputs(balanced_head)


@streaming_wakeword_ds1d.twin
def _(
    g: Graph, x: Value, wd1: Array, wp1: Array, b1: Array, wd2: Array, wp2: Array, b2: Array,
    wd3: Array, wp3: Array, b3: Array, wd4: Array, wp4: Array, b4: Array, Wf: Array, bf: Array,
    NC: int
) -> Value:  # fmt: skip
    t = g.Unsqueeze(g.Transpose(x, perm=[1, 0]), [0])
    for wd, wp, b in ((wd1, wp1, b1), (wd2, wp2, b2), (wd3, wp3, b3), (wd4, wp4, b4)):
        t = g.Conv(t, wd.T[:, None], group=wd.shape[1])
        t = g.Relu(g.Conv(t, wp.T[:, :, None], b))
    return g.Reshape(g.Softmax(g.Gemm(g.Flatten(t), Wf, bf), axis=-1), [NC])
