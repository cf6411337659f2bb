"""Counting grey levels, and what is made of the counts."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def underexposed(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Dark levels, many of them at the floor of the sensor and a few at its ceiling."""
    rng = draw.rng(spec.name)
    middle, floor = rng.integers(50, 90), rng.integers(20, 40)
    levels = middle + 30 * rng.standard_normal(spec.shape)
    bright = rng.random(spec.shape) < 0.1
    levels += np.where(bright, rng.exponential(60, spec.shape), 0)
    return np.clip(np.rint(levels), floor, 255).astype(int)


@pattern("histogram_u8", draw={"x": underexposed})
def histogram_u8(x: Array) -> Array:
    return np.bincount(x, minlength=256)


def count_levels(g: Graph, x: Value) -> Value:
    """[L] of u8 to [256] of s32."""
    ones = g.Expand(np.array([1], np.int32), g.Shape(x))
    none = np.zeros(256, np.int32)
    return g.ScatterElements(none, g.cast(x, DType.S32), ones, axis=0, reduction="add")


@histogram_u8.twin
def _(g: Graph, x: Value) -> Value:
    return count_levels(g, x)


@pattern("histogram_equalization_u8", draw={"x": underexposed})
def histogram_equalization_u8(x: Array) -> Array:
    cdf = np.bincount(x.reshape(-1), minlength=256).cumsum()
    c0 = cdf[cdf > 0].min()
    Dn = max(x.size - c0, 1)
    lut = (510 * np.maximum(cdf - c0, 0) + Dn) // (2 * Dn)
    return lut[x]


@histogram_equalization_u8.twin
def _(g: Graph, x: Value, H: int, W: int) -> Value:
    pixels = np.int32(H * W)
    cdf = g.CumSum(count_levels(g, g.Reshape(x, [-1])), np.int32(0))
    reached = g.Greater(cdf, np.int32(0))
    c0 = g.ReduceMin(g.Where(reached, cdf, pixels), [0], keepdims=1)
    dn = g.Max(g.Sub(pixels, c0), np.int32(1))
    above = g.Max(g.Sub(cdf, c0), np.int32(0))
    lut = g.Div(g.Add(g.Mul(above, np.int32(510)), dn), g.Mul(dn, np.int32(2)))
    return g.Gather(g.cast(lut, DType.U8), g.cast(x, DType.S32))
