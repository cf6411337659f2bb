"""Linear layers: weights, and a bias."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("linear_bias")
def linear_bias(x: Array, W: Array, b: Array) -> Array:
    return x @ W.T + b


@linear_bias.twin
def _(g: Graph, x: Value, W: Array, b: Array) -> Value:
    return g.Gemm(x, W, b, transB=1)


@pattern("grouped_linear", draw={"W": weights("Ki")})
def grouped_linear(x: Array, W: Array, b: Array) -> Array:
    M, _ = x.shape
    G, _, Ki = W.shape
    y = np.einsum("mgk,gnk->mgn", x.reshape(M, G, Ki), W)
    return y.reshape(M, -1) + b


@grouped_linear.twin
def _(g: Graph, x: Value, W: Array, b: Array, M: int, G: int, Ki: int, No: int) -> Value:
    groups = g.Transpose(g.Reshape(x, [M, G, Ki]), perm=[1, 0, 2])
    y = g.MatMul(groups, W.transpose(0, 2, 1))
    return g.Add(g.Reshape(g.Transpose(y, perm=[1, 0, 2]), [M, G * No]), b)
