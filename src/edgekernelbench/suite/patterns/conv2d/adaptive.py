"""Windows whose weights or positions are data, and the correlation of two images."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import on_grid, uniform, weights
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.sampling import bilinear
from edgekernelbench.suite.patterns.windows import pad_hw, taps
from edgekernelbench.suite.twin import Graph, Value

# Sums of pixel index and such an offset are exact in float32.
OFFSETS = on_grid(uniform(-2, 2), 2.0**-10)


@pattern("deformable_conv2d_nchw", draw={"off": OFFSETS})
def deformable_conv2d_nchw(x: Array, off: Array, w: Array, pad: int) -> Array:
    N, _, H, W = x.shape
    K, _, R, S = w.shape
    y = np.zeros((N, K, H, W))
    i, j = np.arange(H)[:, None], np.arange(W)
    for n in range(N):
        for r in range(R):
            for s in range(S):
                dv, du = off[n, 2 * (r * S + s)], off[n, 2 * (r * S + s) + 1]
                sampled = bilinear(x[n], i + r - pad + dv, j + s - pad + du)
                y[n] += np.einsum("cij,kc->kij", sampled, w[:, :, r, s], optimize=True)
    return y


@deformable_conv2d_nchw.twin
def _(g: Graph, x: Value, off: Value, w: Array, pad: int) -> Value:
    return g.DeformConv(x, w, off, pads=[pad, pad, pad, pad])


@pattern("per_pixel_kernel_filter", draw={"f": weights("R*S")})
def per_pixel_kernel_filter(x: Array, f: Array, R: int, S: int) -> Array:
    padded = pad_hw(x, R // 2, R // 2, S // 2, S // 2)
    y = np.zeros(x.shape)
    for r, s, xrs in taps(padded, R, S):
        y += f[:, None, r * S + s] * xrs
    return y


@per_pixel_kernel_filter.twin
def _(g: Graph, x: Value, f: Value, N: int, C: int, H: int, W: int, R: int, S: int) -> Value:
    # A depthwise convolution with unit filters unfolds the windows.
    unit = np.tile(np.eye(R * S).reshape(R * S, 1, R, S), (C, 1, 1, 1))
    windows = g.Conv(x, unit, group=C, pads=[R // 2, S // 2, R // 2, S // 2])
    products = g.Mul(g.Reshape(windows, [N, C, R * S, H, W]), g.Unsqueeze(f, [1]))
    return g.ReduceSum(products, [2], keepdims=0)


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
