"""One-dimensional convolutions over time."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def _conv1d(x: Array, w: Array, stride: int = 1) -> Array:
    """y[n,k,t] = sum_{c,r} x[n,c,t*stride+r] * w[k,c,r], without a border."""
    N, _, L = x.shape
    K, _, R = w.shape
    y = np.zeros((N, K, (L - R) // stride + 1))
    for r in range(R):
        xr = x[:, :, r : r + L - R + 1 : stride]
        y += np.einsum("nct,kc->nkt", xr, w[:, :, r], optimize=True)
    return y


@pattern("conv1d_causal_dilated_ncw")
def conv1d_causal_dilated_ncw(x: Array, w: Array, b: Array, dil: int) -> Array:
    _, _, L = x.shape
    _, _, R = w.shape
    past = np.pad(x, [(0, 0), (0, 0), ((R - 1) * dil, 0)])  # zeros before the first step
    y = b[None, :, None] + np.zeros((1, 1, L))
    for r in range(R):
        y = y + np.einsum("nct,kc->nkt", past[:, :, r * dil : r * dil + L], w[:, :, r])
    return y


@conv1d_causal_dilated_ncw.twin
def _(g: Graph, x: Value, w: Array, b: Array, R: int, dil: int) -> Value:
    return g.Conv(x, w, b, dilations=[dil], pads=[(R - 1) * dil, 0])


@pattern("conv1d_ncw")
def conv1d_ncw(x: Array, w: Array, b: Array, stride: int, pad: int) -> Array:
    return _conv1d(np.pad(x, [(0, 0), (0, 0), (pad, pad)]), w, stride) + b[:, None]


@conv1d_ncw.twin
def _(g: Graph, x: Value, w: Array, b: Array, stride: int, pad: int) -> Value:
    return g.Conv(x, w, b, strides=[stride], pads=[pad, pad])


@pattern("conv1d_nwc", draw={"w": weights("R*C")})
def conv1d_nwc(x: Array, w: Array, stride: int, pl: int, pr: int) -> Array:
    rows = np.pad(x.transpose(0, 2, 1), [(0, 0), (0, 0), (pl, pr)])  # NWC to NCW
    return _conv1d(rows, w.transpose(2, 1, 0), stride).transpose(0, 2, 1)


@conv1d_nwc.twin
def _(g: Graph, x: Value, w: Array, stride: int, pl: int, pr: int) -> Value:
    rows = g.Transpose(x, perm=[0, 2, 1])
    y = g.Conv(rows, w.transpose(2, 1, 0), strides=[stride], pads=[pl, pr])
    return g.Transpose(y, perm=[0, 2, 1])


@pattern("depthwise_conv1d_ncw")
def depthwise_conv1d_ncw(x: Array, w: Array, b: Array, pl: int) -> Array:
    _, _, L = x.shape
    _, R = w.shape
    padded = np.pad(x, [(0, 0), (0, 0), (pl, R - 1 - pl)])
    y = np.zeros(x.shape)
    for r in range(R):
        y += padded[:, :, r : r + L] * w[:, r, None]
    return y + b[:, None]


@depthwise_conv1d_ncw.twin
def _(g: Graph, x: Value, w: Array, b: Array, C: int, R: int, pl: int) -> Value:
    return g.Conv(x, w[:, None], b, group=C, pads=[pl, R - 1 - pl])


@pattern("depthwise_conv1d_step")
def depthwise_conv1d_step(x: Array, state: Array, w: Array, b: Array) -> tuple[Array, Array]:
    window = np.concatenate([state[:, 1:], x[:, None]], axis=1)
    return (window * w).sum(axis=1) + b, window


@depthwise_conv1d_step.twin
def _(g: Graph, x: Value, state: Value, w: Array, b: Array, R: int) -> tuple[Value, Value]:
    window = g.Concat(g.Slice(state, [1], [R], [1]), g.Unsqueeze(x, [1]), axis=1)
    return g.Add(g.ReduceSum(g.Mul(window, w), [1], keepdims=0), b), window


@pattern("conv1d_grouped_ncw")
def conv1d_grouped_ncw(x: Array, w: Array, b: Array, G: int, Cg: int, Kg: int, pad: int) -> Array:
    padded = np.pad(x, [(0, 0), (0, 0), (pad, pad)])
    groups = [_conv1d(padded[:, i * Cg : (i + 1) * Cg], w[i * Kg : (i + 1) * Kg]) for i in range(G)]
    return np.concatenate(groups, axis=1) + b[:, None]


@conv1d_grouped_ncw.twin
def _(g: Graph, x: Value, w: Array, b: Array, G: int, pad: int) -> Value:
    return g.Conv(x, w, b, group=G, pads=[pad, pad])


@pattern("conv1d_transpose_ncw", draw={"w": weights("C*R//stride")})
def conv1d_transpose_ncw(x: Array, w: Array, b: Array, stride: int, pad: int, OL: int) -> Array:
    N, _, L = x.shape
    _, K, R = w.shape
    # Every input sample adds its window to the output, which here still has its border.
    full = np.zeros((N, K, OL + 2 * pad))
    for r in range(R):
        xr = np.einsum("nct,ck->nkt", x, w[:, :, r], optimize=True)
        full[:, :, r : r + L * stride : stride] += xr
    return full[:, :, pad : pad + OL] + b[:, None]


@conv1d_transpose_ncw.twin
def _(g: Graph, x: Value, w: Array, b: Array, stride: int, pad: int) -> Value:
    return g.ConvTranspose(x, w, b, strides=[stride], pads=[pad, pad])
