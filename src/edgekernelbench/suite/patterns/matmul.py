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
