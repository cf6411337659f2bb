"""Attention of one new token over a cache."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.attention.inputs import keys, queries, values
from edgekernelbench.suite.patterns.attention.twins import attend
from edgekernelbench.suite.patterns.functions import softmax
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("gqa_decode_attention", draw={"q": queries(), "k": keys, "v": values})
def gqa_decode_attention(q: Array, k: Array, v: Array, G: int, scale: float) -> Array:
    o = np.zeros(q.shape)
    for h in range(len(q)):
        p = softmax(scale * (k[h // G] @ q[h]))
        o[h] = p @ v[h // G]
    return o


@gqa_decode_attention.twin
def _(g: Graph, q: Value, k: Value, v: Value, Hkv: int, G: int, D: int, scale: float) -> Value:
    return gqa_operators(g, q, k, v, Hkv, G, D, scale)


def gqa_operators(
    g: Graph, q: Value, k: Value, v: Value, Hkv: int, G: int, D: int, scale: float
) -> Value:
    """`gqa_decode_attention` in ONNX."""
    grouped = g.Reshape(q, [Hkv, G, D])
    o = attend(g, grouped, g.Transpose(k, perm=[0, 2, 1]), v, scale)
    return g.Reshape(o, [Hkv * G, D])


SHARED = 0.6
"""Last component of the keys of a quantised cache, as far as its steps allow."""


@pattern("kv_int8_decode_attention", draw={"q": queries(3.0, SHARED)})
def kv_int8_decode_attention(
    q: Array, qk: Array, sk: Array, qv: Array, sv: Array, scale: float
) -> Array:
    k = qk * sk[:, :, None]
    v = qv * sv[:, :, None]
    p = softmax(scale * np.einsum("hd,hjd->hj", q, k))
    return np.einsum("hj,hjd->hd", p, v)


@kv_int8_decode_attention.inputs
def quantised_cache(draw: Draw) -> dict[str, np.ndarray]:
    """Keys and values of differing scales by token; all keys share the last component."""
    drawn = {}
    for name, scales in (("qk", "sk"), ("qv", "sv")):
        step = draw.rng(scales).uniform(0.005, 0.02, draw.shape(scales))
        levels = 30 * draw.rng(name).standard_normal(draw.shape(name))
        if name == "qk":
            levels[..., -1] = SHARED / step
        drawn[name] = np.clip(np.rint(levels), -127, 127).astype(np.int8)
        drawn[scales] = step
    return drawn


@kv_int8_decode_attention.twin
def _(
    g: Graph, q: Value, qk: Value, sk: Value, qv: Value, sv: Value, H: int, D: int, scale: float
) -> Value:
    def dequantised(values: Value, scales: Value) -> Value:
        return g.Mul(g.Cast(values, to=1), g.Unsqueeze(scales, [2]))

    query = g.Mul(g.Unsqueeze(blocks.wide(g, q), [1]), np.float32(scale))
    kt = g.Transpose(dequantised(qk, sk), perm=[0, 2, 1])
    p = g.Softmax(g.MatMul(query, kt), axis=-1)
    return g.cast(g.Squeeze(g.MatMul(p, dequantised(qv, sv)), [1]))
