"""Dense two-dimensional convolutions."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import conv2d, pad_hw
from edgekernelbench.suite.twin import Graph, Value


@pattern("conv2d_nchw")
def conv2d_nchw(x: Array, w: Array, stride: int, pad_h: int, pad_w: int) -> Array:
    return conv2d(pad_hw(x, pad_h, pad_h, pad_w, pad_w), w, stride)


@conv2d_nchw.twin
def _(g: Graph, x: Value, w: Array, stride: int, pad_h: int, pad_w: int) -> Value:
    return g.Conv(x, w, strides=[stride, stride], pads=[pad_h, pad_w, pad_h, pad_w])


@pattern("conv2d_nhwc", draw={"w": weights("R*S*C")})
def conv2d_nhwc(x: Array, w: Array, stride: int, pt: int, pb: int, pl: int, pr: int) -> Array:
    planes = pad_hw(x.transpose(0, 3, 1, 2), pt, pb, pl, pr)  # NHWC to NCHW
    y = conv2d(planes, w.transpose(3, 2, 0, 1), stride)
    return y.transpose(0, 2, 3, 1)


@conv2d_nhwc.twin
def _(g: Graph, x: Value, w: Array, stride: int, pt: int, pb: int, pl: int, pr: int) -> Value:
    planes = g.Transpose(x, perm=[0, 3, 1, 2])
    pads = [pt, pl, pb, pr]
    y = g.Conv(planes, w.transpose(3, 2, 0, 1), strides=[stride, stride], pads=pads)
    return g.Transpose(y, perm=[0, 2, 3, 1])


@pattern("conv2d_pointwise_nchw")
def conv2d_pointwise_nchw(x: Array, w: Array) -> Array:
    return np.einsum("kc,nchw->nkhw", w, x, optimize=True)


@conv2d_pointwise_nchw.twin
def _(g: Graph, x: Value, w: Array) -> Value:
    return g.Conv(x, w[:, :, None, None])


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


@pattern("correlation_cost_volume")
def correlation_cost_volume(a: Array, b: Array, D: int) -> Array:
    N, C, H, W = a.shape
    y = np.zeros((N, D, H, W))
    for d in range(D):
        y[:, d, :, d:] = (a[..., d:] * b[..., : W - d]).sum(axis=1) / C
    return y


@correlation_cost_volume.twin
def _(g: Graph, a: Value, b: Value, D: int, W: int) -> Value:
    planes = []
    for d in range(D):
        shifted = g.Pad(g.Slice(b, [0], [W - d], [3]), [0, 0, 0, d, 0, 0, 0, 0])
        planes.append(g.ReduceMean(g.Mul(a, shifted), [1], keepdims=1))
    return g.Concat(*planes, axis=1)
