"""Speech recognition: a decoder's step, an encoder block with convolutions."""

from __future__ import annotations

import math

import numpy as np

from edgekernelbench.suite.draw import Draw, activations, uniform, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.attention import twins
from edgekernelbench.suite.patterns.attention.biased import rel_pos_attention
from edgekernelbench.suite.patterns.attention.inputs import values
from edgekernelbench.suite.patterns.functions import gelu, layer_norm, sigmoid, silu, softmax
from edgekernelbench.suite.patterns.ranges import with_faint_slices
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.transformer_model.parts import linear, norm_gains
from edgekernelbench.suite.twin import Graph, Value


def token_attention(q: Array, k: Array, v: Array) -> Array:
    """Of one token: q[H,D], k and v[H,T,D], to [H*D]."""
    s = np.einsum("hd,htd->ht", q, k) / math.sqrt(q.shape[1])
    return np.einsum("ht,htd->hd", softmax(s), v).reshape(-1)


def biases_but_of_keys(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Biases of q, k, v and o; k has none."""
    drawn = weights("8")(draw, spec)
    drawn[:, 1] = 0
    return drawn


@pattern(
    "whisper_decoder_step",
    draw={
        "ln": norm_gains,
        "lnf": norm_gains,
        "Ws": weights("Hn*D", 1.4),
        "bs": biases_but_of_keys,
        "kc": activations(1.4, spread=0.5),
        "vc": values,
        "Wc": weights("Hn*D", 1.4),
        "bc": weights("8"),
        "xk": activations(1.4, spread=0.5),
        "xv": values,
        "W1": weights("Hn*D"),
        "W2": weights("I", 1.4),
        "b1": weights("8"),
        "b2": weights("8"),
    },
)
def whisper_decoder_step(
    x: Array, ln: Array, Ws: Array, bs: Array, kc: Array, vc: Array, Wc: Array, bc: Array,
    xk: Array, xv: Array, W1: Array, b1: Array, W2: Array, b2: Array, lnf: Array, Nl: int,
    Hn: int, D: int
) -> tuple[Array, Array, Array]:  # fmt: skip
    def norm(t: Array, gains: Array) -> Array:
        return layer_norm(t, gains[0], gains[1], 1e-5)

    t = x
    new_k, new_v = np.zeros((Nl, Hn, D)), np.zeros((Nl, Hn, D))
    for i in range(Nl):
        a = norm(t, ln[i, 0])
        q, k, v = (Ws[i, :3] @ a + bs[i, :3]).reshape(3, Hn, D)
        keys = np.concatenate([kc[i], k[:, None]], axis=1)
        vals = np.concatenate([vc[i], v[:, None]], axis=1)
        t = t + Ws[i, 3] @ token_attention(q, keys, vals) + bs[i, 3]
        q = (Wc[i, 0] @ norm(t, ln[i, 1]) + bc[i, 0]).reshape(Hn, D)
        t = t + Wc[i, 1] @ token_attention(q, xk[i], xv[i]) + bc[i, 1]
        t = t + W2[i] @ gelu(W1[i] @ norm(t, ln[i, 2]) + b1[i]) + b2[i]
        new_k[i], new_v[i] = k, v
    return norm(t, lnf), new_k, new_v


@whisper_decoder_step.twin
def _(
    g: Graph, x: Value, ln: Array, Ws: Array, bs: Array, kc: Value, vc: Value, Wc: Array,
    bc: Array, xk: Value, xv: Value, W1: Array, b1: Array, W2: Array, b2: Array, lnf: Array,
    Nl: int, Hn: int, D: int
) -> tuple[Value, Value, Value]:  # fmt: skip
    def norm(t: Value, pair: Array) -> Value:
        return g.LayerNormalization(t, pair[0], pair[1], axis=-1, epsilon=1e-5)

    def project(t: Value, w: Array, b: Array) -> Value:
        return g.Reshape(linear(g, t, w, b), [Hn, 1, D])

    def attended(q: Value, k: Value, v: Value, w: Array, b: Array) -> Value:
        kt = g.Transpose(k, perm=[0, 2, 1])
        return linear(g, g.Reshape(twins.attend(g, q, kt, v, 1 / math.sqrt(D)), [Hn * D]), w, b)

    def layers(stacked: Value) -> list[Value]:
        parts = g.op("Split", stacked, outputs=Nl, axis=0, num_outputs=Nl)
        return [g.Squeeze(part, [0]) for part in parts]

    t, new_k, new_v = x, [], []
    for i, caches in enumerate(zip(*map(layers, (kc, vc, xk, xv)), strict=True)):
        old_k, old_v, audio_k, audio_v = caches
        a = norm(t, ln[i, 0])
        q, k, v = (project(a, Ws[i, j], bs[i, j]) for j in range(3))
        keys, vals = g.Concat(old_k, k, axis=1), g.Concat(old_v, v, axis=1)
        t = g.Add(t, attended(q, keys, vals, Ws[i, 3], bs[i, 3]))
        q = project(norm(t, ln[i, 1]), Wc[i, 0], bc[i, 0])
        t = g.Add(t, attended(q, audio_k, audio_v, Wc[i, 1], bc[i, 1]))
        m = g.Gelu(linear(g, norm(t, ln[i, 2]), W1[i], b1[i]))
        t = g.Add(t, linear(g, m, W2[i], b2[i]))
        new_k.append(g.Reshape(k, [1, Hn, D]))
        new_v.append(g.Reshape(v, [1, Hn, D]))
    return norm(t, lnf), g.Concat(*new_k, axis=0), g.Concat(*new_v, axis=0)


def depthwise_over_time(x: Array, w: Array) -> Array:
    """x[L,C], w[C,K], centred, border of zeros."""
    K = w.shape[1]
    padded = np.pad(x, [(K // 2, K // 2), (0, 0)])
    return sum((padded[k : k + len(x)] * w[:, k] for k in range(K)), start=np.zeros(x.shape))


@pattern(
    "conformer_block",
    draw={
        "x": with_faint_slices(activations(), axes=(1,), eps=1e-5),
        "ln": norm_gains,
        "F1": weights("Hn*D"),
        "F2": weights("I", 2.0),
        "Wqkv": weights(gain=1.4),
        "pe": uniform(-1.0, 1.0),
        "Wo": weights(gain=1.4),
        "P1": weights(gain=1.4),
        "wdw": weights(gain=1.4),
        "bns": norm_gains,
        "P2": weights(gain=1.4),
        **{name: weights("8") for name in ("f1", "f2", "u", "vb")},
    },
)
def conformer_block(
    x: Array, ln: Array, F1: Array, f1: Array, F2: Array, f2: Array, Wqkv: Array, bqkv: Array,
    pe: Array, Wp: Array, u: Array, vb: Array, Wo: Array, bo: Array, P1: Array, p1: Array,
    wdw: Array, bns: Array, P2: Array, p2: Array, L: int, Hn: int, D: int
) -> Array:  # fmt: skip
    def norm(t: Array, i: int) -> Array:
        return layer_norm(t, ln[i, 0], ln[i, 1], 1e-5)

    def feed_forward(t: Array, i: int) -> Array:
        return silu(t @ F1[i].T + f1[i]) @ F2[i].T + f2[i]

    t = x + 0.5 * feed_forward(norm(x, 0), 0)
    qkv = norm(t, 1) @ Wqkv.T + bqkv
    q, k, v = qkv.reshape(L, 3, Hn, D).transpose(1, 2, 0, 3)
    r = (pe @ Wp.T).reshape(2 * L - 1, Hn, D).transpose(1, 0, 2)
    o = rel_pos_attention(q, k, v, r, u, vb, L, 1 / math.sqrt(D))
    t = t + o.transpose(1, 0, 2).reshape(L, Hn * D) @ Wo.T + bo
    value, gate = np.split(norm(t, 2) @ P1.T + p1, 2, axis=1)
    z = depthwise_over_time(value * sigmoid(gate), wdw)
    t = t + silu(z * bns[0] + bns[1]) @ P2.T + p2
    t = t + 0.5 * feed_forward(norm(t, 3), 1)
    return norm(t, 4)


@conformer_block.twin
def _(
    g: Graph, x: Value, ln: Array, F1: Array, f1: Array, F2: Array, f2: Array, Wqkv: Array,
    bqkv: Array, pe: Array, Wp: Array, u: Array, vb: Array, Wo: Array, bo: Array, P1: Array,
    p1: Array, wdw: Array, bns: Array, P2: Array, p2: Array, L: int, Hn: int, D: int, Kc: int
) -> Value:  # fmt: skip
    def norm(t: Value, i: int) -> Value:
        return g.LayerNormalization(t, ln[i, 0], ln[i, 1], axis=-1, epsilon=1e-5)

    def half_fed_forward(t: Value, i: int) -> Value:
        hidden = blocks.silu(g, linear(g, norm(t, i * 3), F1[i], f1[i]))
        return g.Add(t, g.Mul(linear(g, hidden, F2[i], f2[i]), 0.5))

    def attention(t: Value) -> Value:
        z = g.Transpose(g.Reshape(linear(g, t, Wqkv, bqkv), [L, 3, Hn, D]), perm=[1, 2, 0, 3])
        parts = g.op("Split", z, outputs=3, axis=0, num_outputs=3)
        q, k, v = (g.Squeeze(part, [0]) for part in parts)
        rt = (pe @ Wp.T).reshape(2 * L - 1, Hn, D).transpose(1, 2, 0)
        scale = 1 / math.sqrt(D)
        position = g.MatMul(g.Add(q, vb[:, None, :]), rt)
        skewed = g.Mul(twins.rel_shift(g, position, Hn, L), scale)
        kt = g.Transpose(k, perm=[0, 2, 1])
        o = twins.attend(g, g.Add(q, u[:, None, :]), kt, v, scale, skewed)
        return linear(g, g.Reshape(g.Transpose(o, perm=[1, 0, 2]), [L, Hn * D]), Wo, bo)

    def convolution(t: Value) -> Value:
        value, gate = g.op("Split", linear(g, t, P1, p1), outputs=2, axis=-1, num_outputs=2)
        z = g.Transpose(g.Mul(value, g.Sigmoid(gate)), perm=[1, 0])
        folded = (wdw * bns[0][:, None])[:, None]
        border = [Kc // 2, Kc // 2]
        z = g.Conv(g.Unsqueeze(z, [0]), folded, bns[1], group=Hn * D, pads=border)
        z = g.Transpose(g.Squeeze(z, [0]), perm=[1, 0])
        return linear(g, blocks.silu(g, z), P2, p2)

    t = half_fed_forward(x, 0)
    t = g.Add(t, attention(norm(t, 1)))
    t = g.Add(t, convolution(norm(t, 2)))
    return norm(half_fed_forward(t, 1), 4)
