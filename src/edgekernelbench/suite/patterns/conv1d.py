"""One-dimensional convolutions over time."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("conv1d_causal_dilated_ncw")
def conv1d_causal_dilated_ncw(x: Array, w: Array, b: Array, dil: int) -> Array:
    _, _, L = x.shape
    _, _, R = w.shape
    past = np.pad(x, [(0, 0), (0, 0), ((R - 1) * dil, 0)])  # zeros before the first step
    y = b[None, :, None] + np.zeros((1, 1, L))
    for r in range(R):
        y = y + np.einsum("nct,kc->nkt", past[:, :, r * dil : r * dil + L], w[:, :, r])
    return y


@conv1d_causal_dilated_ncw.twin
def _(g: Graph, x: Value, w: Array, b: Array, R: int, dil: int) -> Value:
    return g.Conv(x, w, b, dilations=[dil], pads=[(R - 1) * dil, 0])
