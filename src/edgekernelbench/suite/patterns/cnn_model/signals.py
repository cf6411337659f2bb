"""Stacks of convolutions over time: sensors and sound."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import near, weights
from edgekernelbench.suite.patterns.cnn_model.heads import balanced_head
from edgekernelbench.suite.patterns.functions import gelu, relu, softmax
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def strided_conv1d(x: Array, w: Array, stride: int) -> Array:
    """y[k,t] = sum_{c,r} x[c, t*stride + r] * w[k,c,r], without a border."""
    R = w.shape[2]
    last = x.shape[1] - R + 1
    return sum((w[:, :, r] @ x[:, r : r + last : stride] for r in range(R)), np.zeros(1))


@pattern(
    "wav2vec2_feature_extractor",
    draw={
        "gn": near(1.0, 0.5),
        "wk3": weights("3*C", 1.5),
        "wk2": weights("2*C", 1.5),
    },
)
def wav2vec2_feature_extractor(x: Array, w0: Array, gn: Array, wk3: Array, wk2: Array) -> Array:
    t = strided_conv1d(x, w0, 5)
    centred = t - t.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    t = gelu(centred / np.sqrt(variance + 1e-5) * gn[0][:, None] + gn[1][:, None])
    for w in (*wk3, *wk2):
        t = gelu(strided_conv1d(t, w, 2))
    return t


@wav2vec2_feature_extractor.twin
def _(g: Graph, x: Value, w0: Array, gn: Array, wk3: Array, wk2: Array) -> Value:
    t = g.Conv(g.Unsqueeze(x, [0]), w0, strides=[5])
    t = g.Gelu(g.InstanceNormalization(t, gn[0], gn[1], epsilon=1e-5))
    for w in (*wk3, *wk2):
        t = g.Gelu(g.Conv(t, w, strides=[2]))
    return g.Squeeze(t, [0])


def causal_conv1d(x: Array, w: Array, b: Array, dilation: int) -> Array:
    """x[C,L] by w[K,C,R]; the last tap is on the present step."""
    L, R = x.shape[1], w.shape[2]
    past = np.pad(x, [(0, 0), ((R - 1) * dilation, 0)])  # zeros before the first step
    y = b[:, None] + np.zeros((1, L))
    for r in range(R):
        y = y + w[:, :, r] @ past[:, r * dilation : r * dilation + L]
    return y


@pattern(
    "tcn_stack",
    draw={
        "wa0": weights(gain=1.4),
        "wr": weights(),
        "wa": weights("C*Kt", 1.4),
        "wb": weights("C*Kt", 0.6),
        "ba": weights(gain=0.4),
        "bb": weights(gain=0.4),
    },
)
def tcn_stack(
    x: Array, wa0: Array, ba0: Array, wr: Array, br: Array, wb0: Array, bb0: Array, wa: Array,
    ba: Array, wb: Array, bb: Array
) -> Array:  # fmt: skip
    z = relu(causal_conv1d(x, wa0, ba0, 1))
    z = relu(causal_conv1d(z, wb0, bb0, 1))
    t = relu(z + wr @ x + br[:, None])
    for i in range(len(wa)):
        dilation = 2 ** (i + 1)
        z = relu(causal_conv1d(t, wa[i], ba[i], dilation))
        z = relu(causal_conv1d(z, wb[i], bb[i], dilation))
        t = relu(z + t)
    return t


@tcn_stack.twin
def _(
    g: Graph, x: Value, wa0: Array, ba0: Array, wr: Array, br: Array, wb0: Array, bb0: Array,
    wa: Array, ba: Array, wb: Array, bb: Array, Kt: int
) -> Value:  # fmt: skip
    def causal(t: Value, w: Array, b: Array, dilation: int) -> Value:
        pads = [(Kt - 1) * dilation, 0]
        return g.Relu(g.Conv(t, w, b, dilations=[dilation], pads=pads))

    first = g.Unsqueeze(x, [0])
    z = causal(causal(first, wa0, ba0, 1), wb0, bb0, 1)
    t = g.Relu(g.Add(z, g.Conv(first, wr[:, :, None], br)))
    for i in range(len(wa)):
        dilation = 2 ** (i + 1)
        z = causal(causal(t, wa[i], ba[i], dilation), wb[i], bb[i], dilation)
        t = g.Relu(g.Add(z, t))
    return g.Squeeze(t, [0])


def elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def depthwise_same(x: Array, w: Array) -> Array:
    """Each row of x[..., C, L] by its own w[C, R], zeros around it; even R reaches further on."""
    L, R = x.shape[-1], w.shape[1]
    before = (R - 1) // 2
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, R - 1 - before)])
    return sum((w[:, r, None] * padded[..., r : r + L] for r in range(R)), np.zeros(1))


@pattern(
    "eegnet",
    draw={
        "n1": near(1.0, 0.5),
        "n2": near(1.0, 0.5),
        "n3": near(1.0, 0.5),
        "w2": weights("Ch"),
        "w3": weights("16", 2.0),
        "w4": weights(gain=1.5),
        "Wf": weights("F2*(L//32)", 0.1),
    },
)
def eegnet(
    x: Array, w1: Array, n1: Array, w2: Array, n2: Array, w3: Array, w4: Array, n3: Array,
    Wf: Array, bf: Array
) -> Array:  # fmt: skip
    def bn(t: Array, n: Array) -> Array:
        scale, shift = n.reshape(2, -1, *[1] * (t.ndim - 1))
        return t * scale + shift

    def mean_pool(t: Array, size: int) -> Array:
        steps = t.shape[1] // size
        return t[:, : steps * size].reshape(len(t), steps, size).mean(axis=2)

    # Over time: F1 filters for each of the Ch electrodes; then D mixtures of electrodes for each.
    a = bn(np.stack([depthwise_same(x, np.tile(w, (len(x), 1))) for w in w1]), n1)
    b = np.einsum("fcl,fdc->fdl", a, w2).reshape(-1, x.shape[1])
    b = mean_pool(elu(bn(b, n2)), 4)
    c = mean_pool(elu(bn(w4 @ depthwise_same(b, w3), n3)), 8)
    return softmax(c.reshape(-1) @ Wf + bf)


eegnet.inputs(balanced_head)


@eegnet.twin
def _(
    g: Graph, x: Value, w1: Array, n1: Array, w2: Array, n2: Array, w3: Array, w4: Array,
    n3: Array, Wf: Array, bf: Array, F1: int, D: int, Ch: int, Kn: int, NC: int
) -> Value:  # fmt: skip
    def bn(t: Value, n: Array) -> Value:
        channels = n.shape[1]
        mean, var = np.zeros(channels), np.ones(channels)
        return g.BatchNormalization(t, n[0], n[1], mean, var, epsilon=0.0)

    def same(size: int) -> list[int]:
        before = (size - 1) // 2
        return [0, before, 0, size - 1 - before]

    def pool(t: Value, size: int) -> Value:
        return g.AveragePool(t, kernel_shape=[1, size], strides=[1, size])

    a = bn(g.Conv(g.Unsqueeze(x, [0, 1]), w1[:, None, None], pads=same(Kn)), n1)
    b = bn(g.Conv(a, w2.reshape(F1 * D, 1, Ch, 1), group=F1), n2)
    b = pool(g.Elu(b), 4)
    c = g.Conv(b, w3[:, None, None], group=F1 * D, pads=same(16))
    c = pool(g.Elu(bn(g.Conv(c, w4[:, :, None, None]), n3)), 8)
    return g.Reshape(g.Softmax(g.Gemm(g.Flatten(c), Wf, bf), axis=-1), [NC])
