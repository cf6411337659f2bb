"""Legal values of inputs that are indices, found in the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from edgekernelbench.suite.own.graph.walk import integer

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

_PASSES = frozenset(
    ["Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand",
     "Tile", "Slice", "Split"]
)  # fmt: skip
"""Operators whose first input's values come out as they are."""


def index_range(
    graph: GraphProto, name: str, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[int, int] | None:
    """Lowest and highest legal value of an input that is used as an index; None if it is not."""
    pending, seen = [name], {name}
    bounds: list[int] = []
    while pending:
        tensor = pending.pop()
        for node in graph.node:
            bound = _bound(graph, node, tensor, shapes)
            if bound is not None:
                bounds.append(bound)
            if _goes_on(node, tensor):
                fresh = [output for output in node.output if output and output not in seen]
                seen.update(fresh)
                pending += fresh
    return (0, min(bounds) - 1) if bounds else None


def _goes_on(node: NodeProto, tensor: str) -> bool:
    if node.op_type == "Concat":
        return tensor in node.input
    return (node.op_type in _PASSES or node.op_type == "Gather") and node.input[:1] == [tensor]


def _bound(
    graph: GraphProto, node: NodeProto, tensor: str, shapes: Mapping[str, tuple[int, ...]]
) -> int | None:
    """How many values ``node`` has for an index that it reads from ``tensor``."""
    if node.op_type == "OneHot" and node.input[0] == tensor:
        return _scalar(graph, node.input[1])
    if len(node.input) < 2 or node.input[1] != tensor:
        return None
    data = shapes.get(node.input[0])
    if data is None:
        return None
    match node.op_type:
        case "Gather" | "GatherElements" | "ScatterElements":
            return data[integer(node, "axis", 0)]
        case "GatherND" | "ScatterND":
            first = integer(node, "batch_dims", 0)
            indexed = shapes.get(tensor, (1,))[-1]
            return min(data[first : first + indexed])
    return None


def _scalar(graph: GraphProto, name: str) -> int | None:
    from onnx import numpy_helper

    for tensor in graph.initializer:
        if tensor.name == name:
            return int(np.asarray(numpy_helper.to_array(tensor)).reshape(-1)[0])
    return None
