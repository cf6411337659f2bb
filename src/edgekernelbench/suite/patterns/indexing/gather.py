"""Reads and writes at positions that are data."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, integers
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("embedding_lookup", draw={"idx": integers("0", "V")})
def embedding_lookup(idx: Array, table: Array) -> Array:
    return table[idx]


@embedding_lookup.twin
def _(g: Graph, idx: Value, table: Array) -> Value:
    return g.Gather(table, idx, axis=0)


@pattern("take_along_last", draw={"idx": integers("0", "C")})
def take_along_last(x: Array, idx: Array) -> Array:
    return np.take_along_axis(x, idx, axis=1)


@take_along_last.twin
def _(g: Graph, x: Value, idx: Value) -> Value:
    return g.GatherElements(x, idx, axis=1)


def distinct_positions(draw: Draw, spec: TensorSpec) -> np.ndarray:
    positions = draw.rng(spec.name).permutation(draw.size("MaxL"))
    return positions[: spec.size]


@pattern("scatter_rows", draw={"pos": distinct_positions})
def scatter_rows(cache: Array, x: Array, pos: Array) -> Array:
    y = cache.copy()
    y[:, pos] = x
    return y


@scatter_rows.twin
def _(g: Graph, cache: Value, x: Value, pos: Value, H: int, L: int, D: int) -> Value:
    rows = g.Expand(g.Unsqueeze(pos, [0, 2]), [H, L, D])
    return g.ScatterElements(cache, rows, x, axis=1)


@pattern("scatter_add_rows", draw={"idx": integers("0", "V")})
def scatter_add_rows(x: Array, idx: Array, V: int, D: int) -> Array:
    y = np.zeros((V, D))
    np.add.at(y, idx, x)  # rows of the same index add up
    return y


@scatter_add_rows.twin
def _(g: Graph, x: Value, idx: Value, L: int, V: int, D: int) -> Value:
    rows = g.Expand(g.Unsqueeze(idx, [1]), [L, D])
    return g.ScatterElements(np.zeros((V, D)), rows, x, axis=0, reduction="add")
