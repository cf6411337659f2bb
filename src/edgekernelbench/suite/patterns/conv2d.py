"""Dense two-dimensional convolutions."""

from __future__ import annotations

from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import conv2d, pad_hw
from edgekernelbench.suite.twin import Graph, Value


@pattern("conv2d_nchw")
def conv2d_nchw(x: Array, w: Array, stride: int, pad_h: int, pad_w: int) -> Array:
    return conv2d(pad_hw(x, pad_h, pad_h, pad_w, pad_w), w, stride)


@conv2d_nchw.twin
def _(g: Graph, x: Value, w: Array, stride: int, pad_h: int, pad_w: int) -> Value:
    return g.Conv(x, w, strides=[stride, stride], pads=[pad_h, pad_w, pad_h, pad_w])
