"""Reductions, prefix sums and selections along one axis, or over everything."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw, Generator, activations, on_grid
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("reduce_sum_last")
def reduce_sum_last(x: Array) -> Array:
    return x.sum(axis=1)


@reduce_sum_last.twin
def _(g: Graph, x: Value) -> Value:
    return g.ReduceSum(x, [1], keepdims=0)


def columns_of_differing_scale(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """No row is so small throughout that it could be skipped."""
    turned = spec.model_copy(update={"shape": spec.shape[::-1]})
    return activations()(draw, turned).T


@pattern("reduce_max_axis0", draw={"x": columns_of_differing_scale})
def reduce_max_axis0(x: Array) -> Array:
    return x.max(axis=0)


@reduce_max_axis0.twin
def _(g: Graph, x: Value) -> Value:
    return g.ReduceMax(x, [0], keepdims=0)


def contested_peaks(axis: int) -> Generator:
    """Every other slice along ``axis`` has its three largest elements equal; in all of them
    one before the first largest, if there is any, is lower by 2**-12.

    A copy in a cheaper format takes that one for the largest.
    """
    step = 2.0**-12

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        values = on_grid(activations(), step)(draw, spec)
        rows = np.moveaxis(values, axis, -1)
        third = np.partition(rows[::2], -3, axis=-1)[:, -3:-2]
        rows[::2] = np.minimum(rows[::2], third)
        first = rows.argmax(axis=-1)
        place = (draw.rng(spec.name).spawn(1)[0].random(first.shape) * first).astype(int)
        every = np.arange(len(rows))
        lower = rows[every, first] - step
        rows[every, place] = np.where(first > 0, lower, rows[every, place])
        return values

    return generate


@pattern("argmax_last", draw={"x": contested_peaks(axis=1)})
def argmax_last(x: Array) -> Array:
    return x.argmax(axis=1)  # the lowest index on ties


@argmax_last.twin
def _(g: Graph, x: Value) -> Value:
    return g.cast(g.ArgMax(x, axis=1, keepdims=0, select_last_index=0), DType.S32)


@pattern("argmax_channel_nchw", draw={"x": contested_peaks(axis=0)})
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
