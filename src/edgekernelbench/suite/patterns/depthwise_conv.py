"""Depthwise convolutions."""

from __future__ import annotations

from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import depthwise, pad_hw
from edgekernelbench.suite.twin import Graph, Value


@pattern("depthwise_conv2d_nchw")
def depthwise_conv2d_nchw(x: Array, w: Array, stride: int, pad: int) -> Array:
    return depthwise(pad_hw(x, pad, pad, pad, pad), w, stride)


@depthwise_conv2d_nchw.twin
def _(g: Graph, x: Value, w: Array, stride: int, pad: int) -> Value:
    return blocks.depthwise(g, x, w, None, stride, (pad, pad, pad, pad))
