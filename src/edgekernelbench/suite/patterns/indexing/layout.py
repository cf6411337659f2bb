"""Other orders of the same elements: transposes, shuffles, borders, concatenation."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import pad_hw
from edgekernelbench.suite.twin import Graph, Value


@pattern("batch_transpose")
def batch_transpose(x: Array) -> Array:
    return x.transpose(0, 2, 1)


@batch_transpose.twin
def _(g: Graph, x: Value) -> Value:
    return g.Transpose(x, perm=[0, 2, 1])


@pattern("permute_0213")
def permute_0213(x: Array) -> Array:
    return x.transpose(0, 2, 1, 3)


@permute_0213.twin
def _(g: Graph, x: Value) -> Value:
    return g.Transpose(x, perm=[0, 2, 1, 3])


@pattern("window_partition_nhwc")
def window_partition_nhwc(x: Array, H: int, W: int, C: int, P: int) -> Array:
    windows = x.reshape(H // P, P, W // P, P, C)  # a, u, b, v, c
    return windows.transpose(0, 2, 1, 3, 4).reshape(-1, P * P, C)


@window_partition_nhwc.twin
def _(g: Graph, x: Value, H: int, W: int, C: int, P: int) -> Value:
    windows = g.Reshape(x, [H // P, P, W // P, P, C])
    return g.Reshape(g.Transpose(windows, perm=[0, 2, 1, 3, 4]), [-1, P * P, C])


@pattern("concat_middle_axis")
def concat_middle_axis(x1: Array, x2: Array) -> Array:
    return np.concatenate([x1, x2], axis=1)


@concat_middle_axis.twin
def _(g: Graph, x1: Value, x2: Value) -> Value:
    return g.Concat(x1, x2, axis=1)


@pattern("space_to_depth_nchw")
def space_to_depth_nchw(x: Array, r: int) -> Array:
    offsets = [x[:, :, u::r, v::r] for v in range(r) for u in range(r)]
    return np.concatenate(offsets, axis=1)


@space_to_depth_nchw.twin
def _(g: Graph, x: Value, H: int, W: int, r: int) -> Value:
    offsets = [g.Slice(x, [u, v], [H, W], [2, 3], [r, r]) for v in range(r) for u in range(r)]
    return g.Concat(*offsets, axis=1)


@pattern("depth_to_space_nchw")
def depth_to_space_nchw(x: Array, N: int, C: int, H: int, W: int, r: int) -> Array:
    parts = x.reshape(N, C, r, r, H, W)  # n, c, u, v, i, j
    return parts.transpose(0, 1, 4, 2, 5, 3).reshape(N, C, H * r, W * r)


@depth_to_space_nchw.twin
def _(g: Graph, x: Value, r: int) -> Value:
    return g.DepthToSpace(x, blocksize=r, mode="CRD")


@pattern("pad_constant_2d")
def pad_constant_2d(x: Array, val: float, pt: int, pb: int, pl: int, pr: int) -> Array:
    return pad_hw(x, pt, pb, pl, pr, val)


@pad_constant_2d.twin
def _(g: Graph, x: Value, val: float, pt: int, pb: int, pl: int, pr: int) -> Value:
    return g.Pad(x, [0, pt, pl, 0, pb, pr], float(val))


@pattern("pad_reflect_1d")
def pad_reflect_1d(x: Array, p: int) -> Array:
    before, after = x[:, p:0:-1], x[:, -2 : -p - 2 : -1]  # the edge itself is not repeated
    return np.concatenate([before, x, after], axis=1)


@pad_reflect_1d.twin
def _(g: Graph, x: Value, p: int) -> Value:
    return g.Pad(x, [0, p, 0, p], mode="reflect")


@pattern("channel_shuffle_nchw")
def channel_shuffle_nchw(x: Array, C: int, HW: int, G: int) -> Array:
    return x.reshape(G, C // G, HW).transpose(1, 0, 2).reshape(C, HW)


@channel_shuffle_nchw.twin
def _(g: Graph, x: Value, C: int, HW: int, G: int) -> Value:
    groups = g.Reshape(x, [G, C // G, HW])
    return g.Reshape(g.Transpose(groups, perm=[1, 0, 2]), [C, HW])


@pattern("temporal_shift")
def temporal_shift(x: Array, Cs: int) -> Array:
    y = np.zeros_like(x)
    y[:-1, :Cs] = x[1:, :Cs]
    y[1:, Cs : 2 * Cs] = x[:-1, Cs : 2 * Cs]
    y[:, 2 * Cs :] = x[:, 2 * Cs :]
    return y


@temporal_shift.twin
def _(g: Graph, x: Value, L: int, C: int, Cs: int) -> Value:
    earlier = g.Pad(g.Slice(x, [1, 0], [L, Cs], [0, 1]), [0, 0, 0, 1, 0, 0])
    later = g.Pad(g.Slice(x, [0, Cs], [L - 1, 2 * Cs], [0, 1]), [1, 0, 0, 0, 0, 0])
    return g.Concat(earlier, later, g.Slice(x, [2 * Cs], [C], [1]), axis=1)
