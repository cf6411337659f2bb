"""PointNet and a stage of PointNet++."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, integers, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.functions import relu
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def cloud(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """A stretched and turned cloud of points off the origin: global maxima tell clouds apart."""
    rng = draw.rng(spec.name)
    axes = rng.standard_normal((3, 3)) * 2.0 ** rng.uniform(-1.5, 0.5, 3)
    return rng.standard_normal(spec.shape) @ axes + rng.standard_normal(3)


@pattern(
    "pointnet_cls_basic",
    draw={
        "p": cloud,
        "W1": weights("3", 1.2),
        "W2": weights("64", 1.4),
        "W3": weights("64", 1.4),
        "W4": weights("64", 1.4),
        "W5": weights("128", 1.2),
        "W6": weights("1024", 1.2),
        "W7": weights("512", 1.4),
        "W8": weights("256", 1.4),
    },
)
def pointnet_cls_basic(
    p: Array, W1: Array, b1: Array, W2: Array, b2: Array, W3: Array, b3: Array, W4: Array,
    b4: Array, W5: Array, b5: Array, W6: Array, b6: Array, W7: Array, b7: Array, W8: Array,
    b8: Array
) -> Array:  # fmt: skip
    t = p
    for W, b in ((W1, b1), (W2, b2), (W3, b3), (W4, b4), (W5, b5)):
        t = relu(t @ W + b)
    g = t.max(axis=0)
    return W8 @ relu(W7 @ relu(W6 @ g + b6) + b7) + b8


@pointnet_cls_basic.twin
def _(
    g: Graph, p: Value, W1: Array, b1: Array, W2: Array, b2: Array, W3: Array, b3: Array,
    W4: Array, b4: Array, W5: Array, b5: Array, W6: Array, b6: Array, W7: Array, b7: Array,
    W8: Array, b8: Array, NC: int
) -> Value:  # fmt: skip
    t = p
    for W, b in ((W1, b1), (W2, b2), (W3, b3), (W4, b4), (W5, b5)):
        t = g.Relu(g.Add(g.MatMul(t, W), b))
    t = g.ReduceMax(t, [0], keepdims=1)
    t = g.Relu(g.Gemm(t, W6, b6, transB=1))
    t = g.Relu(g.Gemm(t, W7, b7, transB=1))
    return g.Reshape(g.Gemm(t, W8, b8, transB=1), [NC])


def centres(draw: Draw) -> dict[str, np.ndarray]:
    """Points of differing spread along the axes, and some of them as centres."""
    rng = draw.rng("p")
    p = rng.standard_normal(draw.shape("p")) * 2.0 ** rng.uniform(-1, 1, 3)
    return {"p": p, "c": p[draw.rng("c").integers(0, len(p), draw.size("S"))]}


@pattern(
    "pointnet2_set_abstraction",
    draw={
        "idx": integers("0", "L"),
        "W1": weights(gain=1.2),
        "W2": weights(gain=1.4),
        "W3": weights(gain=1.4),
    },
)
def pointnet2_set_abstraction(
    p: Array, x: Array, c: Array, idx: Array, W1: Array, b1: Array, W2: Array, b2: Array,
    W3: Array, b3: Array
) -> Array:  # fmt: skip
    f = np.concatenate([p[idx] - c[:, None], x[idx]], axis=2)
    for W, b in ((W1, b1), (W2, b2), (W3, b3)):
        f = relu(f @ W.T + b)
    return f.max(axis=1)


pointnet2_set_abstraction.inputs(centres)


@pointnet2_set_abstraction.twin
def _(
    g: Graph, p: Value, x: Value, c: Value, idx: Value, W1: Array, b1: Array, W2: Array,
    b2: Array, W3: Array, b3: Array
) -> Value:  # fmt: skip
    relative = g.Sub(g.Gather(p, idx), g.Unsqueeze(c, [1]))
    f = g.Concat(relative, g.Gather(x, idx), axis=2)
    for W, b in ((W1, b1), (W2, b2), (W3, b3)):
        f = g.Relu(g.Add(g.MatMul(f, W.T), b))
    return g.ReduceMax(f, [1], keepdims=0)
