"""Decoder layers with grouped attention and a gated feed-forward path."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from edgekernelbench.suite.draw import activations, near
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.attention.decode import gqa_decode_attention, gqa_operators
from edgekernelbench.suite.patterns.attention.inputs import values
from edgekernelbench.suite.patterns.attention.rotary import (
    rope_angle,
    rope_tables,
    rotate_half_split,
)
from edgekernelbench.suite.patterns.functions import rms_norm, silu, softmax
from edgekernelbench.suite.patterns.ranges import with_faint_slices
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("llama_layer_prefill", draw={"g1": near(1.0), "g2": near(1.0)})
def llama_layer_prefill(
    x: Array, g1: Array, Wq: Array, Wk: Array, Wv: Array, Wo: Array, g2: Array, Wg: Array,
    Wu: Array, Wd: Array, cos: Array, sin: Array, L: int, Hq: int, Hkv: int, D: int
) -> tuple[Array, Array, Array]:  # fmt: skip
    a = rms_norm(x, g1, 1e-5)
    q = (a @ Wq.T).reshape(L, Hq, D).transpose(1, 0, 2)
    k = (a @ Wk.T).reshape(L, Hkv, D).transpose(1, 0, 2)
    v = (a @ Wv.T).reshape(L, Hkv, D).transpose(1, 0, 2)
    q, k = rotate_half_split(q, cos, sin), rotate_half_split(k, cos, sin)
    o = np.zeros((L, Hq, D))
    future = np.triu(np.ones((L, L), bool), 1)
    for h in range(Hq):
        kv = h // (Hq // Hkv)
        scores = q[h] @ k[kv].T / math.sqrt(D)
        o[:, h] = softmax(np.where(future, -np.inf, scores)) @ v[kv]
    h = x + o.reshape(L, Hq * D) @ Wo.T
    b = rms_norm(h, g2, 1e-5)
    y = h + (silu(b @ Wg.T) * (b @ Wu.T)) @ Wd.T
    return y, k, v


llama_layer_prefill.inputs(rope_tables)


@llama_layer_prefill.twin
def _(
    g: Graph, x: Value, g1: Array, Wq: Array, Wk: Array, Wv: Array, Wo: Array, g2: Array,
    Wg: Array, Wu: Array, Wd: Array, cos: Array, sin: Array, L: int, Hq: int, Hkv: int, D: int
) -> tuple[Value, Value, Value]:  # fmt: skip
    def heads(w: Array, count: int) -> Value:
        rows = g.Reshape(g.MatMul(a, w.T), [L, count, D])
        return g.Transpose(rows, perm=[1, 0, 2])

    a = blocks.rms_norm(g, x, g1, 1e-5)
    q, k, v = heads(Wq, Hq), heads(Wk, Hkv), heads(Wv, Hkv)
    q = blocks.rope_half_split(g, q, cos, sin)
    k = blocks.rope_half_split(g, k, cos, sin)
    group = Hq // Hkv
    grouped = g.Reshape(q, [Hkv, group, L, D])
    keys = g.Unsqueeze(g.Transpose(k, perm=[0, 2, 1]), [1])
    mask = np.triu(np.full((L, L), -1e9 if g.float_dtype == np.float32 else -6e4), 1)
    scores = g.Add(g.Mul(g.MatMul(grouped, keys), 1 / math.sqrt(D)), mask)
    o = g.MatMul(g.Softmax(scores, axis=-1), g.Unsqueeze(v, [1]))
    o = g.Reshape(g.Transpose(g.Reshape(o, [Hq, L, D]), perm=[1, 0, 2]), [L, Hq * D])
    h = g.Add(x, g.MatMul(o, Wo.T))
    b = blocks.rms_norm(g, h, g2, 1e-5)
    gated = g.Mul(blocks.silu(g, g.MatMul(b, Wg.T)), g.MatMul(b, Wu.T))
    return g.Add(h, g.MatMul(gated, Wd.T)), k, v


@pattern(
    "llama_layer_decode",
    draw={
        "x": with_faint_slices(activations(), axes=(0,), eps=1e-5),
        "g1": near(1.0),
        "g2": near(1.0),
        "kc": activations(1.0, spread=0.75),
        "vc": values,
    },
)
def llama_layer_decode(
    x: Array, g1: Array, Wq: Array, Wk: Array, Wv: Array, Wo: Array, g2: Array, Wg: Array,
    Wu: Array, Wd: Array, cos: Array, sin: Array, kc: Array, vc: Array, Hq: int, Hkv: int, D: int
) -> tuple[Array, Array, Array]:  # fmt: skip
    a = rms_norm(x, g1, 1e-5)
    q = rotate_half_split((Wq @ a).reshape(Hq, D), cos, sin)
    k = rotate_half_split((Wk @ a).reshape(Hkv, D), cos, sin)
    v = (Wv @ a).reshape(Hkv, D)
    keys = np.concatenate([kc, k[:, None]], axis=1)
    vals = np.concatenate([vc, v[:, None]], axis=1)
    o = gqa_decode_attention(q, keys, vals, Hq // Hkv, 1 / math.sqrt(D))
    h = x + Wo @ o.reshape(-1)
    b = rms_norm(h, g2, 1e-5)
    return h + Wd @ (silu(Wg @ b) * (Wu @ b)), k, v


llama_layer_decode.inputs(rope_angle)


@llama_layer_decode.twin
def _(
    g: Graph, x: Value, g1: Array, Wq: Array, Wk: Array, Wv: Array, Wo: Array, g2: Array,
    Wg: Array, Wu: Array, Wd: Array, cos: Value, sin: Value, kc: Value, vc: Value, Hq: int,
    Hkv: int, D: int
) -> tuple[Value, Value, Value]:  # fmt: skip
    def product(w: Array) -> Callable[[Value], Value]:
        return lambda z: g.MatMul(z, w.T)

    products = tuple(product(w) for w in (Wq, Wk, Wv, Wo, Wg, Wu, Wd))
    return decode_operators(g, x, (g1, g2), products, cos, sin, kc, vc, Hq, Hkv, D)


def decode_operators(
    g: Graph,
    x: Value,
    gains: tuple[Array, Array],
    products: tuple[Callable[[Value], Value], ...],
    cos: Value,
    sin: Value,
    kc: Value,
    vc: Value,
    Hq: int,
    Hkv: int,
    D: int,
) -> tuple[Value, Value, Value]:
    """`llama_layer_decode` in ONNX, given the products with its seven matrices."""
    query, key, value, output, gate, up, down = products
    a = blocks.rms_norm(g, x, gains[0], 1e-5)
    q = blocks.rope_half_split(g, g.Reshape(query(a), [Hq, D]), cos, sin)
    k = blocks.rope_half_split(g, g.Reshape(key(a), [Hkv, D]), cos, sin)
    v = g.Reshape(value(a), [Hkv, D])
    keys = g.Concat(kc, g.Unsqueeze(k, [1]), axis=1)
    vals = g.Concat(vc, g.Unsqueeze(v, [1]), axis=1)
    o = gqa_operators(g, q, keys, vals, Hkv, Hq // Hkv, D, 1 / math.sqrt(D))
    h = g.Add(x, output(g.Reshape(o, [Hq * D])))
    b = blocks.rms_norm(g, h, gains[1], 1e-5)
    gated = g.Mul(blocks.silu(g, gate(b)), up(b))
    return g.Add(h, down(gated)), k, v
