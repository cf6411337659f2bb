"""Reductions, prefix sums and selections along one axis, or over everything."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw, activations, on_grid
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("reduce_sum_last")
def reduce_sum_last(x: Array) -> Array:
    return x.sum(axis=1)


@reduce_sum_last.twin
def _(g: Graph, x: Value) -> Value:
    return g.ReduceSum(x, [1], keepdims=0)


@pattern("reduce_max_axis0")
def reduce_max_axis0(x: Array) -> Array:
    return x.max(axis=0)


@reduce_max_axis0.twin
def _(g: Graph, x: Value) -> Value:
    return g.ReduceMax(x, [0], keepdims=0)


def tied_peaks(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Rows on a grid of 1/8; in every other one the three largest elements are equal."""
    values = on_grid(activations(), 1 / 8)(draw, spec)
    third = np.partition(values[::2], -3, axis=1)[:, -3:-2]
    values[::2] = np.minimum(values[::2], third)
    return values


@pattern("argmax_last", draw={"x": tied_peaks})
def argmax_last(x: Array) -> Array:
    return x.argmax(axis=1)  # the lowest index on ties


@argmax_last.twin
def _(g: Graph, x: Value) -> Value:
    return g.cast(g.ArgMax(x, axis=1, keepdims=0, select_last_index=0), DType.S32)


@pattern("argmax_channel_nchw", draw={"x": on_grid(activations(), 1 / 8)})
def argmax_channel_nchw(x: Array) -> Array:
    return x.argmax(axis=0)  # the lowest index on ties


@argmax_channel_nchw.twin
def _(g: Graph, x: Value) -> Value:
    return g.cast(g.ArgMax(x, axis=0, keepdims=0, select_last_index=0), DType.S32)


def rounded_down(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Activations that a cheaper format rounds towards zero, one and all.

    Errors of both signs would cancel in a long sum, and a cheaper precision pass. The level
    differs from draw to draw, as sums of numbers of one level are much alike.
    """
    level = 2 ** draw.rng(spec.name).uniform(-4, -2)
    mantissa, exponent = np.frexp(level * activations()(draw, spec))
    tf32 = np.trunc(mantissa * 2**11)
    return np.ldexp((tf32 + 0.4 * np.sign(mantissa)) / 2**11, exponent)


@pattern("reduce_sumsq_all", draw={"x": rounded_down})
def reduce_sumsq_all(x: Array) -> Array:
    return (x**2).sum(keepdims=True)


@reduce_sumsq_all.twin
def _(g: Graph, x: Value) -> Value:
    return g.ReduceSumSquare(x, [0], keepdims=1)


@pattern("cumsum_last")
def cumsum_last(x: Array) -> Array:
    return x.cumsum(axis=1)


@cumsum_last.twin
def _(g: Graph, x: Value) -> Value:
    return g.CumSum(x, 1)


@pattern("min_max_all")
def min_max_all(x: Array) -> tuple[Array, Array]:
    return x.min(keepdims=True), x.max(keepdims=True)


@min_max_all.twin
def _(g: Graph, x: Value) -> tuple[Value, Value]:
    return g.ReduceMin(x, [0], keepdims=1), g.ReduceMax(x, [0], keepdims=1)


@pattern("topk_last", draw={"x": on_grid(activations(), 1 / 8)})
def topk_last(x: Array, K: int) -> tuple[Array, Array]:
    indices = np.argsort(-x, axis=1, kind="stable")[:, :K]  # the lowest index first on ties
    return np.take_along_axis(x, indices, axis=1), indices


@topk_last.twin
def _(g: Graph, x: Value, K: int) -> tuple[Value, Value]:
    values, indices = g.op("TopK", x, [K], outputs=2, axis=1)
    return values, g.cast(indices, DType.S32)
