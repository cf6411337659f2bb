"""Operators on graphs and point sets."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, integers
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern


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
