"""Image preprocessing and filters."""

from __future__ import annotations

from edgekernelbench.suite.draw import uniform
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern(
    "image_normalize_to_nchw",
    draw={"mean": uniform(0.4, 0.5), "std": uniform(0.2, 0.3)},
)
def image_normalize_to_nchw(x: Array, mean: Array, std: Array) -> Array:
    return ((x / 255 - mean) / std).transpose(2, 0, 1)


@image_normalize_to_nchw.twin
def _(g: Graph, x: Value, mean: Array, std: Array) -> Value:
    unit = g.Div(g.cast(g.Transpose(x, perm=[2, 0, 1])), 255.0)
    shift, scale = (v.astype("float64")[:, None, None] for v in (mean, std))
    return g.Div(g.Sub(unit, shift), scale)
