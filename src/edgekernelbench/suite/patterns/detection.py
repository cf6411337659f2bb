"""Heads and post-processing of detectors."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.functions import sigmoid
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import max_pool, pad_hw
from edgekernelbench.suite.twin import Graph, Value


def spaced_scores(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Scores on a grid of 1/256: equal ones tie in any precision, others never do."""
    rng = draw.rng(spec.name)
    scale = 2 ** rng.uniform(0, 1, (spec.shape[0], 1, 1))
    scores = np.clip(rng.standard_normal(spec.shape) * scale - 1, -7, 7)
    return np.rint(scores * 256) / 256


@pattern("heatmap_peak_nms", draw={"x": spaced_scores})
def heatmap_peak_nms(x: Array) -> Array:
    s = sigmoid(x)
    return np.where(s == max_pool(pad_hw(s, 1, 1, 1, 1), 3, 3), s, 0)


@heatmap_peak_nms.twin
def _(g: Graph, x: Value) -> Value:
    s = g.Sigmoid(g.Unsqueeze(x, [0]))
    peaks = g.Equal(s, g.MaxPool(s, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    return g.Squeeze(g.Where(peaks, s, 0.0), [0])
