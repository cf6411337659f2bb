"""Recurrent networks with all their weights."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns.functions import sigmoid
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def conv1d(x: Array, w: Array, b: Array) -> Array:
    """Over frames, without a border: x[L,C], w[K,C,R] to [L-R+1,K]."""
    R = w.shape[2]
    frames = len(x) - R + 1
    return b + sum(x[r : r + frames] @ w[:, :, r].T for r in range(R))


def gru(x: Array, Wx: Array, Uh: Array, bx: Array, bh: Array) -> Array:
    """All hidden states from a zero start; gates in the order reset, update, new."""
    h = np.zeros(Uh.shape[1])
    steps = []
    for x_t in x:
        xr, xz, xn = np.split(Wx @ x_t + bx, 3)
        hr, hz, hn = np.split(Uh @ h + bh, 3)
        z = sigmoid(xz + hz)
        n = np.tanh(xn + sigmoid(xr + hr) * hn)
        h = (1 - z) * n + z * h
        steps.append(h)
    return np.array(steps)


@pattern(
    "rnnoise_network",
    draw={
        "Wx": weights("Hd", 2.0),
        "Uh": weights("Hd", 1.5),
        "Wg": weights("Hd"),
        "Wv": weights("Hd"),
    },
)
def rnnoise_network(
    x: Array, w1: Array, b1: Array, w2: Array, b2: Array, Wx: Array, Uh: Array, bx: Array,
    bh: Array, Wg: Array, bg: Array, Wv: Array, bv: Array
) -> tuple[Array, Array]:  # fmt: skip
    c1 = np.tanh(conv1d(x, w1, b1))
    states = [np.tanh(conv1d(c1, w2, b2))]
    for i in range(3):
        states.append(gru(states[-1], Wx[i], Uh[i], bx[i], bh[i]))
    z = np.concatenate(states, axis=1)
    return sigmoid(z @ Wg.T + bg), sigmoid(z @ Wv.T + bv)


@rnnoise_network.twin
def _(
    g: Graph, x: Value, w1: Array, b1: Array, w2: Array, b2: Array, Wx: Array, Uh: Array,
    bx: Array, bh: Array, Wg: Array, bg: Array, Wv: Array, bv: Array, Hd: int
) -> tuple[Value, Value]:  # fmt: skip
    def zrh(gates: Array) -> Array:
        r, z, n = np.split(gates, 3)
        return np.concatenate([z, r, n])

    def head(z: Value, w: Array, b: Array) -> Value:
        return g.Sigmoid(g.Add(g.MatMul(z, w.T), b))

    channels = g.Transpose(g.Unsqueeze(x, [0]), perm=[0, 2, 1])
    c1 = g.Tanh(g.Conv(channels, w1, b1))
    c2 = g.Tanh(g.Conv(c1, w2, b2))
    steps = [g.Transpose(c2, perm=[2, 0, 1])]  # [L, 1, Hd]
    for i in range(3):
        bias = np.concatenate([zrh(bx[i]), zrh(bh[i])])[None]
        w, u = zrh(Wx[i])[None], zrh(Uh[i])[None]
        states = g.GRU(steps[-1], w, u, bias, hidden_size=Hd, linear_before_reset=1)
        steps.append(g.Squeeze(states, [1]))
    z = g.Squeeze(g.Concat(*steps, axis=2), [1])
    return head(z, Wg, bg), head(z, Wv, bv)
