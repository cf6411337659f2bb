"""Overlapping windows: unfolding and folding of images and signals."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import pad_hw, taps
from edgekernelbench.suite.twin import Graph, Value


@pattern("im2col_nchw")
def im2col_nchw(x: Array, R: int, S: int, stride: int, pad: int) -> Array:
    C = x.shape[0]
    padded = pad_hw(x, pad, pad, pad, pad)
    windows = [xrs.reshape(C, -1) for _, _, xrs in taps(padded, R, S, stride)]
    return np.stack(windows, axis=1).reshape(C * R * S, -1)


@im2col_nchw.twin
def _(g: Graph, x: Value, C: int, R: int, S: int, stride: int, pad: int, OH: int, OW: int) -> Value:
    rows = np.arange(R)[:, None] + stride * np.arange(OH)
    columns = np.arange(S)[:, None] + stride * np.arange(OW)
    padded = g.Pad(x, [0, pad, pad, 0, pad, pad])
    windows = g.Gather(g.Gather(padded, rows, axis=1), columns, axis=3)  # c, r, i, s, j
    return g.Reshape(g.Transpose(windows, perm=[0, 1, 3, 2, 4]), [C * R * S, OH * OW])


@pattern("frame_signal")
def frame_signal(x: Array, win: Array, NW: int, NF: int, hop: int) -> Array:
    return np.stack([x[f * hop : f * hop + NW] * win for f in range(NF)])


@frame_signal.twin
def _(g: Graph, x: Value, win: Array, NW: int, NF: int, hop: int) -> Value:
    positions = hop * np.arange(NF)[:, None] + np.arange(NW)
    return g.Mul(g.Gather(x, positions, axis=0), win)


@pattern("overlap_add")
def overlap_add(x: Array, NF: int, NW: int, hop: int) -> Array:
    y = np.zeros((NF - 1) * hop + NW)
    for f in range(NF):
        y[f * hop : f * hop + NW] += x[f]
    return y


@overlap_add.twin
def _(g: Graph, x: Value, NF: int, NW: int, hop: int) -> Value:
    columns = g.Unsqueeze(g.Transpose(x, perm=[1, 0]), [0])
    signal = g.Col2Im(columns, [1, (NF - 1) * hop + NW], [1, NW], strides=[1, hop])
    return g.Squeeze(signal, [0, 1, 2])
