"""Bilinear samples at real coordinates, shared by convolution and pooling references."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.patterns.registry import Array


def bilinear(x: Array, v: Array, u: Array) -> Array:
    """x[C,H,W] at rows v and columns u, which broadcast; pixels outside of the map are 0."""
    _, H, W = x.shape
    top, left = np.floor(v).astype(int), np.floor(u).astype(int)
    y = np.zeros((1, 1))
    for i, j in [(top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)]:
        inside = (i >= 0) & (i < H) & (j >= 0) & (j < W)
        share = np.where(inside, (1 - abs(v - i)) * (1 - abs(u - j)), 0)
        y = y + share * x[:, np.clip(i, 0, H - 1), np.clip(j, 0, W - 1)]
    return y
