"""What the transformer models share: attention by heads, a layer, gains of norms."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from edgekernelbench.suite.draw import Draw
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.attention.twins import attend
from edgekernelbench.suite.patterns.functions import layer_norm, softmax
from edgekernelbench.suite.patterns.registry import Array
from edgekernelbench.suite.twin import Graph, Value


def heads_attention(q: Array, k: Array, v: Array, heads: int) -> Array:
    """Attention of q, k, v[L, heads * D], head by head."""
    out = []
    for qh, kh, vh in zip(*(np.split(t, heads, axis=1) for t in (q, k, v)), strict=True):
        p = softmax(qh @ kh.T / math.sqrt(qh.shape[1]))
        out.append(p @ vh)
    return np.concatenate(out, axis=1)


def pre_ln_layer(
    t: Array, g1: Array, c1: Array, Wqkv: Array, bqkv: Array, Wo: Array, bo: Array, g2: Array,
    c2: Array, W1: Array, bb1: Array, W2: Array, bb2: Array, *, heads: int, eps: float,
    act: Callable[[Array], Array]
) -> Array:  # fmt: skip
    a = layer_norm(t, g1, c1, eps)
    q, k, v = np.split(a @ Wqkv.T + bqkv, 3, axis=1)
    t = t + heads_attention(q, k, v, heads) @ Wo.T + bo
    m = layer_norm(t, g2, c2, eps)
    return t + act(m @ W1.T + bb1) @ W2.T + bb2


def norm_gains(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Gains near 1 and shifts of normalisations, [..., 2, C]."""
    values = 0.2 * draw.rng(spec.name).standard_normal(spec.shape)
    values[..., 0, :] += 1
    return values


# ---------------------------------------------------------------- ONNX
def linear(g: Graph, x: Value, w: Array, b: Array) -> Value:
    """x W^T + b for x of any rank."""
    return g.Add(g.MatMul(x, w.T), b)


def heads_operators(
    g: Graph,
    q: Value,
    k: Value,
    v: Value,
    heads: int,
    size: int,
    batch: tuple[int, ...] = (),
    bias: Value | Array | None = None,
) -> Value:
    """`heads_attention` of q, k, v[batch, L, heads * size]; the bias is added to the scores."""
    n = len(batch)
    rows, columns = [*range(n), n + 1, n, n + 2], [*range(n), n + 1, n + 2, n]

    def split(x: Value, perm: list[int]) -> Value:
        return g.Transpose(g.Reshape(x, [*batch, -1, heads, size]), perm=perm)

    scale = 1 / math.sqrt(size)
    o = attend(g, split(q, rows), split(k, columns), split(v, rows), scale, bias)
    return g.Reshape(g.Transpose(o, perm=rows), [*batch, -1, heads * size])


def pre_ln_operators(
    g: Graph,
    t: Value,
    layer: tuple[Array, ...],
    heads: int,
    eps: float,
    act: Callable[[Value], Value],
    batch: tuple[int, ...] = (),
) -> Value:
    """`pre_ln_layer` of t[batch, L, C]; its arrays in order."""
    g1, c1, Wqkv, bqkv, Wo, bo, g2, c2, W1, bb1, W2, bb2 = layer
    a = g.LayerNormalization(t, g1, c1, axis=-1, epsilon=eps)
    q, k, v = g.op("Split", linear(g, a, Wqkv, bqkv), outputs=3, axis=-1, num_outputs=3)
    o = heads_operators(g, q, k, v, heads, len(Wo) // heads, batch)
    t = g.Add(t, linear(g, o, Wo, bo))
    m = g.LayerNormalization(t, g2, c2, axis=-1, epsilon=eps)
    return g.Add(t, linear(g, act(linear(g, m, W1, bb1)), W2, bb2))
