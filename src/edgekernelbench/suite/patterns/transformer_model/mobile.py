"""Blocks of networks for telephones."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import near, weights
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import layer_norm, relu, silu
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.transformer_model.parts import (
    heads_attention,
    heads_operators,
    pre_ln_layer,
    pre_ln_operators,
)
from edgekernelbench.suite.patterns.windows import conv2d, pad_hw
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


@mobilebert_layer.twin
def _(
    graph: Graph, x: Value, Wbi: Array, bbi: Array, Wbs: Array, bbs: Array, Wq: Array, bq: Array,
    Wk: Array, bk: Array, Wv: Array, bv: Array, Wao: Array, bao: Array, W1: Array, b1: Array,
    W2: Array, b2: Array, g: Array, c: Array, Wbo: Array, bbo: Array, gy: Array, cy: Array, Cb: int,
    Hn: int
) -> Value:  # fmt: skip
    def linear(z: Value, w: Array, b: Array) -> Value:
        return graph.Add(graph.MatMul(z, w), b)

    def no_norm(z: Value, gain: Array, shift: Array) -> Value:
        return graph.Add(graph.Mul(z, gain), shift)

    lin = no_norm(linear(x, Wbi, bbi), g[0], c[0])
    shared = no_norm(linear(x, Wbs, bbs), g[1], c[1])
    q, k, v = linear(shared, Wq, bq), linear(shared, Wk, bk), linear(x, Wv, bv)
    ctx = heads_operators(graph, q, k, v, Hn, Cb // Hn)
    t = no_norm(graph.Add(linear(ctx, Wao, bao), lin), g[2], c[2])
    for i in range(4):
        inner = graph.Relu(linear(t, W1[i], b1[i]))
        t = no_norm(graph.Add(linear(inner, W2[i], b2[i]), t), g[3 + i], c[3 + i])
    return no_norm(graph.Add(linear(t, Wbo, bbo), x), gy, cy)


def conv3x3(x: Array, w: Array) -> Array:
    """x[C,H,W], w[K,C,3,3], border of zeros."""
    return conv2d(pad_hw(x[None], 1, 1, 1, 1), w)[0]


def unfold(z: Array) -> Array:
    """z[D,H,W] to [4,L,D]: the pixels of each of the four positions in 2 x 2 patches."""
    D, H, W = z.shape
    patches = z.reshape(D, H // 2, 2, W // 2, 2).transpose(2, 4, 1, 3, 0)
    return patches.reshape(4, H * W // 4, D)


def fold(z: Array, H: int, W: int) -> Array:
    """Back from `unfold`."""
    patches = z.reshape(2, 2, H // 2, W // 2, -1).transpose(4, 2, 0, 3, 1)
    return patches.reshape(-1, H, W)


@pattern(
    "mobilevit_block",
    draw={
        "w1": weights("9*C", 1.6),
        "w2": weights("C", 1.4),
        "g1": near(1.0),
        "g2": near(1.0),
        "gf": near(1.0),
        "Wqkv": weights("D", 1.4),
        "Wo": weights("D", 1.4),
        "W1": weights("D"),
        "W2": weights("I", 1.4),
        "w3": weights("D", 1.4),
        "w4": weights("18*C", 1.6),
        **{name: weights("8") for name in ("c1", "c2", "bqkv", "bo", "bb1", "bb2")},
    },
)
def mobilevit_block(
    x: Array, w1: Array, b1: Array, w2: Array, g1: Array, c1: Array, Wqkv: Array, bqkv: Array,
    Wo: Array, bo: Array, g2: Array, c2: Array, W1: Array, bb1: Array, W2: Array, bb2: Array,
    gf: Array, cf: Array, w3: Array, b3: Array, w4: Array, b4: Array, H: int, W: int, Hn: int
) -> Array:  # fmt: skip
    z = silu(conv3x3(x, w1) + b1[:, None, None])
    z = unfold(np.einsum("dc,chw->dhw", w2, z, optimize=True))
    for layer in zip(g1, c1, Wqkv, bqkv, Wo, bo, g2, c2, W1, bb1, W2, bb2, strict=True):
        z = np.stack([pre_ln_layer(t, *layer, heads=Hn, eps=1e-5, act=silu) for t in z])
    z = fold(layer_norm(z, gf, cf, 1e-5), H, W)
    z = silu(np.einsum("cd,dhw->chw", w3, z, optimize=True) + b3[:, None, None])
    return silu(conv3x3(np.concatenate([x, z]), w4) + b4[:, None, None])


@mobilevit_block.twin
def _(
    g: Graph, x: Value, w1: Array, b1: Array, w2: Array, g1: Array, c1: Array, Wqkv: Array,
    bqkv: Array, Wo: Array, bo: Array, g2: Array, c2: Array, W1: Array, bb1: Array, W2: Array,
    bb2: Array, gf: Array, cf: Array, w3: Array, b3: Array, w4: Array, b4: Array, D: int, H: int,
    W: int, Hn: int
) -> Value:  # fmt: skip
    x = g.Unsqueeze(x, [0])
    z = blocks.silu(g, blocks.conv3x3(g, x, w1, b1))
    z = g.Reshape(g.Conv(z, w2[:, :, None, None]), [D, H // 2, 2, W // 2, 2])
    z = g.Reshape(g.Transpose(z, perm=[2, 4, 1, 3, 0]), [4, H * W // 4, D])
    for layer in zip(g1, c1, Wqkv, bqkv, Wo, bo, g2, c2, W1, bb1, W2, bb2, strict=True):
        z = pre_ln_operators(g, z, layer, Hn, 1e-5, lambda m: blocks.silu(g, m), (4,))
    z = g.LayerNormalization(z, gf, cf, axis=-1, epsilon=1e-5)
    z = g.Transpose(g.Reshape(z, [2, 2, H // 2, W // 2, D]), perm=[4, 2, 0, 3, 1])
    z = blocks.silu(g, blocks.conv1x1(g, g.Reshape(z, [1, D, H, W]), w3, b3))
    both = g.Concat(x, z, axis=1)
    return g.Squeeze(blocks.silu(g, blocks.conv3x3(g, both, w4, b4)), [0])
