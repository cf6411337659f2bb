"""Matrix products."""

from __future__ import annotations

from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("matmul_nt")
def matmul_nt(A: Array, B: Array) -> Array:
    return A @ B.T


@matmul_nt.twin
def _(g: Graph, A: Value, B: Array) -> Value:
    return g.MatMul(A, B.T)


@pattern("batch_matmul_nt")
def batch_matmul_nt(A: Array, B_: Array) -> Array:
    return A @ B_.transpose(0, 2, 1)


@batch_matmul_nt.twin
def _(g: Graph, A: Value, B_: Value) -> Value:
    return g.MatMul(A, g.Transpose(B_, perm=[0, 2, 1]))


@pattern("gemv_row_major")
def gemv_row_major(W: Array, x: Array) -> Array:
    return W @ x


@gemv_row_major.twin
def _(g: Graph, W: Array, x: Value) -> Value:
    return g.MatMul(x, W.T)
