"""Pooling."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import max_pool, pad_hw
from edgekernelbench.suite.twin import Graph, Value


@pattern("max_pool2d_nchw")
def max_pool2d_nchw(x: Array, R: int, S: int, stride: int, pad: int) -> Array:
    return max_pool(pad_hw(x, pad, pad, pad, pad, -np.inf), R, S, stride)


@max_pool2d_nchw.twin
def _(g: Graph, x: Value, R: int, S: int, stride: int, pad: int) -> Value:
    return g.MaxPool(x, kernel_shape=[R, S], strides=[stride, stride], pads=[pad, pad, pad, pad])
