"""What twins are made of."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite import load_suite
from edgekernelbench.suite.twin import Graph


def test_a_scalar_stays_one() -> None:
    """Some versions of ONNX Runtime refuse a scale that is an array of one element."""
    graph = Graph(np.dtype(np.float32), {})
    graph.Add(np.float32(2), np.ones((1,), np.float32))
    assert [list(tensor.dims) for tensor in graph.initializers] == [[], [1]]


def test_scales_of_twins_are_scalars() -> None:
    workload = load_suite().workloads["qadd_s8__01"]
    model = workload.twin(workload.inputs(1))
    assert model is not None
    assert {tuple(tensor.dims) for tensor in model.graph.initializer} == {()}
