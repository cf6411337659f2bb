"""Attention and its parts."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import relu, softmax
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def rotate_half_split(x: Array, cos: Array, sin: Array) -> Array:
    """Rotates the pairs (i, i + D/2) of x[..., D] by the angles of cos and sin[..., D/2]."""
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def rope_tables(draw: Draw) -> dict[str, np.ndarray]:
    """cos and sin of position times frequency, from a random first position on."""
    positions, pairs = draw.shape("cos")
    first = draw.rng("cos").integers(0, 2048)
    frequency = 10000.0 ** (-np.arange(pairs) / pairs)
    angles = (first + np.arange(positions))[:, None] * frequency
    return {"cos": np.cos(angles), "sin": np.sin(angles)}


@pattern("rope_half_split")
def rope_half_split(x: Array, cos: Array, sin: Array) -> Array:
    return rotate_half_split(x, cos[:, None, :], sin[:, None, :])


rope_half_split.inputs(rope_tables)


@rope_half_split.twin
def _(g: Graph, x: Value, cos: Array, sin: Array) -> Value:
    return blocks.rope_half_split(g, x, cos[:, None, :], sin[:, None, :])


@pattern("gqa_decode_attention", draw={"k": activations(1.0, spread=0.75)})
def gqa_decode_attention(q: Array, k: Array, v: Array, G: int, scale: float) -> Array:
    o = np.zeros(q.shape)
    for h in range(len(q)):
        p = softmax(scale * (k[h // G] @ q[h]))
        o[h] = p @ v[h // G]
    return o


@gqa_decode_attention.twin
def _(g: Graph, q: Value, k: Value, v: Value, Hkv: int, G: int, D: int, scale: float) -> Value:
    grouped = g.Mul(g.Reshape(q, [Hkv, G, D]), scale)
    p = g.Softmax(g.MatMul(grouped, g.Transpose(k, perm=[0, 2, 1])), axis=-1)
    return g.Reshape(g.MatMul(p, v), [Hkv * G, D])


@pattern("relu_linear_attention")
def relu_linear_attention(q: Array, k: Array, v: Array) -> Array:
    q, k = relu(q), relu(k)
    numerator = q @ (k.transpose(0, 2, 1) @ v)  # the D x D state first, never L x L scores
    denominator = q @ k.sum(axis=1)[:, :, None]
    return numerator / (denominator + 1e-15)


@relu_linear_attention.twin
def _(g: Graph, q: Value, k: Value, v: Value, H: int, L: int, D: int) -> Value:
    q, k = g.Relu(q), g.Relu(k)
    ones = np.ones((H, L, 1))
    state = g.MatMul(g.Transpose(k, perm=[0, 2, 1]), g.Concat(v, g.value(ones), axis=2))
    both = g.MatMul(q, state)
    numerator, denominator = g.op("Split", both, [D, 1], outputs=2, axis=2)
    return g.Div(numerator, g.Add(denominator, 1e-15))
