"""Sums over the edges of a graph."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations, integers, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.functions import relu
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def padded_neighbours(draw: Draw) -> dict[str, np.ndarray]:
    """Rows of differing lengths, filled up with neighbour 0 at weight 0."""
    L, KN = draw.shape("nbr")
    rng = draw.rng("nbr")
    valid = np.arange(KN) < rng.integers(1, KN + 1, (L, 1))
    nbr = np.where(valid, rng.integers(0, draw.size("V"), (L, KN)), 0)
    w = activations(1 / np.sqrt(KN))(draw, draw.spec("w"))
    return {"nbr": nbr, "w": np.where(valid, w, 0)}


@pattern("spmm_ell")
def spmm_ell(nbr: Array, w: Array, x: Array) -> Array:
    return np.einsum("ik,ikd->id", w, x[nbr])


spmm_ell.inputs(padded_neighbours)


@spmm_ell.twin
def _(g: Graph, nbr: Value, w: Value, x: Value) -> Value:
    rows = g.Gather(x, nbr)
    return g.ReduceSum(g.Mul(rows, g.cast(g.Unsqueeze(w, [2]))), [1], keepdims=0)


def row_pointers(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """E edges split at random over the rows: 0, sorted random positions, E."""
    edges = draw.size("E")
    cuts = np.sort(draw.rng(spec.name).integers(0, edges + 1, spec.shape[0] - 2))
    return np.concatenate([[0], cuts, [edges]])


@pattern(
    "spmm_csr",
    draw={"ptr": row_pointers, "col": integers("0", "V")},
    no_twin="ONNX has no sparse products and no loop bounds from data",
)
def spmm_csr(ptr: Array, col: Array, val: Array, x: Array) -> Array:
    rows = len(ptr) - 1
    y = np.zeros((rows, x.shape[1]))
    for i in range(rows):
        edges = slice(ptr[i], ptr[i + 1])
        y[i] = val[edges] @ x[col[edges]]
    return y


@pattern(
    "gcn_layer_csr",
    draw={"ptr": row_pointers, "col": integers("0", "L"), "W": weights("Fi")},
    no_twin="ONNX has no sparse products and no loop bounds from data",
)
def gcn_layer_csr(x: Array, W: Array, ptr: Array, col: Array, val: Array) -> Array:
    return relu(spmm_csr(ptr, col, val, x @ W))
