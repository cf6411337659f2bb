"""Where ONNX's reference evaluator and ONNX Runtime part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from edgekernelbench.suite.own.graph.double import Reference
from edgekernelbench.suite.own.graph.walk import label

if TYPE_CHECKING:
    from onnx import ModelProto

_ALLOWED = 1e-2


def first_difference(model: ModelProto, inputs: Mapping[str, np.ndarray]) -> str:
    """The first node of the main graph whose results differ much, named; empty if none does."""
    from edgekernelbench.suite.twin import run_twin

    watched = _watched(model)
    try:
        exact = Reference(watched, ())(inputs)
        rounded = run_twin(watched, inputs)
    except Exception:  # this only makes a message better
        return ""
    for node in model.graph.node:
        for name in node.output:
            if name and _differ(rounded[name], exact[name]):
                return label(node)
    return ""


def _watched(model: ModelProto) -> ModelProto:
    """The model with everything that it computes as an output."""
    from onnx import ModelProto, helper

    watched = ModelProto()
    watched.CopyFrom(model)
    known = {value.name for value in watched.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in known:
                watched.graph.output.append(helper.make_empty_tensor_value_info(name))
    return watched


def _differ(output: np.ndarray, truth: np.ndarray) -> bool:
    if output.shape != truth.shape:
        return True
    wide = truth.astype(np.float64)
    scale = float(np.sqrt(np.mean(np.square(wide)))) if wide.size else 0.0
    error = np.abs(output.astype(np.float64) - wide)
    return not bool((error <= _ALLOWED * (np.abs(wide) + scale)).all())
