"""Stencils that several image patterns share."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.patterns.registry import Array
from edgekernelbench.suite.patterns.windows import taps
from edgekernelbench.suite.twin import Graph, Value


def sobel(x: Array) -> tuple[Array, Array]:
    """Derivatives along columns and rows, the border repeated."""
    H, W = x.shape
    padded = np.pad(x, 1, mode="edge")
    weight = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    gx, gy = np.zeros((H, W), x.dtype), np.zeros((H, W), x.dtype)
    for r, s, xrs in taps(padded, 3, 3):
        gx += weight[r, s] * xrs
        gy += weight[s, r] * xrs
    return gx, gy


def sobel_planes(g: Graph, x: Value) -> Value:
    """[H,W] of float32 to [1,2,H,W]: derivatives along columns and rows."""
    weight = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float32)
    padded = g.Pad(g.Unsqueeze(x, [0, 1]), [0, 0, 1, 1, 0, 0, 1, 1], mode="edge")
    return g.Conv(padded, np.stack([weight, weight.T])[:, None])


def unfold(g: Graph, x: Value, half: int, mode: str = "edge") -> Value:
    """[H,W] of float32 to [1,(2*half+1)**2,H,W]: the neighbours of each pixel, row by row."""
    side = 2 * half + 1
    one_hot = np.eye(side * side, dtype=np.float32).reshape(side * side, 1, side, side)
    border = [0, 0, half, half, 0, 0, half, half]
    return g.Conv(g.Pad(g.Unsqueeze(x, [0, 1]), border, mode=mode), one_hot)
