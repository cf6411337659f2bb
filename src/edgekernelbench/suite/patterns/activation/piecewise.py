"""Activations made of straight pieces and parabolas."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.functions import hswish
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("relu")
def relu(x: Array) -> Array:
    return np.maximum(x, 0)


@relu.twin
def _(g: Graph, x: Value) -> Value:
    return g.Relu(x)


def _around_bounds(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """As wide as the bounds are apart, so that both are met often."""
    return activations(float(draw.sizes["hi"] - draw.sizes["lo"]), spread=1.0)(draw, spec)


@pattern("clip", draw={"x": _around_bounds})
def clip(x: Array, lo: float, hi: float) -> Array:
    return np.minimum(np.maximum(x, lo), hi)


@clip.twin
def _(g: Graph, x: Value, lo: float, hi: float) -> Value:
    return g.Clip(x, float(lo), float(hi))


@pattern("prelu_nchw")
def prelu_nchw(x: Array, a: Array) -> Array:
    return np.where(x >= 0, x, a[:, None] * x)


@prelu_nchw.twin
def _(g: Graph, x: Value, a: Array) -> Value:
    return g.PRelu(x, a[:, None])


@pattern("hard_swish", draw={"x": activations(3.0)})
def hard_swish(x: Array) -> Array:
    return hswish(x)


@hard_swish.twin
def _(g: Graph, x: Value) -> Value:
    return g.HardSwish(x)
