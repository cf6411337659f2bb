"""Attention whose cost is linear in the number of tokens."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import activations, uniform
from edgekernelbench.suite.patterns.attention.inputs import lifted
from edgekernelbench.suite.patterns.functions import relu, softmax
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("relu_linear_attention")
def relu_linear_attention(q: Array, k: Array, v: Array) -> Array:
    q, k = relu(q), relu(k)
    numerator = q @ (k.transpose(0, 2, 1) @ v)  # the D x D state first, never L x L scores
    denominator = q @ k.sum(axis=1)[:, :, None]
    return numerator / (denominator + 1e-15)


@relu_linear_attention.twin
def _(g: Graph, q: Value, k: Value, v: Value, H: int, L: int, D: int) -> Value:
    q, k = g.Relu(q), g.Relu(k)
    ones = np.ones((H, L, 1))
    state = g.MatMul(g.Transpose(k, perm=[0, 2, 1]), g.Concat(v, g.value(ones), axis=2))
    both = g.MatMul(q, state)
    numerator, denominator = g.op("Split", both, [D, 1], outputs=2, axis=2)
    return g.Div(numerator, g.Add(denominator, 1e-15))


@pattern("separable_self_attention", draw={"qs": lifted(activations(), every=2)})
def separable_self_attention(qs: Array, k: Array, v: Array) -> Array:
    context = (softmax(qs) * k).sum(axis=2, keepdims=True)
    return relu(v) * context


@separable_self_attention.twin
def _(g: Graph, qs: Value, k: Value, v: Value) -> Value:
    weighted = g.Mul(k, g.Softmax(qs, axis=-1))
    return g.Mul(g.Relu(v), g.ReduceSum(weighted, [2], keepdims=1))


@pattern("cross_covariance_attention", draw={"tau": uniform(10.0, 40.0)})
def cross_covariance_attention(q: Array, k: Array, v: Array, tau: Array) -> Array:
    qn = q / np.sqrt((q**2).sum(axis=2, keepdims=True))
    kn = k / np.sqrt((k**2).sum(axis=2, keepdims=True))
    A = softmax(tau[:, None, None] * (qn @ kn.transpose(0, 2, 1)))
    return A @ v


@cross_covariance_attention.twin
def _(g: Graph, q: Value, k: Value, v: Value, tau: Array) -> Value:
    qn, kn = g.LpNormalization(q, axis=2, p=2), g.LpNormalization(k, axis=2, p=2)
    similarity = g.MatMul(qn, g.Transpose(kn, perm=[0, 2, 1]))
    return g.MatMul(g.Softmax(g.Mul(similarity, tau[:, None, None]), axis=-1), v)
