"""Softmax attention over a whole sequence, all of it or a band."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.patterns.attention.inputs import keys, queries, values
from edgekernelbench.suite.patterns.attention.twins import attend, mask_bias
from edgekernelbench.suite.patterns.functions import softmax
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value

LIFTED = {"q": queries(), "k": keys, "v": values}


@pattern("scaled_dot_product_attention", draw=LIFTED)
def scaled_dot_product_attention(q: Array, k: Array, v: Array, scale: float) -> Array:
    return softmax(scale * (q @ k.transpose(0, 2, 1))) @ v


@scaled_dot_product_attention.twin
def _(g: Graph, q: Value, k: Value, v: Value, scale: float) -> Value:
    return attend(g, q, g.Transpose(k, perm=[0, 2, 1]), v, scale)


@pattern("causal_attention", draw=LIFTED)
def causal_attention(q: Array, k: Array, v: Array, scale: float) -> Array:
    i, j = np.indices((q.shape[1], k.shape[1]))
    s = scale * (q @ k.transpose(0, 2, 1))
    return softmax(np.where(j > i, -np.inf, s)) @ v


@causal_attention.twin
def _(g: Graph, q: Value, k: Value, v: Value, L: int, scale: float) -> Value:
    i, j = np.indices((L, L))
    kt = g.Transpose(k, perm=[0, 2, 1])
    return attend(g, q, kt, v, scale, mask_bias(g, j > i))


@pattern("sliding_window_attention", draw=LIFTED)
def sliding_window_attention(q: Array, k: Array, v: Array, Wn: int, scale: float) -> Array:
    i, j = np.indices((q.shape[1], k.shape[1]))
    outside = (j > i) | (j <= i - Wn)
    s = scale * (q @ k.transpose(0, 2, 1))
    return softmax(np.where(outside, -np.inf, s)) @ v


@sliding_window_attention.twin
def _(g: Graph, q: Value, k: Value, v: Value, L: int, Wn: int, scale: float) -> Value:
    i, j = np.indices((L, L))
    outside = (j > i) | (j <= i - Wn)
    kt = g.Transpose(k, perm=[0, 2, 1])
    return attend(g, q, kt, v, scale, mask_bias(g, outside))
