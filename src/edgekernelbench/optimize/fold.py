"""What does not depend on inputs or weights is computed once, before the model is cut.

Exporters leave chains of Shape, Gather and Concat behind that only make the shape of a Reshape.
With static shapes they are numbers; as nodes they would tie groups together.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from edgekernelbench.optimize.view import reads
from edgekernelbench.suite.own.graph.shapes import known_shapes
from edgekernelbench.suite.own.graph.walk import attribute_graphs

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_MAX_ELEMENTS = 1 << 22


def folded(model: ModelProto, weights: Collection[str]) -> ModelProto:
    """A copy whose nodes all depend on an input or a weight, and all lead to an output.

    Args:
        weights: initializers that are redrawn, so nothing that depends on them is fixed.
    """
    from onnx import ModelProto, numpy_helper

    weights = frozenset(weights)
    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    shapes = known_shapes(copy)
    fixed = {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in graph.initializer
        if tensor.name not in weights
    }
    kept: list[NodeProto] = []
    for node in graph.node:
        values = _values(node, fixed, shapes, copy)
        if values is None:
            kept.append(node)
        else:
            fixed |= values
    kept = _live(kept, [value.name for value in graph.output])
    read = {name for node in kept for name in reads(node)}
    others = [tensor for tensor in model.graph.initializer if tensor.name in weights & read]
    fresh = [numpy_helper.from_array(fixed[name], name) for name in fixed if name in read]
    del graph.initializer[:]
    graph.initializer.extend([*others, *fresh])
    nodes = [type(node).FromString(node.SerializeToString()) for node in kept]
    del graph.node[:]
    graph.node.extend(nodes)
    return copy


def _values(
    node: NodeProto,
    fixed: dict[str, np.ndarray],
    shapes: dict[str, tuple[int, ...]],
    model: ModelProto,
) -> dict[str, np.ndarray] | None:
    """What a node makes, if that is known; None if it is not."""
    if node.op_type in ("Shape", "Size") and node.input[0] in shapes:
        shape = shapes[node.input[0]]
        feeds = {node.input[0]: np.broadcast_to(np.float32(0), shape)}
    elif all(name in fixed for name in reads(node)) and not any(attribute_graphs(node)):
        feeds = {name: fixed[name] for name in reads(node)}
    else:
        return None
    if any(np.prod(shapes.get(name, ()), dtype=float) > _MAX_ELEMENTS for name in node.output):
        return None
    try:
        return _run(node, feeds, {i.domain: i.version for i in model.opset_import})
    except Exception:  # operators may raise anything; the node then stays where it is
        return None


def _run(
    node: NodeProto, feeds: dict[str, np.ndarray], opsets: dict[str, int]
) -> dict[str, np.ndarray]:
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    names = [name for name in node.output if name]
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), list(value.shape)
        )
        for name, value in feeds.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in names]
    graph = helper.make_graph([node], "node", inputs, outputs)
    results: Any = ReferenceEvaluator(graph, opsets=opsets).run(None, feeds)
    return {name: np.asarray(value) for name, value in zip(names, results, strict=True)}


def _live(nodes: list[NodeProto], outputs: list[str]) -> list[NodeProto]:
    """Those that an output depends on."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            wanted |= set(reads(node))
            kept.append(node)
    return kept[::-1]
