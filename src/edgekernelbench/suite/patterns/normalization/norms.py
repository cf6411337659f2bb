"""Normalisations by root mean square, Euclidean norm and standard deviation."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations, near
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.ranges import with_faint_slices
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("rms_norm", draw={"x": with_faint_slices(activations(), axes=(1,)), "g": near(1.0)})
def rms_norm(x: Array, g: Array, eps: float) -> Array:
    return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + eps) * g


@rms_norm.twin
def _(graph: Graph, x: Value, g: Array, eps: float) -> Value:
    return blocks.rms_norm(graph, x, g, eps)


def _one_row_of_zeros(draw: Draw, spec: TensorSpec) -> np.ndarray:
    values = activations()(draw, spec)
    values[draw.rng(spec.name).integers(len(values))] = 0  # its norm is 0: only eps is left
    return values


@pattern("l2_normalize_last", draw={"x": _one_row_of_zeros})
def l2_normalize_last(x: Array, eps: float) -> Array:
    norm = np.sqrt((x**2).sum(axis=1, keepdims=True))
    return x / np.maximum(norm, eps)


@l2_normalize_last.twin
def _(g: Graph, x: Value, eps: float) -> Value:
    return g.Div(x, g.Max(g.ReduceL2(x, [1], keepdims=1), eps))


def _features(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Each column, which is one feature over time, at a scale and around a mean of its own."""
    rng = draw.rng(spec.name)
    columns = spec.shape[1]
    scale, mean = 2.0 ** rng.uniform(-1.5, 1.5, columns), rng.standard_normal(columns)
    return mean + scale * rng.standard_normal(spec.shape)


@pattern("standardize_time_axis", draw={"x": _features})
def standardize_time_axis(x: Array) -> Array:
    return (x - x.mean(axis=0)) / (x.std(axis=0, ddof=1) + 1e-5)


@standardize_time_axis.twin
def _(g: Graph, x: Value, L: int) -> Value:
    centred = g.Sub(x, g.ReduceMean(x, [0], keepdims=1))
    variance = g.Div(g.ReduceSum(g.Mul(centred, centred), [0], keepdims=1), float(L - 1))
    return g.Div(centred, g.Add(g.Sqrt(variance), 1e-5))
