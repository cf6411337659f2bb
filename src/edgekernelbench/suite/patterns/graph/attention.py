"""Attention over the neighbours of a node."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations, integers, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.functions import softmax
from edgekernelbench.suite.patterns.ranges import with_far_slices
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value

DEGREES = integers("1", "KN+1")


def masked_softmax(s: Array, deg: Array) -> Array:
    """Over the first deg[i] neighbours of s[i, neighbour, head]; 0 beyond them."""
    valid = np.arange(s.shape[1])[:, None] < deg[:, None, None]
    return softmax(np.where(valid, s, -np.inf).transpose(0, 2, 1)).transpose(0, 2, 1)


def masked_softmax_twin(g: Graph, s: Value, deg: Value, KN: int) -> Value:
    places = np.arange(KN, dtype=np.int32)[:, None]
    valid = g.Less(places, g.Unsqueeze(deg, [1, 2]))
    return g.Softmax(g.Where(valid, s, -np.inf), axis=1)


@pattern(
    "segment_softmax_ell",
    draw={"s": with_far_slices(activations(0.7), axis=1), "deg": DEGREES},
)
def segment_softmax_ell(s: Array, deg: Array) -> Array:
    return masked_softmax(s, deg)


@segment_softmax_ell.twin
def _(g: Graph, s: Value, deg: Value, KN: int) -> Value:
    return masked_softmax_twin(g, s, deg, KN)


# The first feature of input and heads shifts the scores of all neighbours of a node alike, by so
# much in some nodes that exp overflows unless the maximum is subtracted.
def features(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Node features; the first is large in a few nodes and zero in the others."""
    x = activations(spread=1)(draw, spec)
    x[:, 0] = np.where(draw.rng(spec.name).random(spec.shape[0]) < 0.03, 40, 0)
    return x


def projections(draw: Draw, spec: TensorSpec) -> np.ndarray:
    W = weights("Fi")(draw, spec)
    W[:, 0, :] = 0
    W[:, 0, 0] = 1
    return W


def own_scores(draw: Draw, spec: TensorSpec) -> np.ndarray:
    scores = weights()(draw, spec)
    scores[:, 0] = 3
    return scores


def neighbour_scores(draw: Draw, spec: TensorSpec) -> np.ndarray:
    scores = weights(gain=2)(draw, spec)
    scores[:, 0] = 0
    return scores


@pattern(
    "gat_layer_ell",
    draw={
        "x": features,
        "W": projections,
        "as_": own_scores,
        "ad": neighbour_scores,
        "nbr": integers("0", "L"),
        "deg": DEGREES,
    },
)
def gat_layer_ell(x: Array, W: Array, as_: Array, ad: Array, nbr: Array, deg: Array) -> Array:
    z = np.einsum("if,hfo->iho", x, W, optimize=True)
    own, other = (z * as_).sum(axis=2), (z * ad).sum(axis=2)
    e = own[:, None] + other[nbr]  # [node, neighbour, head]
    p = masked_softmax(np.where(e > 0, e, 0.2 * e), deg)
    y = np.einsum("ikh,ikho->iho", p, z[nbr])
    return np.where(y > 0, y, np.expm1(np.minimum(y, 0)))  # elu


@gat_layer_ell.twin
def _(
    g: Graph, x: Value, W: Array, as_: Array, ad: Array, nbr: Value, deg: Value, L: int, Fi: int,
    H: int, Fo: int, KN: int
) -> Value:  # fmt: skip
    flat = g.MatMul(x, W.transpose(1, 0, 2).reshape(Fi, H * Fo))
    z = g.Reshape(flat, [L, H, Fo])
    own = g.ReduceSum(g.Mul(z, as_), [2], keepdims=0)
    other = g.ReduceSum(g.Mul(z, ad), [2], keepdims=0)
    e = g.LeakyRelu(g.Add(g.Unsqueeze(own, [1]), g.Gather(other, nbr)), alpha=0.2)
    p = g.Unsqueeze(masked_softmax_twin(g, e, deg, KN), [3])
    return g.Elu(g.ReduceSum(g.Mul(p, g.Gather(z, nbr)), [1], keepdims=0))
