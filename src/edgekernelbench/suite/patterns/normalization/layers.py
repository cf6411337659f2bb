"""Normalisations by mean and variance that have learnt gains and shifts."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import activations, near, uniform
from edgekernelbench.suite.patterns.ranges import with_means
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("batch_norm_inference_nchw", draw={"var": uniform(0.5, 1.5), "gamma": near(1.0)})
def batch_norm_inference_nchw(
    x: Array, mean: Array, var: Array, gamma: Array, beta: Array, eps: float
) -> Array:
    mean, var, gamma, beta = (v[:, None, None] for v in (mean, var, gamma, beta))
    return (x - mean) / np.sqrt(var + eps) * gamma + beta


@batch_norm_inference_nchw.twin
def _(g: Graph, x: Value, mean: Array, var: Array, gamma: Array, beta: Array, eps: float) -> Value:
    return g.BatchNormalization(x, gamma, beta, mean, var, epsilon=eps)


@pattern("layer_norm_last", draw={"gamma": near(1.0)})
def layer_norm_last(x: Array, gamma: Array, beta: Array, eps: float) -> Array:
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    return centred / np.sqrt(variance + eps) * gamma + beta


@layer_norm_last.twin
def _(g: Graph, x: Value, gamma: Array, beta: Array, eps: float) -> Value:
    return g.LayerNormalization(x, gamma, beta, axis=-1, epsilon=eps)


CHANNELS = with_means(activations(), axes=(0,))


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


@pattern("group_norm_nchw", draw={"x": PLANES, "gamma": near(1.0)})
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


@pattern("instance_norm_nchw", draw={"x": PLANES, "gamma": near(1.0)})
def instance_norm_nchw(x: Array, gamma: Array, beta: Array, eps: float) -> Array:
    centred = x - x.mean(axis=2, keepdims=True)
    variance = (centred**2).mean(axis=2, keepdims=True)
    return centred / np.sqrt(variance + eps) * gamma[:, None] + beta[:, None]


@instance_norm_nchw.twin
def _(g: Graph, x: Value, gamma: Array, beta: Array, eps: float) -> Value:
    return g.InstanceNormalization(x, gamma, beta, epsilon=eps)


FRAMES = with_means(activations(), axes=(0, 1), spread=0.5)


@pattern("cumulative_layer_norm", draw={"x": FRAMES, "gamma": near(1.0)})
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
