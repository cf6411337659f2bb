"""Normalisations by mean and variance that have learnt gains and shifts."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations, near
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.ranges import (
    batch_statistics,
    faint_levels,
    with_faint_slices,
    with_means,
)
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("batch_norm_inference_nchw")
def batch_norm_inference_nchw(
    x: Array, mean: Array, var: Array, gamma: Array, beta: Array, eps: float
) -> Array:
    mean, var, gamma, beta = (v[:, None, None] for v in (mean, var, gamma, beta))
    return (x - mean) / np.sqrt(var + eps) * gamma + beta


batch_norm_inference_nchw.inputs(batch_statistics())


@batch_norm_inference_nchw.twin
def _(g: Graph, x: Value, mean: Array, var: Array, gamma: Array, beta: Array, eps: float) -> Value:
    return g.BatchNormalization(x, gamma, beta, mean, var, epsilon=eps)


ROWS = with_faint_slices(activations(), axes=(1,))


@pattern("layer_norm_last", draw={"x": ROWS, "gamma": near(1.0)})
def layer_norm_last(x: Array, gamma: Array, beta: Array, eps: float) -> Array:
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    return centred / np.sqrt(variance + eps) * gamma + beta


@layer_norm_last.twin
def _(g: Graph, x: Value, gamma: Array, beta: Array, eps: float) -> Value:
    return g.LayerNormalization(x, gamma, beta, axis=-1, epsilon=eps)


CHANNELS = with_faint_slices(with_means(activations(), axes=(0,)), axes=(0,))


@pattern("layer_norm_channel_nchw", draw={"x": CHANNELS, "gamma": near(1.0)})
def layer_norm_channel_nchw(x: Array, gamma: Array, beta: Array, eps: float) -> Array:
    centred = x - x.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    return centred / np.sqrt(variance + eps) * gamma[:, None] + beta[:, None]


@layer_norm_channel_nchw.twin
def _(g: Graph, x: Value, gamma: Array, beta: Array, eps: float) -> Value:
    pixels = g.Transpose(x, perm=[1, 0])
    y = g.LayerNormalization(pixels, gamma, beta, axis=-1, epsilon=eps)
    return g.Transpose(y, perm=[1, 0])


PLANES = with_means(activations(), axes=(2,))


def groups(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Planes, faint by whole groups of them."""
    values = PLANES(draw, spec)
    grouped = spec.model_copy(update={"shape": (len(values), draw.size("G"), -1)})
    faint = with_faint_slices(lambda _, wanted: values.reshape(wanted.shape), axes=(2,))
    return faint(draw, grouped).reshape(spec.shape)


@pattern("group_norm_nchw", draw={"x": groups, "gamma": near(1.0)})
def group_norm_nchw(x: Array, gamma: Array, beta: Array, G: int, eps: float) -> Array:
    N, C, HW = x.shape
    groups = x.reshape(N, G, -1)
    centred = groups - groups.mean(axis=2, keepdims=True)
    variance = (centred**2).mean(axis=2, keepdims=True)
    y = (centred / np.sqrt(variance + eps)).reshape(N, C, HW)
    return y * gamma[:, None] + beta[:, None]


@group_norm_nchw.twin
def _(g: Graph, x: Value, gamma: Array, beta: Array, G: int, eps: float) -> Value:
    return g.GroupNormalization(x, gamma, beta, epsilon=eps, num_groups=G)


@pattern(
    "instance_norm_nchw",
    draw={"x": with_faint_slices(PLANES, axes=(2,)), "gamma": near(1.0)},
)
def instance_norm_nchw(x: Array, gamma: Array, beta: Array, eps: float) -> Array:
    centred = x - x.mean(axis=2, keepdims=True)
    variance = (centred**2).mean(axis=2, keepdims=True)
    return centred / np.sqrt(variance + eps) * gamma[:, None] + beta[:, None]


@instance_norm_nchw.twin
def _(g: Graph, x: Value, gamma: Array, beta: Array, eps: float) -> Value:
    return g.InstanceNormalization(x, gamma, beta, epsilon=eps)


FRAMES = with_means(activations(), axes=(0, 1), spread=0.5)


def faint_start(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """An eighth of the frames, before the others, so faint that ``eps`` counts."""
    values = FRAMES(draw, spec)
    first = values[:, : max(1, spec.shape[1] // 8)]
    level = faint_levels(draw, spec.name, (1,), float(draw.sizes["eps"]))
    first *= level / np.sqrt((first**2).mean())
    return values


@pattern("cumulative_layer_norm", draw={"x": faint_start, "gamma": near(1.0)})
def cumulative_layer_norm(x: Array, gamma: Array, beta: Array, eps: float) -> Array:
    C, L = x.shape
    count = C * (1 + np.arange(L))
    mean = x.sum(axis=0).cumsum() / count
    variance = (x**2).sum(axis=0).cumsum() / count - mean**2
    return (x - mean) / np.sqrt(variance + eps) * gamma[:, None] + beta[:, None]


@cumulative_layer_norm.twin
def _(g: Graph, x: Value, gamma: Array, beta: Array, C: int, L: int, eps: float) -> Value:
    count = C * (1.0 + np.arange(L))
    time = np.int64(0)
    mean = g.Div(g.CumSum(g.ReduceSum(x, [0], keepdims=0), time), count)
    square = g.CumSum(g.ReduceSum(g.Mul(x, x), [0], keepdims=0), time)
    variance = g.Sub(g.Div(square, count), g.Mul(mean, mean))
    y = g.Div(g.Sub(x, mean), g.Sqrt(g.Add(variance, eps)))
    return g.Add(g.Mul(y, gamma[:, None]), beta[:, None])
