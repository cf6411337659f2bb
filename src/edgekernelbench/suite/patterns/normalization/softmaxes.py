"""Softmax and its logarithm."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import activations
from edgekernelbench.suite.patterns.functions import softmax
from edgekernelbench.suite.patterns.ranges import with_far_slices
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value

LOGITS = activations(2.0, spread=1.0)


@pattern("softmax_last", draw={"x": with_far_slices(LOGITS, axis=1)})
def softmax_last(x: Array) -> Array:
    return softmax(x)


@softmax_last.twin
def _(g: Graph, x: Value) -> Value:
    return g.Softmax(x, axis=1)


@pattern("softmax_channel_nchw", draw={"x": with_far_slices(LOGITS, axis=1)})
def softmax_channel_nchw(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@softmax_channel_nchw.twin
def _(g: Graph, x: Value) -> Value:
    return g.Softmax(x, axis=1)


@pattern("log_softmax_last", draw={"x": with_far_slices(LOGITS, axis=1)})
def log_softmax_last(x: Array) -> Array:
    shifted = x - x.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


@log_softmax_last.twin
def _(g: Graph, x: Value) -> Value:
    return g.LogSoftmax(x, axis=1)
