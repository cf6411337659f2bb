"""Recurrences over time."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.functions import sigmoid
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def step_sizes(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Positive step sizes of a state-space model: softplus of normal numbers around -3."""
    return np.log1p(np.exp(draw.rng(spec.name).normal(-3, 1, spec.shape)))


def decay_rates(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Negative rates around -1, -2, ... along the state, so that every scan decays."""
    rates = -(1.0 + np.arange(spec.shape[-1]))
    return rates * 2 ** draw.rng(spec.name).uniform(-0.5, 0.5, spec.shape)


@pattern(
    "mamba_selective_scan",
    draw={"dt": step_sizes, "A": decay_rates},
    no_twin="a scan with an exponential decay; ONNX has it only as a Scan over a subgraph",
)
def mamba_selective_scan(x: Array, dt: Array, A: Array, B: Array, C: Array, D: Array) -> Array:
    h = np.zeros(A.shape)  # state [Di, Ns]
    y = np.zeros(x.shape)
    for t in range(len(x)):
        h = np.exp(dt[t][:, None] * A) * h + (dt[t] * x[t])[:, None] * B[t]
        y[t] = h @ C[t] + D * x[t]
    return y


@pattern("lstm_sequence", draw={"Wx": weights("I", 2.0), "Wh": weights("Hd", 1.5)})
def lstm_sequence(x: Array, Wx: Array, Wh: Array, b: Array) -> Array:
    h = c = np.zeros(Wh.shape[1])
    steps = []
    for x_t in x:
        i, f, g, o = np.split(Wx @ x_t + Wh @ h + b, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        steps.append(h)
    return np.array(steps)


@lstm_sequence.twin
def _(g: Graph, x: Value, Wx: Array, Wh: Array, b: Array, Hd: int) -> Value:
    def iofc(gates: Array) -> Array:
        i, f, c, o = np.split(gates, 4)
        return np.concatenate([i, o, f, c])[None]

    bias = np.concatenate([iofc(b), np.zeros_like(b)[None]], axis=1)
    steps = g.LSTM(g.Unsqueeze(x, [1]), iofc(Wx), iofc(Wh), bias, hidden_size=Hd)
    return g.Squeeze(steps, [1, 2])
