"""Windows with gaps, groups or without overlap, and the transposed convolution."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import conv2d, pad_hw
from edgekernelbench.suite.twin import Graph, Value


@pattern("conv2d_dilated_nchw")
def conv2d_dilated_nchw(x: Array, w: Array, dil: int) -> Array:
    N, _, H, W = x.shape
    K, _, R, S = w.shape
    pad_h, pad_w = R // 2 * dil, S // 2 * dil
    padded = pad_hw(x, pad_h, pad_h, pad_w, pad_w)
    y = np.zeros((N, K, H, W))
    for r in range(R):
        for s in range(S):
            xrs = padded[:, :, r * dil : r * dil + H, s * dil : s * dil + W]
            y += np.einsum("ncij,kc->nkij", xrs, w[:, :, r, s], optimize=True)
    return y


@conv2d_dilated_nchw.twin
def _(g: Graph, x: Value, w: Array, R: int, S: int, dil: int) -> Value:
    border = [R // 2 * dil, S // 2 * dil]
    return g.Conv(x, w, dilations=[dil, dil], pads=border * 2)


@pattern("conv2d_grouped_nchw")
def conv2d_grouped_nchw(
    x: Array, w: Array, G: int, Cg: int, Kg: int, stride: int, pad: int
) -> Array:
    padded = pad_hw(x, pad, pad, pad, pad)
    groups = [
        conv2d(padded[:, i * Cg : (i + 1) * Cg], w[i * Kg : (i + 1) * Kg], stride) for i in range(G)
    ]
    return np.concatenate(groups, axis=1)


@conv2d_grouped_nchw.twin
def _(g: Graph, x: Value, w: Array, G: int, stride: int, pad: int) -> Value:
    return g.Conv(x, w, group=G, strides=[stride, stride], pads=[pad, pad, pad, pad])


@pattern("conv2d_patchify_nchw")
def conv2d_patchify_nchw(x: Array, w: Array, b: Array, P: int) -> Array:
    return conv2d(x, w, stride=P) + b[:, None, None]


@conv2d_patchify_nchw.twin
def _(g: Graph, x: Value, w: Array, b: Array, P: int) -> Value:
    return g.Conv(x, w, b, strides=[P, P])


@pattern("conv2d_transpose_nchw", draw={"w": weights("C")})
def conv2d_transpose_nchw(x: Array, w: Array, stride: int, pad: int, OH: int, OW: int) -> Array:
    N, _, H, W = x.shape
    _, K, R, S = w.shape
    # Every input pixel adds its window to the output, which here still has its border.
    full = np.zeros((N, K, OH + 2 * pad, OW + 2 * pad))
    for r in range(R):
        for s in range(S):
            rows, columns = slice(r, r + H * stride, stride), slice(s, s + W * stride, stride)
            full[:, :, rows, columns] += np.einsum("ncij,ck->nkij", x, w[:, :, r, s], optimize=True)
    return full[:, :, pad : pad + OH, pad : pad + OW]


@conv2d_transpose_nchw.twin
def _(g: Graph, x: Value, w: Array, stride: int, pad: int, opad: int) -> Value:
    return g.ConvTranspose(
        x,
        w,
        strides=[stride, stride],
        pads=[pad, pad, pad, pad],
        output_padding=[opad, opad],
    )
