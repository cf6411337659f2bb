"""Networks of fully connected layers."""

from __future__ import annotations

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns.functions import relu
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("fc_autoencoder", draw={"We": weights("Hd", 1.4), "Wm": weights("Hd", 1.4)})
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
