"""Stacks of encoder layers, norms before or after."""

from __future__ import annotations

import math

import numpy as np

from edgekernelbench.suite.draw import Draw, near, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.functions import gelu, layer_norm, softmax
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.transformer_model.parts import (
    heads_operators,
    linear,
    pre_ln_layer,
    pre_ln_operators,
)
from edgekernelbench.suite.twin import Graph, Value

ENCODER = {
    "g1": near(1.0),
    "g2": near(1.0),
    "Wqkv": weights("Hn*D", 1.4),
    "Wo": weights("Hn*D", 1.4),
    "W1": weights("Hn*D"),
    "W2": weights("I", 1.4),
    **{name: weights("8") for name in ("c1", "c2", "bqkv", "bo", "bb1", "bb2")},
}


@pattern("pre_ln_transformer_encoder", draw=ENCODER)
def pre_ln_transformer_encoder(
    x: Array, g1: Array, c1: Array, Wqkv: Array, bqkv: Array, Wo: Array, bo: Array, g2: Array,
    c2: Array, W1: Array, bb1: Array, W2: Array, bb2: Array, Hn: int
) -> Array:  # fmt: skip
    t = x
    for layer in zip(g1, c1, Wqkv, bqkv, Wo, bo, g2, c2, W1, bb1, W2, bb2, strict=True):
        t = pre_ln_layer(t, *layer, heads=Hn, eps=1e-6, act=gelu)
    return t


@pre_ln_transformer_encoder.twin
def _(
    g: Graph, x: Value, g1: Array, c1: Array, Wqkv: Array, bqkv: Array, Wo: Array, bo: Array,
    g2: Array, c2: Array, W1: Array, bb1: Array, W2: Array, bb2: Array, Hn: int
) -> Value:  # fmt: skip
    t = x
    for layer in zip(g1, c1, Wqkv, bqkv, Wo, bo, g2, c2, W1, bb1, W2, bb2, strict=True):
        t = pre_ln_operators(g, t, layer, Hn, 1e-6, g.Gelu)
    return t


def padding_mask(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Ones up to a random length, at least half of the tokens and not all of them."""
    (tokens,) = spec.shape
    length = draw.rng(spec.name).integers(tokens // 2, tokens)
    return (np.arange(tokens) < length).astype(np.uint8)


@pattern("post_ln_transformer_encoder", draw={**ENCODER, "mask": padding_mask})
def post_ln_transformer_encoder(
    x: Array, mask: Array, g1: Array, c1: Array, Wqkv: Array, bqkv: Array, Wo: Array, bo: Array,
    g2: Array, c2: Array, W1: Array, bb1: Array, W2: Array, bb2: Array, Hn: int, D: int, Nl: int
) -> Array:  # fmt: skip
    t = x
    for i in range(Nl):
        q, k, v = np.split(t @ Wqkv[i].T + bqkv[i], 3, axis=1)
        o = np.zeros(t.shape)
        for h in range(Hn):
            head = slice(h * D, (h + 1) * D)
            s = q[:, head] @ k[:, head].T / math.sqrt(D)
            o[:, head] = softmax(np.where(mask == 0, -np.inf, s)) @ v[:, head]
        t = layer_norm(t + o @ Wo[i].T + bo[i], g1[i], c1[i], 1e-12)
        m = gelu(t @ W1[i].T + bb1[i]) @ W2[i].T + bb2[i]
        t = layer_norm(t + m, g2[i], c2[i], 1e-12)
    return t


@post_ln_transformer_encoder.twin
def _(
    g: Graph, x: Value, mask: Value, g1: Array, c1: Array, Wqkv: Array, bqkv: Array, Wo: Array,
    bo: Array, g2: Array, c2: Array, W1: Array, bb1: Array, W2: Array, bb2: Array, Hn: int,
    D: int, Nl: int
) -> Value:  # fmt: skip
    lowest = -1e9 if g.float_dtype == np.float32 else -6e4
    bias = g.Where(g.Cast(mask, to=9), 0.0, lowest)
    t = x
    for i in range(Nl):
        z = linear(g, t, Wqkv[i], bqkv[i])
        q, k, v = g.op("Split", z, outputs=3, axis=-1, num_outputs=3)
        o = linear(g, heads_operators(g, q, k, v, Hn, D, bias=bias), Wo[i], bo[i])
        t = g.LayerNormalization(g.Add(t, o), g1[i], c1[i], axis=-1, epsilon=1e-12)
        m = linear(g, g.Gelu(linear(g, t, W1[i], bb1[i])), W2[i], bb2[i])
        t = g.LayerNormalization(g.Add(t, m), g2[i], c2[i], axis=-1, epsilon=1e-12)
    return t
