"""Rotary position embeddings."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, integers
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def rotate_half_split(x: Array, cos: Array, sin: Array) -> Array:
    """Rotates the pairs (i, i + D/2) of x[..., D] by the angles of cos and sin[..., D/2]."""
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def rope_tables(draw: Draw) -> dict[str, np.ndarray]:
    """cos and sin of position times frequency, from a random first position on."""
    positions, pairs = draw.shape("cos")
    first = draw.rng("cos").integers(0, 2048)
    frequency = 10000.0 ** (-np.arange(pairs) / pairs)
    angles = (first + np.arange(positions))[:, None] * frequency
    return {"cos": np.cos(angles), "sin": np.sin(angles)}


@pattern("rope_half_split")
def rope_half_split(x: Array, cos: Array, sin: Array) -> Array:
    return rotate_half_split(x, cos[:, None, :], sin[:, None, :])


rope_half_split.inputs(rope_tables)


@rope_half_split.twin
def _(g: Graph, x: Value, cos: Array, sin: Array) -> Value:
    return blocks.rope_half_split(g, x, cos[:, None, :], sin[:, None, :])


@pattern("rope_interleaved")
def rope_interleaved(x: Array, cos: Array, sin: Array) -> Array:
    cos, sin = cos[:, None, :], sin[:, None, :]
    even, odd = x[..., 0::2], x[..., 1::2]
    y = np.zeros(x.shape)
    y[..., 0::2] = even * cos - odd * sin
    y[..., 1::2] = odd * cos + even * sin
    return y


rope_interleaved.inputs(rope_tables)


@rope_interleaved.twin
def _(g: Graph, x: Value, cos: Array, sin: Array, L: int, H: int, D: int) -> Value:
    cos, sin = cos[:, None, :, None], sin[:, None, :, None]
    pairs = g.Reshape(x, [L, H, D // 2, 2])
    even, odd = g.op("Split", pairs, outputs=2, axis=-1, num_outputs=2)
    first = g.Sub(g.Mul(even, cos), g.Mul(odd, sin))
    second = g.Add(g.Mul(odd, cos), g.Mul(even, sin))
    return g.Reshape(g.Concat(first, second, axis=-1), [L, H, D])


@pattern("rope_kv_cache_append", draw={"pos": integers("0", "MaxL")})
def rope_kv_cache_append(
    q: Array, k: Array, v: Array, cos: Array, sin: Array, kc: Array, vc: Array, pos: Array
) -> tuple[Array, Array, Array]:
    kc, vc = kc.copy(), vc.copy()
    kc[:, pos[0]] = rotate_half_split(k, cos, sin)
    vc[:, pos[0]] = v
    return rotate_half_split(q, cos, sin), kc, vc


@rope_kv_cache_append.inputs
def rope_angle(draw: Draw) -> dict[str, np.ndarray]:
    """cos and sin of one position times frequency."""
    (pairs,) = draw.shape("cos")
    angles = draw.rng("cos").integers(0, 2048) * 10000.0 ** (-np.arange(pairs) / pairs)
    return {"cos": np.cos(angles), "sin": np.sin(angles)}


@rope_kv_cache_append.twin
def _(
    g: Graph, q: Value, k: Value, v: Value, cos: Value, sin: Value, kc: Value, vc: Value,
    pos: Value, Hkv: int
) -> tuple[Value, Value, Value]:  # fmt: skip
    heads = np.arange(Hkv)[:, None]
    rows = g.Expand(g.Cast(pos, to=7), [Hkv, 1])
    where = g.Concat(g.value(heads), rows, axis=1)  # (head, position) of each new row
    kr = blocks.rope_half_split(g, k, cos, sin)
    qo = blocks.rope_half_split(g, q, cos, sin)
    return qo, g.ScatterND(kc, where, kr), g.ScatterND(vc, where, v)
