"""Activation functions on their own."""

from __future__ import annotations

import math

from scipy.special import erf

from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("gelu_erf")
def gelu_erf(x: Array) -> Array:
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


@gelu_erf.twin
def _(g: Graph, x: Value) -> Value:
    return g.Mul(g.Mul(x, g.Add(g.Erf(g.Div(x, math.sqrt(2))), 1.0)), 0.5)
