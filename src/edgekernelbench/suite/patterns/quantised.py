"""Integer and weight-quantised operators."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import integers
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern(
    "qconv2d_s8s32_nhwc",
    draw={"zx": integers("-10", "11"), "bias": integers("-4096", "4097")},
)
def qconv2d_s8s32_nhwc(
    x: Array, zx: Array, w: Array, bias: Array, stride: int, pt: int, pb: int, pl: int, pr: int
) -> Array:
    K, R, S, _ = w.shape
    xp = np.pad(x - zx[0], [(pt, pb), (pl, pr), (0, 0)])
    OH = (xp.shape[0] - R) // stride + 1
    OW = (xp.shape[1] - S) // stride + 1
    y = np.zeros((OH, OW, K), np.int64) + bias
    for r in range(R):
        for s in range(S):
            y += xp[r : r + OH * stride : stride, s : s + OW * stride : stride] @ w[:, r, s].T
    return y


@qconv2d_s8s32_nhwc.twin
def _(
    g: Graph,
    x: Value,
    zx: Array,
    w: Array,
    bias: Array,
    stride: int,
    pt: int,
    pb: int,
    pl: int,
    pr: int,
) -> Value:
    planes = g.Unsqueeze(g.Transpose(x, perm=[2, 0, 1]), [0])
    acc = g.ConvInteger(
        planes,
        w.transpose(0, 3, 1, 2),
        zx[0].astype(np.int8),
        strides=[stride, stride],
        pads=[pt, pl, pb, pr],
    )
    rows = g.Squeeze(g.Transpose(acc, perm=[0, 2, 3, 1]), [0])
    return g.Add(rows, bias)
