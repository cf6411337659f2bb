"""Blocks that pool their input on the way: gates and pyramids."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import activations
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import sigmoid, silu
from edgekernelbench.suite.patterns.ranges import with_means
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import max_pool, pad_hw, pointwise
from edgekernelbench.suite.twin import Graph, Value


@pattern("squeeze_excite_nchw", draw={"x": with_means(activations(), axes=(2, 3), spread=1.5)})
def squeeze_excite_nchw(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    pooled = x.mean(axis=(2, 3))[0]
    s = sigmoid(w2 @ silu(w1 @ pooled + b1) + b2)
    return x * s[:, None, None]


@squeeze_excite_nchw.twin
def _(g: Graph, x: Value, w1: Array, b1: Array, w2: Array, b2: Array) -> Value:
    squeezed = blocks.silu(g, blocks.conv1x1(g, g.GlobalAveragePool(x), w1, b1))
    return g.Mul(x, g.Sigmoid(blocks.conv1x1(g, squeezed, w2, b2)))


@pattern("sppf_nchw")
def sppf_nchw(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    a = silu(pointwise(x, w1, b1))
    pyramid = [a]
    for _ in range(3):
        bordered = pad_hw(pyramid[-1], 2, 2, 2, 2, -np.inf)
        pyramid.append(max_pool(bordered, 5, 5))
    return silu(pointwise(np.concatenate(pyramid, axis=1), w2, b2))


@sppf_nchw.twin
def _(g: Graph, x: Value, w1: Array, b1: Array, w2: Array, b2: Array) -> Value:
    pyramid = [blocks.silu(g, blocks.conv1x1(g, x, w1, b1))]
    for _ in range(3):
        pool = g.MaxPool(pyramid[-1], kernel_shape=[5, 5], pads=[2, 2, 2, 2])
        pyramid.append(pool)
    return blocks.silu(g, blocks.conv1x1(g, g.Concat(*pyramid, axis=1), w2, b2))
