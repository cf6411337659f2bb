"""Dense windows and 1x1 convolutions, in several layouts."""

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


@pattern("conv2d_nc4hw4", draw={"w": weights("4*Co*R*S")})
def conv2d_nc4hw4(x: Array, w: Array, stride: int, pad: int, OH: int, OW: int) -> Array:
    N, Co, H, W, _ = x.shape
    Ko, _, R, S, _, _ = w.shape
    planes = x.transpose(0, 1, 4, 2, 3).reshape(N, Co * 4, H, W)
    filters = w.transpose(0, 5, 1, 4, 2, 3).reshape(Ko * 4, Co * 4, R, S)
    y = conv2d(pad_hw(planes, pad, pad, pad, pad), filters, stride)
    return y.reshape(N, Ko, 4, OH, OW).transpose(0, 1, 3, 4, 2)


@conv2d_nc4hw4.twin
def _(
    g: Graph, x: Value, w: Array, N: int, Co: int, Ko: int, H: int, W: int, R: int, S: int,
    stride: int, pad: int, OH: int, OW: int
) -> Value:  # fmt: skip
    planes = g.Reshape(g.Transpose(x, perm=[0, 1, 4, 2, 3]), [N, Co * 4, H, W])
    filters = w.transpose(0, 5, 1, 4, 2, 3).reshape(Ko * 4, Co * 4, R, S)
    y = g.Conv(planes, filters, strides=[stride, stride], pads=[pad, pad, pad, pad])
    return g.Transpose(g.Reshape(y, [N, Ko, 4, OH, OW]), perm=[0, 1, 3, 4, 2])


@pattern("conv2d_pointwise_nchw")
def conv2d_pointwise_nchw(x: Array, w: Array) -> Array:
    return np.einsum("kc,nchw->nkhw", w, x, optimize=True)


@conv2d_pointwise_nchw.twin
def _(g: Graph, x: Value, w: Array) -> Value:
    return g.Conv(x, w[:, :, None, None])


@pattern("conv2d_pointwise_nhwc", draw={"w": weights("C")})
def conv2d_pointwise_nhwc(x: Array, w: Array) -> Array:
    return x @ w


@conv2d_pointwise_nhwc.twin
def _(g: Graph, x: Value, w: Array) -> Value:
    planes = g.Transpose(x, perm=[0, 3, 1, 2])
    return g.Transpose(g.Conv(planes, w.T[:, :, None, None]), perm=[0, 2, 3, 1])


@pattern("conv3d_ncdhw")
def conv3d_ncdhw(x: Array, w: Array, stride: int, OH: int, OW: int) -> Array:
    N, _, D, _, _ = x.shape
    K, _, A, R, S = w.shape
    frames = pad_hw(x, R // 2, R // 2, S // 2, S // 2)
    frames = np.pad(frames, [(0, 0), (0, 0), (A // 2, A // 2), (0, 0), (0, 0)])
    y = np.zeros((N, K, D, OH, OW))
    for t in range(D):
        for a in range(A):
            y[:, :, t] += conv2d(frames[:, :, t + a], w[:, :, a], stride)
    return y


@conv3d_ncdhw.twin
def _(g: Graph, x: Value, w: Array, A: int, R: int, S: int, stride: int) -> Value:
    border = [A // 2, R // 2, S // 2]
    return g.Conv(x, w, strides=[1, stride, stride], pads=border * 2)
