"""Normalisations over rows or channels."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import activations
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("softmax_last", draw={"x": activations(2.0, spread=1.0)})
def softmax_last(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@softmax_last.twin
def _(g: Graph, x: Value) -> Value:
    return g.Softmax(x, axis=1)
