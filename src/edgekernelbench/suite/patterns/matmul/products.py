"""Products of two matrices, single and in batches, in the layouts NN, NT and TN."""

from __future__ import annotations

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("matmul_nn", draw={"B": weights("K")})
def matmul_nn(A: Array, B: Array) -> Array:
    return A @ B


@matmul_nn.twin
def _(g: Graph, A: Value, B: Value) -> Value:
    return g.MatMul(A, B)


@pattern("matmul_nt")
def matmul_nt(A: Array, B: Array) -> Array:
    return A @ B.T


@matmul_nt.twin
def _(g: Graph, A: Value, B: Array) -> Value:
    return g.MatMul(A, B.T)


@pattern("matmul_tn", draw={"B": weights("K")})
def matmul_tn(A: Array, B: Array) -> Array:
    return A.T @ B


@matmul_tn.twin
def _(g: Graph, A: Value, B: Value) -> Value:
    return g.MatMul(g.Transpose(A, perm=[1, 0]), B)


@pattern("batch_matmul_nn", draw={"B_": weights("K")})
def batch_matmul_nn(A: Array, B_: Array) -> Array:
    return A @ B_


@batch_matmul_nn.twin
def _(g: Graph, A: Value, B_: Value) -> Value:
    return g.MatMul(A, B_)


@pattern("batch_matmul_nt")
def batch_matmul_nt(A: Array, B_: Array) -> Array:
    return A @ B_.transpose(0, 2, 1)


@batch_matmul_nt.twin
def _(g: Graph, A: Value, B_: Value) -> Value:
    return g.MatMul(A, g.Transpose(B_, perm=[0, 2, 1]))
