"""Motions of points and vectors in space."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import activations
from edgekernelbench.suite.patterns.matrices import rigid_motion, unit_quaternions
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("transform_points_homogeneous", draw={"Tm": rigid_motion})
def transform_points_homogeneous(p: Array, Tm: Array) -> Array:
    return p @ Tm[:, :3].T + Tm[:, 3]


@transform_points_homogeneous.twin
def _(g: Graph, p: Value, Tm: Value) -> Value:
    columns = g.Transpose(Tm, perm=[1, 0])
    rotation, translation = g.op("Split", columns, [3, 1], outputs=2, axis=0)
    return g.Add(g.MatMul(p, rotation), translation)


@pattern(
    "quaternion_rotate_vectors",
    draw={"q": unit_quaternions, "v": activations(spread=0.75)},
)
def quaternion_rotate_vectors(q: Array, v: Array) -> Array:
    w, u = q[:, :1], q[:, 1:]
    uv = np.cross(u, v)
    return v + 2 * w * uv + 2 * np.cross(u, uv)


@quaternion_rotate_vectors.twin
def _(g: Graph, q: Value, v: Value) -> Value:
    w, u = g.op("Split", q, [1, 3], outputs=2, axis=1)
    u1, u2 = g.Gather(u, [1, 2, 0], axis=1), g.Gather(u, [2, 0, 1], axis=1)

    def cross_u(x: Value) -> Value:
        x1, x2 = g.Gather(x, [1, 2, 0], axis=1), g.Gather(x, [2, 0, 1], axis=1)
        return g.Sub(g.Mul(u1, x2), g.Mul(u2, x1))

    uv = cross_u(v)
    turned = g.Add(g.Mul(w, uv), cross_u(uv))
    return g.Add(v, g.Mul(turned, 2.0))
