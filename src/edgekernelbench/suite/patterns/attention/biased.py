"""Attention that knows positions: relative biases, skewed scores, locations."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import integers, weights
from edgekernelbench.suite.patterns.attention import twins
from edgekernelbench.suite.patterns.attention.inputs import keys, positions, queries, values
from edgekernelbench.suite.patterns.functions import softmax
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("rel_shift")
def rel_shift(x: Array, L: int) -> Array:
    i, j = np.indices((L, L))
    return x[:, i, j - i + L - 1]


@rel_shift.twin
def _(g: Graph, x: Value, H: int, L: int) -> Value:
    return twins.rel_shift(g, x, H, L)


@pattern(
    "window_attention_rel_bias",
    draw={
        "q": queries(),
        "k": keys,
        "v": values,
        "bias": weights("4"),
        "ridx": integers("0", "NBi"),
    },
)
def window_attention_rel_bias(
    q: Array, k: Array, v: Array, bias: Array, ridx: Array, scale: float
) -> Array:
    s = scale * (q @ k.transpose(0, 1, 3, 2)) + bias[:, ridx]
    return softmax(s) @ v


@window_attention_rel_bias.twin
def _(g: Graph, q: Value, k: Value, v: Value, bias: Array, ridx: Array, scale: float) -> Value:
    kt = g.Transpose(k, perm=[0, 1, 3, 2])
    return twins.attend(g, q, kt, v, scale, bias[:, ridx])


@pattern(
    "rel_pos_attention",
    draw={
        "q": queries(),
        "k": keys,
        "v": values,
        "r": positions,
        "u": weights("4"),
        "vb": weights("4"),
    },
)
def rel_pos_attention(
    q: Array, k: Array, v: Array, r: Array, u: Array, vb: Array, L: int, scale: float
) -> Array:
    content = (q + u[:, None, :]) @ k.transpose(0, 2, 1)
    position = (q + vb[:, None, :]) @ r.transpose(0, 2, 1)
    s = (content + rel_shift(position, L)) * scale
    return softmax(s) @ v


@rel_pos_attention.twin
def _(
    g: Graph, q: Value, k: Value, v: Value, r: Array, u: Array, vb: Array, H: int, L: int,
    scale: float
) -> Value:  # fmt: skip
    position = g.MatMul(g.Add(q, vb[:, None, :]), r.transpose(0, 2, 1))
    skewed = g.Mul(twins.rel_shift(g, position, H, L), scale)
    kt = g.Transpose(k, perm=[0, 2, 1])
    return twins.attend(g, g.Add(q, u[:, None, :]), kt, v, scale, skewed)


@pattern(
    "location_sensitive_attention",
    draw={"wf": weights("2*Kf", 1.5), "Wl": weights("NFl"), "vv": weights("Da", 2.5)},
)
def location_sensitive_attention(
    Q: Array, Mem: Array, cum_w: Array, wf: Array, Wl: Array, vv: Array, enc: Array
) -> tuple[Array, Array]:
    NFl, _, Kf = wf.shape
    L = len(Mem)
    padded = np.pad(cum_w, [(0, 0), (Kf // 2, Kf // 2)])
    loc = np.zeros((NFl, L))
    for r in range(Kf):
        loc += wf[:, :, r] @ padded[:, r : r + L]
    e = np.tanh(Q + Mem + loc.T @ Wl) @ vv
    w = softmax(e)
    return w @ enc, w


@location_sensitive_attention.twin
def _(
    g: Graph, Q: Value, Mem: Value, cum_w: Value, wf: Array, Wl: Array, vv: Array, enc: Value
) -> tuple[Value, Value]:
    return twins.location_attention(g, Q, Mem, cum_w, wf, Wl, vv, enc)
