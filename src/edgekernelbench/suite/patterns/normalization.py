"""Normalisations over rows or channels."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import activations, near
from edgekernelbench.suite.patterns.functions import softmax
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("layer_norm_last", draw={"gamma": near(1.0)})
def layer_norm_last(x: Array, gamma: Array, beta: Array, eps: float) -> Array:
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    return centred / np.sqrt(variance + eps) * gamma + beta


@layer_norm_last.twin
def _(g: Graph, x: Value, gamma: Array, beta: Array, eps: float) -> Value:
    return g.LayerNormalization(x, gamma, beta, axis=-1, epsilon=eps)


@pattern("softmax_last", draw={"x": activations(2.0, spread=1.0)})
def softmax_last(x: Array) -> Array:
    return softmax(x)


@softmax_last.twin
def _(g: Graph, x: Value) -> Value:
    return g.Softmax(x, axis=1)
