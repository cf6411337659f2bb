"""A stage of a neural vocoder."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def leaky_relu(x: Array) -> Array:
    return np.where(x > 0, x, 0.1 * x)


def conv_transpose1d(x: Array, w: Array, b: Array, stride: int) -> Array:
    """x[C,L] by w[C,K,R]: every step adds its window; the ends are cut to L*stride steps."""
    L = x.shape[1]
    K, R = w.shape[1:]
    full = np.zeros((K, (L - 1) * stride + R))
    for r in range(R):
        full[:, r : r + L * stride : stride] += w[:, :, r].T @ x
    pad = (R - stride) // 2
    return full[:, pad : pad + L * stride] + b[:, None]


def dilated_conv1d(x: Array, w: Array, b: Array, dilation: int) -> Array:
    """x[C,L] by w[K,C,R], R odd, to the same length."""
    L, R = x.shape[1], w.shape[2]
    border = (R - 1) // 2 * dilation
    padded = np.pad(x, [(0, 0), (border, border)])
    y = b[:, None] + np.zeros((1, L))
    for r in range(R):
        y = y + w[:, :, r] @ padded[:, r * dilation : r * dilation + L]
    return y


@pattern(
    "hifigan_mrf_stage",
    draw={
        "wu": weights("C*Ku//Su", 1.4),
        "w3": weights("3*(C//2)"),
        "w5": weights("5*(C//2)"),
        "w7": weights("7*(C//2)"),
    },
)
def hifigan_mrf_stage(
    x: Array, wu: Array, bu: Array, w3: Array, b3: Array, w5: Array, b5: Array, w7: Array,
    b7: Array, Su: int
) -> Array:  # fmt: skip
    t = conv_transpose1d(leaky_relu(x), wu, bu, Su)
    total = np.zeros_like(t)
    for w, b, dilations in ((w3, b3, (1, 2)), (w5, b5, (2, 6)), (w7, b7, (3, 12))):
        z = t
        for j, dilation in enumerate(dilations):
            z = z + dilated_conv1d(leaky_relu(z), w[j], b[j], dilation)
        total += z
    return total / 3


@hifigan_mrf_stage.twin
def _(
    g: Graph, x: Value, wu: Array, bu: Array, w3: Array, b3: Array, w5: Array, b5: Array,
    w7: Array, b7: Array, Ku: int, Su: int
) -> Value:  # fmt: skip
    def leaky(t: Value) -> Value:
        return g.LeakyRelu(t, alpha=0.1)

    cut = (Ku - Su) // 2
    t = g.ConvTranspose(leaky(g.Unsqueeze(x, [0])), wu, bu, strides=[Su], pads=[cut, cut])
    branches = []
    for w, b, dilations in ((w3, b3, (1, 2)), (w5, b5, (2, 6)), (w7, b7, (3, 12))):
        z = t
        for j, dilation in enumerate(dilations):
            border = (w.shape[3] - 1) // 2 * dilation
            spread = {"dilations": [dilation], "pads": [border, border]}
            z = g.Add(z, g.Conv(leaky(z), w[j], b[j], **spread))
        branches.append(z)
    return g.Squeeze(g.Div(g.Add(g.Add(*branches[:2]), branches[2]), 3.0), [0])
