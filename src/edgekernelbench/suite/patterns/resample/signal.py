"""Sample rate conversion."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("polyphase_resample_1d", draw={"h": weights("NT")})
def polyphase_resample_1d(x: Array, h: Array, L: int, Up: int, Dn: int, NT: int) -> Array:
    position = np.arange(L * Up // Dn) * Dn
    phase, last = position % Up, position // Up
    padded = np.concatenate([np.zeros(NT - 1), x])
    y = np.zeros(len(position))
    for k in range(NT):
        y += h[phase + Up * k] * padded[last - k + NT - 1]
    return y


@polyphase_resample_1d.twin
def _(g: Graph, x: Value, h: Array, L: int, Up: int, Dn: int) -> Value:
    fine = g.ConvTranspose(g.Unsqueeze(x, [0, 1]), h[None, None], strides=[Up])
    return g.Squeeze(g.Slice(fine, [0], [L * Up // Dn * Dn], [2], [Dn]), [0, 1])
