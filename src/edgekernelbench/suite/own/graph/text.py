"""A graph as text: what an author is shown of a model."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from edgekernelbench.suite.own.graph.dtypes import dtype_of, spelled
from edgekernelbench.suite.own.graph.shapes import known_shapes

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

_SHOWN = 16


def operators_text(model: ModelProto, weights: frozenset[str]) -> str:
    """One line an operator: ``y[1, 8] = Gemm(x, w, b; transB=1)``.

    The first line carries a digest of the model, so that two models of one structure differ.
    """
    opset = max(i.version for i in model.opset_import if i.domain in ("", "ai.onnx"))
    digest = hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()
    lines = [f"# ONNX, opset {opset}; model {digest[:16]}"]
    for tensor in model.graph.initializer:
        if tensor.name not in weights:
            lines.append(f"{tensor.name} = {_tensor(tensor)}")
    return "\n".join(lines + _graph(model.graph, known_shapes(model), "")) + "\n"


def _graph(graph: GraphProto, shapes: dict[str, tuple[int, ...]], indent: str) -> list[str]:
    lines: list[str] = []
    for node in graph.node:
        lines.append(indent + _node(node, shapes))
        for attribute in node.attribute:
            if attribute.HasField("g"):
                lines.append(f"{indent}  {attribute.name}:")
                lines += _graph(attribute.g, shapes, indent + "    ")
    return lines


def _node(node: NodeProto, shapes: dict[str, tuple[int, ...]]) -> str:
    made = ", ".join(f"{n}{list(shapes[n])}" if n in shapes else n for n in node.output if n)
    given = ", ".join(name or "none" for name in node.input)
    attributes = [f"{a.name}={_value(a)}" for a in node.attribute if not a.HasField("g")]
    told = "; ".join(part for part in (given, ", ".join(attributes)) if part)
    return f"{made} = {node.op_type}({told})"


def _value(attribute: AttributeProto) -> str:
    from onnx import helper

    if attribute.HasField("t"):
        return _tensor(attribute.t)
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return repr(value.decode(errors="replace"))
    if attribute.name in ("to", "dtype") and isinstance(value, int):
        return str(dtype_of(value) or spelled(value))
    if isinstance(value, float):
        return f"{value:.8g}"
    return str(list(value)) if not isinstance(value, (int, str)) else str(value)


def _tensor(tensor: TensorProto) -> str:
    from onnx import numpy_helper

    dtype = dtype_of(tensor.data_type) or spelled(tensor.data_type)
    values = np.asarray(numpy_helper.to_array(tensor))
    dims = ", ".join(map(str, tensor.dims))
    if values.size > _SHOWN:
        return f"{dtype}[{dims}] (a constant of the model)"
    return f"{dtype}[{dims}] {values.tolist()}"
