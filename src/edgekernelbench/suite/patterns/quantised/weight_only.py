"""Matrix products whose weights, and some activations, are stored in a few bits."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations, integers, uniform, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import silu
from edgekernelbench.suite.patterns.quantisation import S8_DEVIATION, scales
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value

U4_DEVIATION = 16 / np.sqrt(12)
"""Standard deviation of full-range 4-bit numbers."""


def q4_0_nibbles(q: Array) -> Array:
    """[N,KB,16] bytes to [N,KB,32] numbers 0..15: low nibbles, then high ones."""
    return np.concatenate([q & 15, q >> 4], axis=2)


def q4_0_gemv(q: Array, d: Array, x: Array) -> Array:
    """y[n] = sum_b d[n,b] * sum_j (nibble[n,b,j] - 8) * x[32*b+j]."""
    products = (q4_0_nibbles(q) - 8) * x.reshape(-1, 32)
    return (d * products.sum(axis=2)).sum(axis=1)


def q4_0_matmul(g: Graph, q: Array, d: Array, x: Value) -> Value:
    """The product as a deployer writes it: a blocked DequantizeLinear before a MatMul."""
    N, KB, _ = q.shape
    levels = q4_0_nibbles(q).reshape(N, KB * 32)
    eight = g.uint4(np.full((KB, N), 8))
    scale = d.T.astype(np.float32)
    return g.MatMul(x, g.DequantizeLinear(g.uint4(levels.T), scale, eight, axis=0, block_size=32))


@pattern("gemv_q4_0_block32", draw={"d": activations(0.02, spread=0.5)})
def gemv_q4_0_block32(q: Array, d: Array, x: Array) -> Array:
    return q4_0_gemv(q, d, x)


@gemv_q4_0_block32.twin
def _(g: Graph, q: Array, d: Array, x: Value) -> Value:
    return q4_0_matmul(g, q, d, x)


Q4_0_SCALES = weights("Cb*32", gain=1 / U4_DEVIATION)


@pattern(
    "swiglu_mlp_q4_0",
    draw={
        "dg": Q4_0_SCALES,
        "du": Q4_0_SCALES,
        "dd": weights("Ib*32", gain=2 / U4_DEVIATION),
    },
)
def swiglu_mlp_q4_0(
    x: Array, qg: Array, dg: Array, qu: Array, du: Array, qd: Array, dd: Array
) -> Array:
    hidden = silu(q4_0_gemv(qg, dg, x)) * q4_0_gemv(qu, du, x)
    return q4_0_gemv(qd, dd, hidden)


@swiglu_mlp_q4_0.twin
def _(
    g: Graph, x: Value, qg: Array, dg: Array, qu: Array, du: Array, qd: Array, dd: Array
) -> Value:
    gate = blocks.silu(g, q4_0_matmul(g, qg, dg, x))
    return q4_0_matmul(g, qd, dd, g.Mul(gate, q4_0_matmul(g, qu, du, x)))


@pattern(
    "matmul_q4_group_asym",
    draw={"s": scales(1 / U4_DEVIATION, "K"), "z": integers("5", "12")},
)
def matmul_q4_group_asym(x: Array, q: Array, s: Array, z: Array, N: int, GS: int) -> Array:
    nibbles = np.stack([q & 15, q >> 4], axis=2).reshape(N, -1)  # even k in the low ones
    w = (nibbles - z.repeat(GS, axis=1)) * s.repeat(GS, axis=1)
    return x @ w.T


@matmul_q4_group_asym.twin
def _(g: Graph, x: Value, q: Array, s: Array, z: Array, N: int, GS: int) -> Value:
    levels = np.stack([q & 15, q >> 4], axis=2).reshape(N, -1)
    zero = g.uint4(z.T)
    return g.MatMul(x, g.DequantizeLinear(g.uint4(levels.T), s.T, zero, axis=0, block_size=GS))


@pattern(
    "gemv_q8_0_block32",
    draw={"dw": scales(1 / S8_DEVIATION, "KB*32"), "dx": scales(1 / S8_DEVIATION)},
)
def gemv_q8_0_block32(qw: Array, dw: Array, qx: Array, dx: Array) -> Array:
    dots = (qw * qx).sum(axis=2)
    return (dw * dx * dots).sum(axis=1)


@gemv_q8_0_block32.twin
def _(g: Graph, qw: Array, dw: Array, qx: Value, dx: Value, N: int, KB: int) -> Value:
    x = g.Reshape(g.DequantizeLinear(qx, g.cast(dx), axis=0), [KB * 32])
    levels = qw.reshape(N, KB * 32).T
    w = g.DequantizeLinear(levels, dw.T.astype(np.float32), axis=0, block_size=32)
    return g.MatMul(x, w)


@pattern("gemv_w8_per_channel", draw={"s": scales(1 / S8_DEVIATION, "K")})
def gemv_w8_per_channel(qw: Array, s: Array, x: Array) -> Array:
    return s * (qw @ x)


@gemv_w8_per_channel.twin
def _(g: Graph, qw: Array, s: Array, x: Value) -> Value:
    return g.MatMul(x, g.DequantizeLinear(qw.T, s.astype(g.float_dtype), axis=1))


def ternary_codes(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Bytes of four 2-bit codes; the fourth code, 3, has no meaning."""
    codes = draw.rng(spec.name).integers(0, 3, (*spec.shape, 4), dtype=np.uint8)
    return (codes << np.array([0, 2, 4, 6], np.uint8)).sum(axis=2, dtype=np.uint8)


def ternary_levels(w: Array) -> Array:
    """[N,K/4] bytes to [N,K] numbers -1, 0, 1; the lowest bits come first."""
    codes = (w[:, :, None] >> np.array([0, 2, 4, 6])) & 3
    return codes.reshape(len(w), -1) - 1


@pattern(
    "gemv_ternary_packed",
    draw={"w": ternary_codes, "ws": uniform(0.02, 0.05), "xs": uniform(0.005, 0.02)},
)
def gemv_ternary_packed(w: Array, x: Array, ws: Array, xs: Array) -> Array:
    return ws * xs * (ternary_levels(w) @ x)


@gemv_ternary_packed.twin
def _(g: Graph, w: Array, x: Value, ws: Array, xs: Value) -> Value:
    levels = ternary_levels(w).astype(np.int8)
    return g.Mul(g.cast(g.MatMulInteger(x, levels.T)), g.Mul(xs, ws))
