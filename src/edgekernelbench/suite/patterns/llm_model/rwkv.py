"""Attention-free blocks."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import uniform, weights
from edgekernelbench.suite.patterns.functions import layer_norm, sigmoid
from edgekernelbench.suite.patterns.recurrent import channel_decay, rwkv4_wkv
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.transformer_mlp import (
    channel_mix_operators,
    rwkv_channel_mix,
    token_shift,
    token_shift_operators,
)
from edgekernelbench.suite.patterns.transformer_model.parts import norm_gains
from edgekernelbench.suite.twin import Graph, Value


@pattern(
    "rwkv4_block",
    draw={
        "ln1": norm_gains,
        "ln2": norm_gains,
        "mt": uniform(0.0, 1.0),
        "mc": uniform(0.0, 1.0),
        "w": channel_decay,
        "Wt": weights("C", 1.4),
        "Wo": weights("C", 2.0),
        "Wr": weights("C", 1.4),
    },
)
def rwkv4_block(
    x: Array, ln1: Array, mt: Array, Wt: Array, w: Array, u: Array, Wo: Array, ln2: Array,
    mc: Array, Wk: Array, Wr: Array, Wv: Array
) -> Array:  # fmt: skip
    a = layer_norm(x, ln1[0], ln1[1], 1e-5)
    previous = token_shift(a)
    k, v, r = ((a * mt[j] + previous * (1 - mt[j])) @ Wt[j].T for j in range(3))
    y = x + (sigmoid(r) * rwkv4_wkv(w, u, k, v)) @ Wo.T
    b = layer_norm(y, ln2[0], ln2[1], 1e-5)
    return y + rwkv_channel_mix(b, mc[0], mc[1], Wk, Wr, Wv)


@rwkv4_block.twin
def _(
    g: Graph, x: Value, ln1: Array, mt: Array, Wt: Array, w: Array, u: Array, Wo: Array,
    ln2: Array, mc: Array, Wk: Array, Wr: Array, Wv: Array, L: int
) -> Value:  # fmt: skip
    def norm(t: Value, pair: Array) -> Value:
        return g.LayerNormalization(t, pair[0], pair[1], axis=-1, epsilon=1e-5)

    a = norm(x, ln1)
    previous = token_shift_operators(g, a, L)
    mixed = (g.Add(g.Mul(a, m), g.Mul(previous, 1 - m)) for m in mt)
    k, v, r = (g.MatMul(t, matrix.T) for t, matrix in zip(mixed, Wt, strict=True))
    gated = g.Mul(g.Sigmoid(r), unrolled_wkv(g, w, u, k, v, L))
    y = g.Add(x, g.MatMul(gated, Wo.T))
    return g.Add(y, channel_mix_operators(g, norm(y, ln2), (mc[0], mc[1]), (Wk, Wr, Wv), L))


def unrolled_wkv(g: Graph, w: Array, u: Array, k: Value, v: Value, L: int) -> Value:
    """`rwkv4_wkv`, step by step, as tracing a loop over tokens leaves it."""
    keys = g.op("Split", k, outputs=L, axis=0, num_outputs=L)
    values = g.op("Split", v, outputs=L, axis=0, num_outputs=L)
    a, b, p = values[0], g.value(np.ones((1, len(w)))), keys[0]
    steps = [values[0]]  # nothing else has been seen yet
    for k_t, v_t in zip(keys[1:], values[1:], strict=True):
        bonus = g.Add(k_t, u)
        old, new = scaled_exponents(g, p, bonus, g.Max(p, bonus))
        numerator = g.Add(g.Mul(old, a), g.Mul(new, v_t))
        steps.append(g.Div(numerator, g.Add(g.Mul(old, b), new)))
        decayed = g.Add(p, w)
        p = g.Max(decayed, k_t)
        old, new = scaled_exponents(g, decayed, k_t, p)
        a = g.Add(g.Mul(old, a), g.Mul(new, v_t))
        b = g.Add(g.Mul(old, b), new)
    return g.Concat(*steps, axis=0)


def scaled_exponents(g: Graph, old: Value, new: Value, largest: Value) -> tuple[Value, Value]:
    return g.Exp(g.Sub(old, largest)), g.Exp(g.Sub(new, largest))
