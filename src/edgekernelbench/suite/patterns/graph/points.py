"""Sampling, grouping and interpolation of points."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw, Generator, integers, uniform
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value

STEP = 1 / 64
"""Of point coordinates within +-4: squared distances are then exact in float32, in any order."""


def scattered(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Points of a few clusters of differing sizes, on a grid."""
    rng = draw.rng(spec.name)
    clusters = rng.integers(0, 6, spec.shape[0])
    centres, sizes = rng.uniform(-2, 2, (6, 3)), 2.0 ** rng.uniform(-3, -0.5, (6, 3))
    points = centres[clusters] + sizes[clusters] * rng.standard_normal(spec.shape)
    return np.rint(np.clip(points, -4, 4) / STEP) * STEP


@pattern(
    "farthest_point_sampling",
    draw={"p": scattered},
    no_twin="each sample needs the one before it: ONNX would loop over samples",
)
def farthest_point_sampling(p: Array, S: int) -> Array:
    idx = np.zeros(S, np.int64)
    D = np.full(len(p), np.inf)
    for s in range(1, S):
        D = np.minimum(D, ((p - p[idx[s - 1]]) ** 2).sum(axis=1))
        idx[s] = D.argmax()
    return idx


def cube(draw: Draw) -> dict[str, np.ndarray]:
    """Points in a unit cube on a grid; centres are points, but a few lie far off."""
    rng = draw.rng("p")
    p = np.rint(rng.uniform(-0.5, 0.5, draw.shape("p")) / STEP) * STEP
    rng = draw.rng("c")
    c = p[rng.integers(0, len(p), draw.size("S"))]
    c[rng.random(len(c)) < 0.05] += 3
    return {"p": p, "c": c}


@pattern("ball_query")
def ball_query(p: Array, c: Array, S: int, KN: int, rad: float) -> Array:
    near = ((p - c[:, None]) ** 2).sum(axis=2) < rad**2
    idx = np.zeros((S, KN), np.int64)
    for j in range(S):
        found = np.flatnonzero(near[j])[:KN]
        if len(found):
            idx[j] = found[0]
            idx[j, : len(found)] = found
    return idx


ball_query.inputs(cube)


@ball_query.twin
def _(g: Graph, p: Value, c: Value, L: int, KN: int, rad: float) -> Value:
    apart = g.Sub(g.Unsqueeze(c, [1]), p)
    near = g.Less(g.ReduceSum(g.Mul(apart, apart), [2], keepdims=0), rad**2)
    none = np.int64(L)
    found = g.Where(near, np.arange(L), none)
    idx, _ = g.op("TopK", found, np.array([KN]), outputs=2, axis=1, largest=0)
    first = g.Slice(idx, [0], [1], [1])
    filled = g.Where(g.Equal(idx, none), first, idx)
    return g.cast(g.Where(g.Equal(filled, none), np.int64(0), filled), DType.S32)


@pattern("three_interpolate", draw={"idx": integers("0", "V"), "dist": uniform(0.01, 1)})
def three_interpolate(x: Array, idx: Array, dist: Array) -> Array:
    closeness = 1 / (dist + 1e-8)
    share = closeness / closeness.sum(axis=1, keepdims=True)
    return np.einsum("ik,ikd->id", share, x[idx])


@three_interpolate.twin
def _(g: Graph, x: Value, idx: Value, dist: Value) -> Value:
    closeness = g.Reciprocal(g.Add(dist, 1e-8))
    share = g.Div(closeness, g.ReduceSum(closeness, [1], keepdims=1))
    return g.ReduceSum(g.Mul(g.Gather(x, idx), g.Unsqueeze(share, [2])), [1], keepdims=0)


@pattern("edge_feature_gather", draw={"nbr": integers("0", "L")})
def edge_feature_gather(x: Array, nbr: Array) -> Array:
    own = np.broadcast_to(x[:, None], x[nbr].shape)
    return np.concatenate([x[nbr] - own, own], axis=2)


@edge_feature_gather.twin
def _(g: Graph, x: Value, nbr: Value, L: int, KN: int, C: int) -> Value:
    own = g.Expand(g.Unsqueeze(x, [1]), [L, KN, C])
    return g.Concat(g.Sub(g.Gather(x, nbr), own), own, axis=2)


def gains_of_both_signs(low: float, high: float, negative: float = 0.25) -> Generator:
    """Factors of a normalisation; some are negative, so that a maximum turns into a minimum."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        rng = draw.rng(spec.name)
        signs = np.where(rng.random(spec.shape) < negative, -1, 1)
        return signs * rng.uniform(low, high, spec.shape)

    return generate


@pattern(
    "edgeconv_max",
    draw={"nbr": integers("0", "L"), "sc": gains_of_both_signs(0.5, 1.5)},
)
def edgeconv_max(x: Array, nbr: Array, Wa: Array, Wb: Array, sc: Array, sh: Array) -> Array:
    relative = x[nbr] - x[:, None]
    edge = sc * (relative @ Wa.T + (x @ Wb.T)[:, None]) + sh
    return np.where(edge > 0, edge, 0.2 * edge).max(axis=1)


@edgeconv_max.twin
def _(g: Graph, x: Value, nbr: Value, Wa: Array, Wb: Array, sc: Array, sh: Array) -> Value:
    own = g.Unsqueeze(x, [1])
    relative = g.Sub(g.Gather(x, nbr), own)
    edge = g.Add(g.MatMul(relative, Wa.T), g.MatMul(own, Wb.T))
    edge = g.LeakyRelu(g.Add(g.Mul(edge, sc), sh), alpha=0.2)
    return g.ReduceMax(edge, [1], keepdims=0)
