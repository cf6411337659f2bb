"""Whole quantised layers: integer product, bias, rescaling, activation."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.quantisation import (
    S8_DEVIATION,
    ZERO_POINT,
    layer_with_ties,
    requant,
    scales,
)
from edgekernelbench.suite.patterns.quantised.integer import (
    qconv2d_s8s32_nhwc,
    qdepthwise_conv2d_s8s32_nhwc,
)
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import pad_hw, taps
from edgekernelbench.suite.twin import Graph, Value

ONE = np.float32(1)
"""Scale of activations in the twins, so that the weights' scales are the whole rescaling."""


LAYER = ("w", "bias", "sc")
ZERO_POINTS = {"zx": ZERO_POINT, "zy": ZERO_POINT}


@pattern("qconv2d_bias_requant_relu_s8_nhwc", draw=ZERO_POINTS)
def qconv2d_bias_requant_relu_s8_nhwc(
    x: Array, zx: Array, w: Array, bias: Array, sc: Array, zy: Array, stride: int, pt: int,
    pb: int, pl: int, pr: int, OH: int, OW: int
) -> Array:  # fmt: skip
    acc = qconv2d_s8s32_nhwc(x, zx, w, bias, stride, pt, pb, pl, pr, OH, OW)
    return np.maximum(requant(acc, sc, zy[0]), zy[0])


@qconv2d_bias_requant_relu_s8_nhwc.inputs
def convolution(draw: Draw) -> dict[str, np.ndarray]:
    return layer_with_ties(draw, LAYER, "C*R*S")


@qconv2d_bias_requant_relu_s8_nhwc.twin
def _(
    g: Graph, x: Value, zx: Array, w: Array, bias: Array, sc: Array, zy: Array, stride: int,
    pt: int, pb: int, pl: int, pr: int
) -> Value:  # fmt: skip
    y = g.Conv(
        g.DequantizeLinear(blocks.nhwc_to_nchw(g, x), ONE, zx[0].astype(np.int8)),
        g.DequantizeLinear(w.transpose(0, 3, 1, 2), sc, axis=0),
        g.DequantizeLinear(bias, sc, axis=0),
        strides=[stride, stride],
        pads=[pt, pl, pb, pr],
    )
    return blocks.nchw_to_nhwc(g, g.QuantizeLinear(g.Relu(y), ONE, zy[0].astype(np.int8)))


@pattern("qdepthwise_bias_requant_s8_nhwc", draw=ZERO_POINTS)
def qdepthwise_bias_requant_s8_nhwc(
    x: Array, zx: Array, w: Array, bias: Array, sc: Array, zy: Array, stride: int, pt: int,
    pb: int, pl: int, pr: int, OH: int, OW: int
) -> Array:  # fmt: skip
    acc = qdepthwise_conv2d_s8s32_nhwc(x, zx, w, bias, stride, pt, pb, pl, pr, OH, OW)
    return requant(acc, sc, zy[0])


@qdepthwise_bias_requant_s8_nhwc.inputs
def depthwise_convolution(draw: Draw) -> dict[str, np.ndarray]:
    return layer_with_ties(draw, LAYER, "R*S", axis=2)


@qdepthwise_bias_requant_s8_nhwc.twin
def _(
    g: Graph, x: Value, zx: Array, w: Array, bias: Array, sc: Array, zy: Array, stride: int,
    pt: int, pb: int, pl: int, pr: int
) -> Value:  # fmt: skip
    y = g.Conv(
        g.DequantizeLinear(blocks.nhwc_to_nchw(g, x), ONE, zx[0].astype(np.int8)),
        g.DequantizeLinear(w.transpose(2, 0, 1)[:, None], sc, axis=0),
        g.DequantizeLinear(bias, sc, axis=0),
        group=w.shape[2],
        strides=[stride, stride],
        pads=[pt, pl, pb, pr],
    )
    return blocks.nchw_to_nhwc(g, g.QuantizeLinear(y, ONE, zy[0].astype(np.int8)))


@pattern("qlinear_bias_requant_s8", draw=ZERO_POINTS)
def qlinear_bias_requant_s8(
    x: Array, zx: Array, w: Array, bias: Array, sc: Array, zy: Array
) -> Array:
    return requant((x - zx[0]) @ w.T + bias, sc, zy[0])


@qlinear_bias_requant_s8.inputs
def linear_layer(draw: Draw) -> dict[str, np.ndarray]:
    return layer_with_ties(draw, LAYER, "K")


@qlinear_bias_requant_s8.twin
def _(g: Graph, x: Value, zx: Array, w: Array, bias: Array, sc: Array, zy: Array) -> Value:
    y = g.Gemm(
        g.DequantizeLinear(x, ONE, zx[0].astype(np.int8)),
        g.DequantizeLinear(w.T, sc, axis=1),
        g.DequantizeLinear(bias, sc, axis=0),
    )
    return g.QuantizeLinear(y, ONE, zy[0].astype(np.int8))


