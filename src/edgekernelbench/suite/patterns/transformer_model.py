"""Encoder layers of transformers."""

from __future__ import annotations

import math

import numpy as np

from edgekernelbench.suite.draw import near, weights
from edgekernelbench.suite.patterns.functions import relu, softmax
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern(
    "mobilebert_layer",
    draw={
        **{name: weights("C") for name in ("Wbi", "Wbs", "Wv")},
        **{name: weights("Cb") for name in ("Wq", "Wk", "Wao", "W1", "Wbo")},
        "W2": weights("I"),
        "g": near(0.8),
        "gy": near(0.8),
    },
    inert={"bk": "it shifts all scores of a query alike, which softmax forgets"},
)
def mobilebert_layer(
    x: Array, Wbi: Array, bbi: Array, Wbs: Array, bbs: Array, Wq: Array, bq: Array, Wk: Array,
    bk: Array, Wv: Array, bv: Array, Wao: Array, bao: Array, W1: Array, b1: Array, W2: Array,
    b2: Array, g: Array, c: Array, Wbo: Array, bbo: Array, gy: Array, cy: Array, Hn: int
) -> Array:  # fmt: skip
    def no_norm(z: Array, i: int) -> Array:
        return z * g[i] + c[i]

    lin = no_norm(x @ Wbi + bbi, 0)
    shared = no_norm(x @ Wbs + bbs, 1)
    ctx = heads_attention(shared @ Wq + bq, shared @ Wk + bk, x @ Wv + bv, Hn)
    t = no_norm(ctx @ Wao + bao + lin, 2)
    for i in range(4):
        t = no_norm(relu(t @ W1[i] + b1[i]) @ W2[i] + b2[i] + t, 3 + i)
    return (t @ Wbo + bbo + x) * gy + cy


def heads_attention(q: Array, k: Array, v: Array, heads: int) -> Array:
    """Attention of q, k, v[L, heads * D], head by head."""
    out = []
    for qh, kh, vh in zip(*(np.split(t, heads, axis=1) for t in (q, k, v)), strict=True):
        p = softmax(qh @ kh.T / math.sqrt(qh.shape[1]))
        out.append(p @ vh)
    return np.concatenate(out, axis=1)


@mobilebert_layer.twin
def _(
    graph: Graph, x: Value, Wbi: Array, bbi: Array, Wbs: Array, bbs: Array, Wq: Array, bq: Array,
    Wk: Array, bk: Array, Wv: Array, bv: Array, Wao: Array, bao: Array, W1: Array, b1: Array,
    W2: Array, b2: Array, g: Array, c: Array, Wbo: Array, bbo: Array, gy: Array, cy: Array, L: int,
    Cb: int, Hn: int
) -> Value:  # fmt: skip
    def linear(z: Value, w: Array, b: Array) -> Value:
        return graph.Add(graph.MatMul(z, w), b)

    def no_norm(z: Value, gain: Array, shift: Array) -> Value:
        return graph.Add(graph.Mul(z, gain), shift)

    def heads(z: Value, perm: list[int]) -> Value:
        return graph.Transpose(graph.Reshape(z, [L, Hn, Cb // Hn]), perm=perm)

    lin = no_norm(linear(x, Wbi, bbi), g[0], c[0])
    shared = no_norm(linear(x, Wbs, bbs), g[1], c[1])
    q = heads(linear(shared, Wq, bq), [1, 0, 2])
    k = heads(linear(shared, Wk, bk), [1, 2, 0])
    v = heads(linear(x, Wv, bv), [1, 0, 2])
    scores = graph.Div(graph.MatMul(q, k), math.sqrt(Cb // Hn))
    ctx = graph.MatMul(graph.Softmax(scores, axis=-1), v)
    ctx = graph.Reshape(graph.Transpose(ctx, perm=[1, 0, 2]), [L, Cb])
    t = no_norm(graph.Add(linear(ctx, Wao, bao), lin), g[2], c[2])
    for i in range(4):
        inner = graph.Relu(linear(t, W1[i], b1[i]))
        t = no_norm(graph.Add(linear(inner, W2[i], b2[i]), t), g[3 + i], c[3 + i])
    return no_norm(graph.Add(linear(t, Wbo, bbo), x), gy, cy)
