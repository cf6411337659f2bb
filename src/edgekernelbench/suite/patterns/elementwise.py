"""Elementwise arithmetic."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw, activations
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("add")
def add(a: Array, b: Array) -> Array:
    return a + b


@add.twin
def _(g: Graph, a: Value, b: Value) -> Value:
    return g.Add(a, b)


@pattern("scale_channel_nchw")
def scale_channel_nchw(x: Array, s: Array) -> Array:
    return x * s[:, :, None]


@scale_channel_nchw.twin
def _(g: Graph, x: Value, s: Value) -> Value:
    return g.Mul(x, g.Unsqueeze(s, [2]))


def _energies(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Between 0 and 10 at many scales; some zero or negative, where the floor counts."""
    rng = draw.rng(spec.name)
    levels = 10 * rng.uniform(size=spec.shape) ** 4
    return np.where(rng.random(spec.shape) < 0.05, rng.choice([0.0, -1.0], spec.shape), levels)


@pattern("log_clamp", draw={"x": _energies})
def log_clamp(x: Array, floor: float) -> Array:
    return np.log(np.maximum(x, floor))


@log_clamp.twin
def _(g: Graph, x: Value, floor: float) -> Value:
    return g.Log(g.Clip(x, floor))


@pattern("complex_multiply", draw={"a": activations(spread=0.6), "b": activations(spread=0.6)})
def complex_multiply(a: Array, b: Array) -> Array:
    ar, ai = a.T
    br, bi = b.T
    return np.stack([ar * br - ai * bi, ar * bi + ai * br], axis=1)


@complex_multiply.twin
def _(g: Graph, a: Value, b: Value) -> Value:
    ar, ai = g.op("Split", a, outputs=2, axis=1, num_outputs=2)
    br, bi = g.op("Split", b, outputs=2, axis=1, num_outputs=2)
    real = g.Sub(g.Mul(ar, br), g.Mul(ai, bi))
    return g.Concat(real, g.Add(g.Mul(ar, bi), g.Mul(ai, br)), axis=1)


@pattern("complex_magnitude")
def complex_magnitude(x: Array) -> Array:
    re, im = x.T
    return np.sqrt(re**2 + im**2)


@complex_magnitude.twin
def _(g: Graph, x: Value) -> Value:
    return g.ReduceL2(x, [1], keepdims=0)


def _between_halves(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Every eighth number lies in the middle between two neighbours in float16."""
    values = activations()(draw, spec)
    low = values[::8].astype(np.float16)
    values[::8] = (low.astype(np.float32) + np.nextafter(low, np.float16(4)).astype(np.float32)) / 2
    return values


@pattern(
    "cast_f32_f16",
    draw={"x": _between_halves},
    exempt={"echo": "the control casts the input as well"},
)
def cast_f32_f16(x: Array) -> Array:
    return x.astype(np.float16)  # rounds half to even


@cast_f32_f16.twin
def _(g: Graph, x: Value) -> Value:
    return g.cast(x, DType.F16)


def _shifted_positions(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Steps of 1 around zero, as relative positions are, from a random fraction on."""
    (count,) = spec.shape
    rng = draw.rng(spec.name)
    return np.arange(count) - count // 2 + rng.integers(-16 * 32, 16 * 32) / 32


@pattern("sinusoidal_position_embedding", draw={"pos": _shifted_positions})
def sinusoidal_position_embedding(pos: Array, D: int) -> Array:
    f = np.exp(-np.log(10000) * np.arange(D // 2) / (D // 2 - 1))
    angles = pos[:, None] * f
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


@sinusoidal_position_embedding.twin
def _(g: Graph, pos: Value, D: int) -> Value:
    f = np.exp(-np.log(10000) * np.arange(D // 2) / (D // 2 - 1))
    angles = g.Mul(g.Unsqueeze(pos, [1]), f)
    return g.Concat(g.Sin(angles), g.Cos(angles), axis=1)