def rows_without_near_ties(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Rows whose quantised values no float32 error can move; one is zero, and has no scale.

    Half of the others have a scale that is a power of two, and a quarter of their values exactly
    half-way between two steps.
    """
    rng = draw.rng(spec.name)
    rows = np.arange(spec.shape[0])
    levels = np.clip(np.rint(36 * rng.standard_normal(spec.shape)), -126, 126)
    values = levels + rng.uniform(-0.4, 0.4, spec.shape)
    exact = rng.permutation(len(rows))[:, None] % 2 == 0
    values = np.where(exact & (rng.random(spec.shape) < 0.25), levels + 0.5, values)
    peak = rng.integers(spec.shape[1], size=len(rows))
    values[rows, peak] = 127 * rng.choice([-1, 1], len(rows))
    exponent = rng.uniform(-6.5, -3.5, (len(rows), 1))
    values *= 2 ** np.where(exact, np.rint(exponent), exponent)
    if len(rows) > 1:
        values[rng.integers(len(rows))] = 0
    return values


@pattern(
    "dynamic_quant_linear",
    draw={"x": rows_without_near_ties, "sw": scales(1 / S8_DEVIATION, "K")},
)
def dynamic_quant_linear(x: Array, qw: Array, sw: Array, b: Array) -> Array:
    peak = np.abs(x).max(axis=1, keepdims=True)
    dx = np.where(peak == 0, 1, peak / 127)
    qx = np.rint(x / dx)
    return dx * sw * (qx @ qw.T) + b


@dynamic_quant_linear.twin
def _(g: Graph, x: Value, qw: Array, sw: Array, b: Array) -> Value:
    peak = g.ReduceMax(g.Abs(x), [1], keepdims=1)
    dx = g.Where(g.Equal(peak, 0.0), 1.0, g.Div(peak, 127.0))
    qx = g.cast(g.Round(g.Div(x, dx)), DType.S8)
    products = g.cast(g.MatMulInteger(qx, qw.T))
    return g.Add(g.Mul(g.Mul(products, dx), sw), b)


HALF_RANGE = 100.0
"""Spread that undoes the smaller inputs after a ReLU; see `requant_scales`."""


def zero_points(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """The last one, of a sum that may tie, is even: then it may be added before rounding."""
    points = ZERO_POINT(draw, spec)
    points[-1] -= points[-1] % 2
    return points


def ratios(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Between 1/2 and 1, odd multiples of 1/32: sums are exact, and tie now and then."""
    return (2 * draw.rng(spec.name).integers(8, 16, spec.shape) + 1) / 32


@pattern(
    "qinverted_residual_s8_nhwc",
    draw={"z": zero_points, "rab": ratios},
)
def qinverted_residual_s8_nhwc(
    x: Array, w1: Array, b1: Array, s1: Array, w2: Array, b2: Array, s2: Array, w3: Array,
    b3: Array, s3: Array, z: Array, rab: Array
) -> Array:  # fmt: skip
    zx, z1, z2, z3, zy = z
    ra, rb = rab
    t1 = np.maximum(requant((x - zx) @ w1.T + b1, s1, z1), z1)
    planes = pad_hw((t1 - z1).transpose(2, 0, 1), 1, 1, 1, 1)  # HWC to CHW
    acc = sum(xrs.transpose(1, 2, 0) * w2[r, s] for r, s, xrs in taps(planes, 3, 3))
    t2 = np.maximum(requant(acc + b2, s2, z2), z2)
    t3 = requant((t2 - z2) @ w3.T + b3, s3, z3)
    return np.clip(np.rint(ra * (t3 - z3) + rb * (x - zx)) + zy, -128, 127)


@qinverted_residual_s8_nhwc.inputs
def three_layers(draw: Draw) -> dict[str, np.ndarray]:
    return {
        **layer_with_ties(draw, ("w1", "b1", "s1"), "C"),
        **layer_with_ties(draw, ("w2", "b2", "s2"), "9", HALF_RANGE, axis=2),
        **layer_with_ties(draw, ("w3", "b3", "s3"), "E", HALF_RANGE),
    }


@qinverted_residual_s8_nhwc.twin
def _(
    g: Graph, x: Value, w1: Array, b1: Array, s1: Array, w2: Array, b2: Array, s2: Array,
    w3: Array, b3: Array, s3: Array, z: Array, rab: Array
) -> Value:  # fmt: skip
    zx, z1, z2, z3, zy = z.astype(np.int8)

    def conv(y: Value, w: Array, b: Array, scale: Array, **attributes: object) -> Value:
        middle = np.full(len(scale), 128, np.uint8)
        filters = g.DequantizeLinear(blocks.as_u8(w), scale, middle, axis=0)
        return g.Conv(y, filters, g.DequantizeLinear(b, scale, axis=0), **attributes)

    def quantised(y: Value, zero_point: np.int8) -> Value:
        return g.DequantizeLinear(g.QuantizeLinear(y, ONE, zero_point), ONE, zero_point)

    planes = blocks.nhwc_to_nchw(g, x)
    t0 = g.DequantizeLinear(planes, ONE, zx)
    t1 = quantised(g.Relu(conv(t0, w1[:, :, None, None], b1, s1)), z1)
    depthwise = w2.transpose(2, 0, 1)[:, None]
    expanded = conv(t1, depthwise, b2, s2, group=len(depthwise), pads=[1, 1, 1, 1])
    t2 = quantised(g.Relu(expanded), z2)
    t3 = g.QuantizeLinear(conv(t2, w3[:, :, None, None], b3, s3), ONE, z3)
    y = g.Add(g.DequantizeLinear(t3, rab[0], z3), g.DequantizeLinear(planes, rab[1], zx))
    return blocks.nchw_to_nhwc(g, g.QuantizeLinear(y, ONE, zy))
