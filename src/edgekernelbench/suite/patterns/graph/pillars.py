"""Point pillars: features of columns of points, and their way back to the map."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, integers
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.functions import relu
from edgekernelbench.suite.patterns.graph.points import gains_of_both_signs
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def distinct_places(draw: Draw, spec: TensorSpec) -> np.ndarray:
    return draw.rng(spec.name).permutation(draw.size("HW"))[: spec.shape[0]]


@pattern(
    "pillar_scatter",
    draw={"coord": distinct_places},
    sparse_output="most places of the map have no pillar",
)
def pillar_scatter(f: Array, coord: Array, C: int, HW: int) -> Array:
    canvas = np.zeros((C, HW))
    canvas[:, coord] = f.T
    return canvas


@pillar_scatter.twin
def _(g: Graph, f: Value, coord: Value, C: int, HW: int) -> Value:
    empty = g.Expand(g.cast(g.value(np.zeros(1, np.float32))), [HW, C])
    places = g.Cast(g.Unsqueeze(coord, [1]), to=7)
    return g.Transpose(g.ScatterND(empty, places, f), perm=[1, 0])


@pattern(
    "pillar_feature_net",
    draw={"num": integers("1", "MPt+1"), "sc": gains_of_both_signs(0.5, 1.5)},
)
def pillar_feature_net(f: Array, num: Array, W: Array, sc: Array, sh: Array) -> Array:
    valid = np.arange(f.shape[1]) < num[:, None]
    features = np.where(valid[..., None], f, 0)
    return relu(sc * (features @ W.T) + sh).max(axis=1)


@pillar_feature_net.twin
def _(g: Graph, f: Value, num: Value, W: Array, sc: Array, sh: Array, MPt: int) -> Value:
    places = np.arange(MPt, dtype=np.int32)
    valid = g.Less(places, g.Unsqueeze(num, [1]))
    features = g.Mul(f, g.Unsqueeze(g.Cast(valid, to=1), [2]))
    normalised = g.Add(g.Mul(g.MatMul(features, W.T), sc), sh)
    return g.ReduceMax(g.Relu(normalised), [1], keepdims=0)
