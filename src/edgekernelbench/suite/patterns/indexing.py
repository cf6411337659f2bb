"""Pure data movement."""

from __future__ import annotations

from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("depth_to_space_nchw")
def depth_to_space_nchw(x: Array, N: int, C: int, H: int, W: int, r: int) -> Array:
    parts = x.reshape(N, C, r, r, H, W)  # n, c, u, v, i, j
    return parts.transpose(0, 1, 4, 2, 5, 3).reshape(N, C, H * r, W * r)


@depth_to_space_nchw.twin
def _(g: Graph, x: Value, r: int) -> Value:
    return g.DepthToSpace(x, blocksize=r, mode="CRD")
