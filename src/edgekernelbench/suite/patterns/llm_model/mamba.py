"""State-space blocks."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import near, weights
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import rms_norm, silu
from edgekernelbench.suite.patterns.recurrent import decay_rates, mamba_selective_scan
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def causal_conv(x: Array, w: Array, b: Array) -> Array:
    """Each channel of x[L,C] with its own taps w[C,K]; zeros before the first step."""
    K = w.shape[1]
    past = np.pad(x, [(K - 1, 0), (0, 0)])
    y = b + np.zeros(x.shape)
    for k in range(K):
        y += past[k : k + len(x)] * w[:, k]
    return y


@pattern(
    "mamba_block",
    draw={
        "g": near(1.0),
        "Win": weights(gain=1.2),
        "Wdt": weights(gain=1.5),
        "bdt": near(-3.0, 0.7),
        "A": decay_rates,
    },
)
def mamba_block(
    x: Array, g: Array, Win: Array, wc: Array, bc: Array, Wx: Array, Wdt: Array, bdt: Array,
    A: Array, D: Array, Wout: Array, Ns: int, Rk: int
) -> Array:  # fmt: skip
    u, z = np.split(rms_norm(x, g, 1e-5) @ Win.T, 2, axis=1)
    u = silu(causal_conv(u, wc, bc))
    low_rank, B, C = np.split(u @ Wx.T, [Rk, Rk + Ns], axis=1)
    dt = np.logaddexp(0, low_rank @ Wdt.T + bdt)  # softplus
    s = mamba_selective_scan(u, dt, A, B, C, D)
    return x + (s * silu(z)) @ Wout.T


@mamba_block.twin
def _(
    graph: Graph, x: Value, g: Array, Win: Array, wc: Array, bc: Array, Wx: Array, Wdt: Array,
    bdt: Array, A: Array, D: Array, Wout: Array, L: int, Di: int, Ns: int, Rk: int
) -> Value:  # fmt: skip
    a = graph.MatMul(blocks.rms_norm(graph, x, g, 1e-5), Win.T)
    u, z = graph.op("Split", a, outputs=2, axis=1, num_outputs=2)
    channels = graph.Unsqueeze(graph.Transpose(u, perm=[1, 0]), [0])
    channels = graph.Conv(channels, wc[:, None], bc, group=Di, pads=[wc.shape[1] - 1, 0])
    u = blocks.silu(graph, graph.Transpose(graph.Squeeze(channels, [0]), perm=[1, 0]))
    projected = graph.MatMul(u, Wx.T)
    low_rank, B, C = graph.op("Split", projected, [Rk, Ns, Ns], outputs=3, axis=1)
    dt = graph.Softplus(graph.Add(graph.MatMul(low_rank, Wdt.T), bdt))
    decay = graph.Exp(graph.Mul(graph.Unsqueeze(dt, [2]), A))
    drive = graph.Mul(graph.Unsqueeze(graph.Mul(dt, u), [2]), graph.Unsqueeze(B, [1]))
    states = unrolled_scan(graph, decay, drive, L)
    read = graph.ReduceSum(graph.Mul(states, graph.Unsqueeze(C, [1])), [2], keepdims=0)
    s = graph.Add(read, graph.Mul(u, D))
    return graph.Add(x, graph.MatMul(graph.Mul(s, blocks.silu(graph, z)), Wout.T))


def unrolled_scan(g: Graph, decay: Value, drive: Value, L: int) -> Value:
    """h[t] = decay[t] * h[t-1] + drive[t] from zero, as tracing a loop over tokens leaves it."""
    decays = g.op("Split", decay, outputs=L, axis=0, num_outputs=L)
    drives = g.op("Split", drive, outputs=L, axis=0, num_outputs=L)
    states = [drives[0]]
    for decay_t, drive_t in zip(decays[1:], drives[1:], strict=True):
        states.append(g.Add(g.Mul(decay_t, states[-1]), drive_t))
    return g.Concat(*states, axis=0)
