"""Activations that need an exponential, an error function or a sine."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erf

from edgekernelbench.suite.draw import activations, uniform
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.ranges import with_outliers
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value

FAR = with_outliers(activations())


@pattern("sigmoid", draw={"x": with_outliers(activations(2.0), every=61)})
def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


@sigmoid.twin
def _(g: Graph, x: Value) -> Value:
    return g.Sigmoid(x)


@pattern("silu", draw={"x": FAR})
def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


@silu.twin
def _(g: Graph, x: Value) -> Value:
    return blocks.silu(g, x)


@pattern("gelu_erf")
def gelu_erf(x: Array) -> Array:
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


@gelu_erf.twin
def _(g: Graph, x: Value) -> Value:
    return g.Mul(g.Mul(x, g.Add(g.Erf(g.Div(x, math.sqrt(2))), 1.0)), 0.5)


@pattern("gelu_tanh", draw={"x": FAR})
def gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


@gelu_tanh.twin
def _(g: Graph, x: Value) -> Value:
    return g.Gelu(x, approximate="tanh")


@pattern("softplus", draw={"x": FAR})
def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log(1 + np.exp(-abs(x)))


@softplus.twin
def _(g: Graph, x: Value) -> Value:
    return g.Softplus(x)


@pattern("snake", draw={"a": uniform(0.5, 2)})
def snake(x: Array, a: Array) -> Array:
    a = a[:, None]
    return x + np.sin(a * x) ** 2 / (a + 1e-9)


@snake.twin
def _(g: Graph, x: Value, a: Array) -> Value:
    a = a[:, None]
    wave = g.Sin(g.Mul(x, a))
    return g.Add(x, g.Mul(g.Mul(wave, wave), 1 / (a + 1e-9)))


@pattern("glu_channel", draw={"x": FAR})
def glu_channel(x: Array, C: int) -> Array:
    return x[:C] * sigmoid(x[C:])


@glu_channel.twin
def _(g: Graph, x: Value) -> Value:
    values, gates = g.op("Split", x, outputs=2, axis=0, num_outputs=2)
    return g.Mul(values, g.Sigmoid(gates))
