"""Signal processing."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def q15_taps(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Taps at which full-scale noise comes out near full scale, so that some samples saturate."""
    gain = 27000 / np.sqrt(spec.size)
    taps = draw.rng(spec.name).normal(0, gain, spec.shape)
    return np.clip(np.rint(taps), -32768, 32767).astype(np.int64)


@pattern(
    "fir_q15",
    draw={"h": q15_taps},
    no_twin="ONNX has no convolution of 16-bit integers with a 64-bit sum",
)
def fir_q15(x: Array, h: Array) -> Array:
    acc = np.zeros(len(x), np.int64)
    for k in range(len(h)):
        acc[k:] += h[k] * x[: len(x) - k]
    return np.clip(acc >> 15, -32768, 32767)


def mel_bank(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Triangles [bins, bands] over band edges that lie ever wider apart, each with a gain."""
    bins, bands = spec.shape
    rng = draw.rng(spec.name)
    widths = np.geomspace(1.0, 8.0, bands + 1) * rng.uniform(0.9, 1.1, bands + 1)
    edges = np.concatenate([[0.0], np.cumsum(widths)])
    edges *= (bins - 1) / edges[-1]
    k = np.arange(bins)[:, None]
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    rise, fall = (k - low) / (centre - low), (high - k) / (high - centre)
    nearest = np.abs(k - centre) <= 0.5  # a narrow band still sees one bin
    triangle = np.maximum(np.minimum(rise, fall), 0.05 * nearest)
    return triangle * 2 ** rng.uniform(-1, 1, bands)


@pattern("log_mel_filterbank", draw={"fb": mel_bank})
def log_mel_filterbank(X: Array, fb: Array) -> Array:
    power = (X**2).sum(axis=2)
    return np.log(np.maximum(power @ fb, 1e-10))


@log_mel_filterbank.twin
def _(g: Graph, X: Value, fb: Array) -> Value:
    power = g.ReduceSum(g.Mul(X, X), [2], keepdims=0)
    return g.Log(g.Max(g.MatMul(power, fb), 1e-10))
