"""Quantising, dequantising and requantising."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw, activations, integers
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.quantisation import ZERO_POINT, requant, scales
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def exact_scale(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Between 0.02 and 0.1; of four draws three are 1/16 or 1/32."""
    rng = draw.rng(spec.name)
    powers = 2.0 ** -rng.integers(4, 6, spec.shape)
    return np.where(rng.random(spec.shape) < 0.75, powers, rng.uniform(0.02, 0.1, spec.shape))


def values_on_ties(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """A quarter lies half-way between steps of 1/16 or 1/32."""
    values = activations()(draw, spec)
    rng = draw.rng(spec.name).spawn(1)[0]
    step = 2.0 ** -rng.integers(4, 6, spec.shape)
    return np.where(rng.random(spec.shape) < 0.25, halves(values, step), values)


def halves(values: np.ndarray, step: np.ndarray | float) -> np.ndarray:
    """The middles of the steps in which the values lie."""
    return (np.floor(values / step) + 0.5) * step


@pattern(
    "quantize_s8_per_tensor",
    draw={"x": values_on_ties, "scale": exact_scale, "zp": ZERO_POINT},
)
def quantize_s8_per_tensor(x: Array, scale: Array, zp: Array) -> Array:
    return np.clip(np.rint(x / scale) + zp, -128, 127)


@quantize_s8_per_tensor.twin
def _(g: Graph, x: Value, scale: Array, zp: Array) -> Value:
    return g.QuantizeLinear(x, scale[0], zp[0].astype(np.int8))


@pattern("dequantize_s8_per_channel", draw={"scale": scales(0.01, spread=1.5), "zp": ZERO_POINT})
def dequantize_s8_per_channel(q: Array, scale: Array, zp: Array) -> Array:
    return (q - zp[:, None]) * scale[:, None]


@dequantize_s8_per_channel.twin
def _(g: Graph, q: Value, scale: Array, zp: Array) -> Value:
    return g.DequantizeLinear(q, scale, zp.astype(np.int8), axis=0)


def accumulators(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Sums below 2**22, rows of differing magnitude."""
    values = activations(2.0**18)(draw, spec)
    return np.clip(np.rint(values), 1 - 2**22, 2**22 - 1).astype(np.int64)


@pattern(
    "requantize_s32_s8_fixedpoint",
    draw={
        "acc": accumulators,
        "mult": integers("2**30", "2**31"),
        "shift": integers("11", "15"),
        "zp": ZERO_POINT,
    },
    no_twin="ONNX shifts unsigned integers only",
)
def requantize_s32_s8_fixedpoint(acc: Array, mult: Array, shift: Array, zp: Array) -> Array:
    high = (acc * mult + (1 << 30)) >> 31
    rounded = (high + (1 << (shift - 1))) >> shift
    return np.clip(rounded + zp, -128, 127)


def accumulators_on_ties(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """`accumulators`, a quarter of them half-way between multiples of 2**13."""
    values = accumulators(draw, spec)
    tied = draw.rng(spec.name).spawn(1)[0].random(spec.shape) < 0.25
    return np.where(tied, halves(values, 2.0**13).astype(np.int64), values)


def exact_scales(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Every fourth channel has the scale 2**-13, with which sums tie exactly."""
    values = scales(2.0**-13)(draw, spec)
    exact = draw.rng(spec.name).spawn(1)[0].permutation(spec.size) % 4 == 0
    return np.where(exact, 2.0**-13, values)


@pattern(
    "requantize_s32_s8_float",
    draw={"acc": accumulators_on_ties, "scale": exact_scales, "zp": ZERO_POINT},
)
def requantize_s32_s8_float(acc: Array, scale: Array, zp: Array) -> Array:
    return requant(acc, scale, zp)


@requantize_s32_s8_float.twin
def _(g: Graph, acc: Value, scale: Array, zp: Array) -> Value:
    one = np.float32(1)
    return g.QuantizeLinear(g.Mul(g.cast(acc), scale), one, zp[0].astype(np.int8))


def blocks_of_exact_scale(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Blocks whose peak is 127 times a number that f16 holds; some blocks are all zero.

    Any other scale could round to f16 in two ways, through f32 or directly. Every fourth block has
    a power of two, and half of its numbers half-way between two steps.
    """
    rng = draw.rng(spec.name)
    blocks = spec.shape[0]
    scale = (0.02 * 2 ** rng.uniform(-1.5, 1.5, blocks)).astype(np.float16).astype(np.float64)
    values = rng.standard_normal(spec.shape)
    exact = rng.permutation(blocks) % 4 == 0
    scale[exact] = 2.0 ** -rng.integers(5, 8, exact.sum())
    values *= (127 * scale / np.abs(values).max(axis=1))[:, None]
    peak = np.abs(values).argmax(axis=1)
    rows = np.arange(blocks)
    tied = exact[:, None] & (rng.random(spec.shape) < 0.5)
    values = np.where(tied, halves(values, scale[:, None]), values)
    values[rows, peak] = np.copysign(127 * scale, values[rows, peak])
    values[rng.integers(5, 50) :: 50] = 0
    return values


@pattern("quantize_q8_0_blocks", draw={"x": blocks_of_exact_scale})
def quantize_q8_0_blocks(x: Array) -> tuple[Array, Array]:
    peak = np.abs(x).max(axis=1)
    inverse = np.divide(127, peak, out=np.zeros_like(peak), where=peak > 0)
    return np.rint(x * inverse[:, None]), peak / 127


@quantize_q8_0_blocks.twin
def _(g: Graph, x: Value) -> tuple[Value, Value]:
    peak = g.ReduceMax(g.Abs(x), [1], keepdims=1)
    inverse = g.Where(g.Greater(peak, 0.0), g.Div(127.0, peak), 0.0)
    scale = g.cast(g.Squeeze(g.Div(peak, 127.0), [1]), DType.F16)
    return g.cast(g.Round(g.Mul(x, inverse)), DType.S8), scale


@pattern("dequantize_q4_0", draw={"d": scales(0.02)})
def dequantize_q4_0(q: Array, d: Array, N: int) -> Array:
    nibbles = np.concatenate([q & 15, q >> 4], axis=2)  # low ones, then high ones
    return (d[:, :, None] * (nibbles - 8)).reshape(N, -1)


@dequantize_q4_0.twin
def _(g: Graph, q: Value, d: Array, N: int, KB: int) -> Value:
    low, high = g.BitwiseAnd(q, np.uint8(15)), g.BitShift(q, np.uint8(4), direction="RIGHT")
    nibbles = g.Reshape(g.Concat(low, high, axis=2), [N, KB * 32])
    eight = np.full((N, KB), 8, np.uint8)
    return g.DequantizeLinear(nibbles, d.astype(np.float32), eight, axis=1, block_size=32)
