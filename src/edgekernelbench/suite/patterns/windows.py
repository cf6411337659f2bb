"""Windows over images: helpers that convolution and pooling references share.

They walk over the taps of the window and treat all positions of one tap at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgekernelbench.suite.patterns.registry import Array


def pad_hw(x: Array, top: int, bottom: int, left: int, right: int, value: float = 0) -> Array:
    """x[..., H, W] with a border of a constant value."""
    border = [(0, 0)] * (x.ndim - 2) + [(top, bottom), (left, right)]
    return np.pad(x, border, constant_values=value)


def taps(x: Array, R: int, S: int, stride: int = 1) -> Iterator[tuple[int, int, Array]]:
    """(r, s, x[..., i*stride + r, j*stride + s] over all i, j) for each tap of an R x S window."""
    last_row = x.shape[-2] - R + 1
    last_column = x.shape[-1] - S + 1
    for r in range(R):
        for s in range(S):
            yield r, s, x[..., r : r + last_row : stride, s : s + last_column : stride]


def conv2d(x: Array, w: Array, stride: int = 1) -> Array:
    """y[n,k,i,j] = sum_{c,r,s} x[n,c,i*stride+r,j*stride+s] * w[k,c,r,s], without a border."""
    N, _, H, W = x.shape
    K, _, R, S = w.shape
    y = np.zeros((N, K, (H - R) // stride + 1, (W - S) // stride + 1))
    for r, s, xrs in taps(x, R, S, stride):
        y += np.einsum("ncij,kc->nkij", xrs, w[:, :, r, s], optimize=True)
    return y


def depthwise(x: Array, w: Array, stride: int = 1) -> Array:
    """y[n,c,i,j] = sum_{r,s} x[n,c,i*stride+r,j*stride+s] * w[c,r,s], without a border."""
    N, C, H, W = x.shape
    _, R, S = w.shape
    y = np.zeros((N, C, (H - R) // stride + 1, (W - S) // stride + 1))
    for r, s, xrs in taps(x, R, S, stride):
        y += xrs * w[:, r, s, None, None]
    return y


def max_pool(x: Array, R: int, S: int, stride: int = 1) -> Array:
    """y[..., i, j] = max_{r,s} x[..., i*stride+r, j*stride+s], without a border."""
    return np.max([xrs for _, _, xrs in taps(x, R, S, stride)], axis=0)


def pointwise(x: Array, w: Array, b: Array) -> Array:
    """1x1 convolution of x[1,C,H,W] by w[K,C]."""
    return np.einsum("kc,nchw->nkhw", w, x, optimize=True) + b[:, None, None]


def conv3x3(x: Array, w: Array, b: Array) -> Array:
    """3x3 convolution of x[1,C,H,W] by w[K,C,3,3] with a border of zeros."""
    return conv2d(pad_hw(x, 1, 1, 1, 1), w) + b[:, None, None]
