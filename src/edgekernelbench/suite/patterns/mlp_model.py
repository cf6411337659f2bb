"""Networks of fully connected layers."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, Generator, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.functions import relu
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def centred_rows(fan_in: str, gain: float = 1.4) -> Generator:
    """Weights [..., out, in] of which each output's sum to zero, as after batch normalisation.

    What all inputs of a layer have in common cancels, so that no unit is off for every input.
    """

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        drawn = weights(fan_in, gain)(draw, spec)
        return drawn - drawn.mean(axis=-1, keepdims=True)

    return generate


@pattern(
    "fc_autoencoder",
    draw={
        "We": centred_rows("Hd"),
        "Wz": centred_rows("Hd"),
        "Wd": centred_rows("Z"),
        "Wm": centred_rows("Hd"),
        **{name: weights("16") for name in ("b1", "be", "bz", "bd", "bm")},
    },
)
def fc_autoencoder(
    x: Array, W1: Array, b1: Array, We: Array, be: Array, Wz: Array, bz: Array, Wd: Array,
    bd: Array, Wm: Array, bm: Array, Wo: Array, bo: Array
) -> Array:  # fmt: skip
    h = relu(x @ W1.T + b1)
    for i in range(3):
        h = relu(h @ We[i].T + be[i])
    z = relu(h @ Wz.T + bz)
    h = relu(z @ Wd.T + bd)
    for i in range(3):
        h = relu(h @ Wm[i].T + bm[i])
    return h @ Wo.T + bo


@fc_autoencoder.twin
def _(
    g: Graph, x: Value, W1: Array, b1: Array, We: Array, be: Array, Wz: Array, bz: Array,
    Wd: Array, bd: Array, Wm: Array, bm: Array, Wo: Array, bo: Array
) -> Value:  # fmt: skip
    hidden = [(W1, b1), *zip(We, be, strict=True), (Wz, bz), (Wd, bd), *zip(Wm, bm, strict=True)]
    h = x
    for w, b in hidden:
        h = g.Relu(g.Gemm(h, w, b, transB=1))
    return g.Gemm(h, Wo, bo, transB=1)


@pattern(
    "nbeats_generic",
    draw={
        "W1": weights("Lb", 1.4),
        "b1": weights("4"),
        "Wh": weights("Hd", 1.4),
        "bh": weights("4"),
        "Wt": weights("Hd", 0.2),
        "bt": weights("4", 0.4),
    },
)
def nbeats_generic(
    x: Array, W1: Array, b1: Array, Wh: Array, bh: Array, Wt: Array, bt: Array, NBk: int, Lb: int,
    Lf: int
) -> Array:  # fmt: skip
    rest, forecast = x, np.zeros((len(x), Lf))
    for b in range(NBk):
        h = relu(rest @ W1[b].T + b1[b])
        for i in range(3):
            h = relu(h @ Wh[b, i].T + bh[b, i])
        theta = h @ Wt[b].T + bt[b]
        rest = rest - theta[:, :Lb]
        forecast = forecast + theta[:, Lb:]
    return forecast


@nbeats_generic.twin
def _(
    g: Graph, x: Value, W1: Array, b1: Array, Wh: Array, bh: Array, Wt: Array, bt: Array,
    NBk: int, Lb: int, Lf: int
) -> Value:  # fmt: skip
    rest, forecasts = x, []
    for b in range(NBk):
        h = g.Relu(g.Gemm(rest, W1[b], b1[b], transB=1))
        for i in range(3):
            h = g.Relu(g.Gemm(h, Wh[b, i], bh[b, i], transB=1))
        theta = g.Gemm(h, Wt[b], bt[b], transB=1)
        backcast, forecast = g.op("Split", theta, [Lb, Lf], outputs=2, axis=1)
        rest = g.Sub(rest, backcast)
        forecasts.append(forecast)
    return g.Sum(*forecasts)
