"""Subgraphs of attention that ONNX twins share."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.patterns.registry import Array
from edgekernelbench.suite.twin import Graph, Value


def attend(
    g: Graph, q: Value, kt: Value, v: Value, scale: float, bias: Value | Array | None = None
) -> Value:
    """Of q[..., TQ, D], kt[..., D, TK] and v[..., TK, Dv]; the bias is added to the scores."""
    scores = g.MatMul(g.Mul(q, scale), kt)
    if bias is not None:
        scores = g.Add(scores, bias)
    return g.MatMul(g.Softmax(scores, axis=-1), v)


def mask_bias(g: Graph, masked: Array) -> Array:
    """What removes masked keys when it is added: near the lowest number of the float type."""
    return np.where(masked, -1e9 if g.float_dtype == np.float32 else -6e4, 0.0)


def rel_shift(g: Graph, x: Value, H: int, L: int) -> Value:
    """y[h,i,j] = x[h,i,j-i+L-1] of x[H,L,2L-1]: a column of zeros, and rows told anew."""
    padded = g.Reshape(g.Pad(x, [0, 0, 1, 0, 0, 0]), [H, 2 * L, L])
    skewed = g.Reshape(g.Slice(padded, [1], [2 * L], [1]), [H, L, 2 * L - 1])
    return g.Slice(skewed, [0], [L], [2])


def location_attention(
    g: Graph, Q: Value, Mem: Value, cum_w: Value, wf: Array, Wl: Array, vv: Array, enc: Value
) -> tuple[Value, Value]:
    """Context and weights of location-sensitive attention."""
    border = wf.shape[2] // 2
    loc = g.Squeeze(g.Conv(g.Unsqueeze(cum_w, [0]), wf, pads=[border, border]), [0])
    position = g.MatMul(g.Transpose(loc, perm=[1, 0]), Wl)
    e = g.MatMul(g.Tanh(g.Add(g.Add(Mem, Q), position)), vv)
    w = g.Softmax(e, axis=-1)
    return g.MatMul(w, enc), w
