"""Reductions over one axis."""

from __future__ import annotations

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import activations, on_grid
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("reduce_max_axis0")
def reduce_max_axis0(x: Array) -> Array:
    return x.max(axis=0)


@reduce_max_axis0.twin
def _(g: Graph, x: Value) -> Value:
    return g.ReduceMax(x, [0], keepdims=0)


@pattern("argmax_channel_nchw", draw={"x": on_grid(activations(), 1 / 8)})
def argmax_channel_nchw(x: Array) -> Array:
    return x.argmax(axis=0)  # the lowest index on ties


@argmax_channel_nchw.twin
def _(g: Graph, x: Value) -> Value:
    return g.cast(g.ArgMax(x, axis=0, keepdims=0, select_last_index=0), DType.S32)
