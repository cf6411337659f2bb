"""Products of matrices of a special form or over another algebra."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, near, uniform
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("triangular_matmul")
def triangular_matmul(L_: Array, B: Array) -> Array:
    return np.tril(L_) @ B


@triangular_matmul.twin
def _(g: Graph, L_: Value, B: Value) -> Value:
    return g.MatMul(g.Trilu(L_, upper=0), B)


def edge_costs(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Uniform in [0, 10), each row at a scale of its own."""
    rng = draw.rng(spec.name)
    return rng.uniform(0, 10, spec.shape) * 2 ** rng.uniform(-1, 1, (spec.shape[0], 1))


# Some costs are negative, so that results on both sides of zero occur.
@pattern("min_plus_matmul", draw={"A": edge_costs, "B": uniform(-3, 7)})
def min_plus_matmul(A: Array, B: Array) -> Array:
    C = np.full((A.shape[0], B.shape[1]), np.inf)
    for k in range(A.shape[1]):
        C = np.minimum(C, A[:, k, None] + B[k])
    return C


@min_plus_matmul.twin
def _(g: Graph, A: Value, B: Value) -> Value:
    sums = g.Add(g.Unsqueeze(A, [2]), g.Unsqueeze(B, [0]))
    return g.ReduceMin(sums, [1], keepdims=0)


# Away from zero: there, errors of the inputs would average out over many features.
FEATURES = near(2.0, 1.0)


@pattern("pairwise_sqdist", draw={"a": FEATURES, "b": FEATURES})
def pairwise_sqdist(a: Array, b: Array) -> Array:
    d = np.zeros((len(a), len(b)))
    for c in range(a.shape[1]):
        d += (a[:, c, None] - b[:, c]) ** 2
    return d


@pairwise_sqdist.twin
def _(g: Graph, a: Value, b: Value) -> Value:
    difference = g.Sub(g.Unsqueeze(a, [1]), g.Unsqueeze(b, [0]))
    return g.ReduceSum(g.Mul(difference, difference), [2], keepdims=0)
