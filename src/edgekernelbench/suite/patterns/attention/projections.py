"""Matrix products around attention: projections to heads, scores."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("attention_scores_bthd")
def attention_scores_bthd(q: Array, k: Array, scale: float) -> Array:
    return scale * np.einsum("ihd,jhd->hij", q, k, optimize=True)


@attention_scores_bthd.twin
def _(g: Graph, q: Value, k: Value, scale: float) -> Value:
    rows = g.Transpose(g.Mul(q, scale), perm=[1, 0, 2])
    return g.MatMul(rows, g.Transpose(k, perm=[1, 2, 0]))


@pattern("qkv_projection_split_heads")
def qkv_projection_split_heads(
    x: Array, w: Array, b: Array, L: int, H: int, D: int
) -> tuple[Array, Array, Array]:
    z = (x @ w.T + b).reshape(L, 3, H, D)
    q, k, v = z.transpose(1, 2, 0, 3)
    return q, k, v


@qkv_projection_split_heads.twin
def _(g: Graph, x: Value, w: Array, b: Array, L: int, H: int, D: int) -> tuple[Value, Value, Value]:
    z = g.Reshape(g.Gemm(x, w, b, transB=1), [L, 3, H, D])
    parts = g.op("Split", g.Transpose(z, perm=[1, 2, 0, 3]), outputs=3, axis=0, num_outputs=3)
    q, k, v = (g.Squeeze(part, [0]) for part in parts)
    return q, k, v
