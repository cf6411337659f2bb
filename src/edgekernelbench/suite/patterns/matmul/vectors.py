"""Products of a matrix and a vector, single and in batches."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("gemv_row_major")
def gemv_row_major(W: Array, x: Array) -> Array:
    return W @ x


@gemv_row_major.twin
def _(g: Graph, W: Array, x: Value) -> Value:
    return g.MatMul(x, W.T)


@pattern("gemv_col_major", draw={"W": weights("K")})
def gemv_col_major(x: Array, W: Array) -> Array:
    return x @ W


@gemv_col_major.twin
def _(g: Graph, x: Value, W: Array) -> Value:
    return g.MatMul(x, W)


@pattern("batch_gemv_nt", draw={"W": weights("K")})
def batch_gemv_nt(x: Array, W: Array) -> Array:
    return np.einsum("bk,bnk->bn", x, W)


@batch_gemv_nt.twin
def _(g: Graph, x: Value, W: Value) -> Value:
    columns = g.Unsqueeze(x, [2])
    return g.Squeeze(g.MatMul(W, columns), [2])


@pattern("batch_gemv_tn", draw={"V": weights("K")})
def batch_gemv_tn(p: Array, V: Array) -> Array:
    return np.einsum("bk,bkn->bn", p, V)


@batch_gemv_tn.twin
def _(g: Graph, p: Value, V: Value) -> Value:
    rows = g.Unsqueeze(p, [1])
    return g.Squeeze(g.MatMul(rows, V), [1])
