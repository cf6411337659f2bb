"""Element-wise operators, poolings and softmax on s8."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.functions import softmax
from edgekernelbench.suite.patterns.quantisation import normal_s8
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def zero_points_and_ratios(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Ratios between 1/2 and 2, odd multiples of 1/32: sums are exact, and tie now and then.

    The output's zero point is even, so that it may be added before rounding.
    """
    rng = draw.rng(spec.name)
    za, zb = rng.integers(-10, 11, 2)
    zy = 2 * rng.integers(-5, 6)
    return np.array([za, zb, zy, *(2 * rng.integers(8, 32, 2) + 1) / 32])


@pattern(
    "qadd_s8",
    draw={"a": normal_s8(30), "b": normal_s8(30), "p": zero_points_and_ratios},
)
def qadd_s8(a: Array, b: Array, p: Array) -> Array:
    za, zb, zy, sa_over_sy, sb_over_sy = p
    y = (a - za) * sa_over_sy + (b - zb) * sb_over_sy
    return np.clip(np.rint(y) + zy, -128, 127)


@qadd_s8.twin
def _(g: Graph, a: Value, b: Value, p: Array) -> Value:
    za, zb, zy = p[:3].astype(np.int8)
    y = g.Add(g.DequantizeLinear(a, p[3], za), g.DequantizeLinear(b, p[4], zb))
    return g.QuantizeLinear(y, np.float32(1), zy)


def channels_of_differing_mean(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Means that are not all near zero, as those of full-range numbers would be."""
    rng = draw.rng(spec.name)
    values = rng.uniform(-90, 90, spec.shape[2]) + 40 * rng.standard_normal(spec.shape)
    return np.clip(np.rint(values), -128, 127).astype(np.int64)


@pattern("qglobal_avg_pool_s8_nhwc", draw={"x": channels_of_differing_mean})
def qglobal_avg_pool_s8_nhwc(x: Array, H: int, W: int) -> Array:
    s, HW = x.sum(axis=(0, 1)), H * W
    rounded = np.sign(s) * ((2 * np.abs(s) + HW) // (2 * HW))  # half away from zero
    return np.clip(rounded, -128, 127)


@qglobal_avg_pool_s8_nhwc.twin
def _(g: Graph, x: Value, H: int, W: int) -> Value:
    s = g.ReduceSum(g.cast(x, DType.S32), [0, 1], keepdims=0)
    HW = np.int32(H * W)
    doubled = g.Add(g.Mul(g.Abs(s), np.int32(2)), HW)
    return g.cast(g.Mul(g.Sign(s), g.Div(doubled, np.int32(2) * HW)), DType.S8)


@pattern("lut_activation_s8")
def lut_activation_s8(x: Array, table: Array) -> Array:
    return table[x + 128]


@lut_activation_s8.twin
def _(g: Graph, x: Value, table: Array) -> Value:
    return g.Gather(table, g.Add(g.cast(x, DType.S32), np.int32(128)), axis=0)


def rows_of_differing_mean(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Logits close enough to each other that a row's softmax has many levels.

    A quarter of the rows, or the only one, is so high that exp of a scaled logit overflows; some
    others spread so far that their largest probability is 1, which saturates.
    """
    rng = draw.rng(spec.name)
    rows = rng.permutation(spec.shape[0])[:, None]
    mean = np.where(
        rows % 4 == 0, rng.uniform(114, 121, rows.shape), rng.uniform(-100, 100, rows.shape)
    )
    deviation = np.where(rows % 8 == 1, 20, 2.2)
    values = mean + deviation * rng.standard_normal(spec.shape)
    return np.clip(np.rint(values), -128, 127).astype(np.int64)


def coarse_scale(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """A multiple of 1/256 near 0.9: scaled logits are exact, and their exp may overflow."""
    return draw.rng(spec.name).integers(218, 257, spec.shape) / 256


@pattern("qsoftmax_s8", draw={"x": rows_of_differing_mean, "s": coarse_scale})
def qsoftmax_s8(x: Array, s: Array) -> Array:
    return np.clip(np.rint(softmax(s * x) * 256) - 128, -128, 127)


@qsoftmax_s8.twin
def _(g: Graph, x: Value, s: Array) -> Value:
    p = g.Softmax(g.DequantizeLinear(x, s[0]), axis=1)
    return g.QuantizeLinear(p, np.float32(1 / 256), np.int8(-128))
