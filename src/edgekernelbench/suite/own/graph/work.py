"""Nominal operations of a graph: a multiply-add counts 2, movement of elements nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from edgekernelbench.suite.own.graph.walk import attribute, attribute_graphs, integer

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

Shapes = Mapping[str, tuple[int, ...]]

MOVEMENT = frozenset(
    ["Cast", "CastLike", "Compress", "Concat", "Constant", "ConstantOfShape", "DepthToSpace",
     "Dropout", "Expand", "EyeLike", "Flatten", "Gather", "GatherElements", "GatherND", "Identity",
     "NonZero", "OneHot", "Pad", "Range", "Reshape", "ReverseSequence", "ScatterElements",
     "ScatterND", "Shape", "Size", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile",
     "Transpose", "Trilu", "Unsqueeze", "Where", "CenterCropPad"]
)  # fmt: skip
_INTEGERS = (6, 7)  # of onnx.TensorProto.DataType: those that a trip count may have
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_PER_ELEMENT = {
    "Softmax": 5, "LogSoftmax": 5, "LayerNormalization": 7, "InstanceNormalization": 7,
    "GroupNormalization": 7, "RMSNormalization": 5, "BatchNormalization": 2, "LRN": 10,
    "Gelu": 6, "HardSwish": 4, "Mish": 5, "QuantizeLinear": 4, "DequantizeLinear": 2,
    "DynamicQuantizeLinear": 6, "Resize": 8, "GridSample": 12,
}  # fmt: skip


def operations(graph: GraphProto, shapes: Shapes, numbers: Mapping[str, int] = {}) -> int:
    """The sum over the nodes; a loop's body counts as often as it is known to run, of branches
    the largest counts.

    Args:
        numbers: integers of one element that are known from around the graph.
    """
    known = dict(shapes)
    for value in (*graph.input, *graph.value_info, *graph.output):
        extents = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        known.setdefault(value.name, tuple(extents))
    numbers = {**numbers, **_numbers(graph)}
    return sum(_nested(node, known, numbers) + operations_of(node, known) for node in graph.node)


def _nested(node: NodeProto, shapes: Shapes, numbers: Mapping[str, int]) -> int:
    """Operations inside a node. An empty body runs too: each of its nodes counts at least 1."""
    bodies = [operations(body, shapes, numbers) + len(body.node) for body in attribute_graphs(node)]
    return max(bodies, default=0) * _trips(node, shapes, numbers)


def _trips(node: NodeProto, shapes: Shapes, numbers: Mapping[str, int]) -> int:
    if node.op_type == "Loop" and node.input[0]:
        return max(1, numbers.get(node.input[0], 1))
    if node.op_type == "Scan":
        scanned = integer(node, "num_scan_inputs", 1)
        axes = attribute(node, "scan_input_axes")
        shape = shapes.get(node.input[-scanned], ())
        axis = axes.ints[0] if axes is not None and axes.ints else 0
        return shape[axis] if -len(shape) <= axis < len(shape) else 1
    return 1


def _numbers(graph: GraphProto) -> dict[str, int]:
    """The integers of one element that a graph holds."""
    from onnx import numpy_helper

    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        value = attribute(node, "value") if node.op_type == "Constant" else None
        if value is not None:
            tensors[node.output[0]] = value.t
    return {
        name: int(numpy_helper.to_array(tensor).reshape(-1)[0])
        for name, tensor in tensors.items()
        if tensor.data_type in _INTEGERS and math.prod(tensor.dims) == 1
    }


def operations_of(node: NodeProto, shapes: Shapes) -> int:
    given = [shapes.get(name, ()) for name in node.input]
    made = [shapes.get(name, ()) for name in node.output]
    size_in = math.prod(given[0]) if given else 0
    size_out = math.prod(made[0]) if made else 0
    kind = node.op_type
    if kind in MOVEMENT:
        return 0
    if kind in _GATES:
        return _recurrent(node, given)
    if kind.startswith("Reduce") or kind in ("ArgMax", "ArgMin", "CumSum", "TopK"):
        return size_in
    if kind.startswith("Global") and kind.endswith("Pool"):
        return size_in
    if kind.endswith("Pool"):
        return size_out * _window(node)
    terms = accumulated(node, shapes)
    if terms > 1:
        return 2 * terms * (size_in if kind == "ConvTranspose" else size_out)
    return size_out * _PER_ELEMENT.get(kind, max(1, len(node.input) - 1))


def accumulated(node: NodeProto, shapes: Shapes) -> int:
    """Terms summed into one output element; of a transposed convolution, products of one input
    element."""
    given = [shapes.get(name, ()) for name in node.input]
    match node.op_type:
        case "Conv" | "ConvInteger" | "DeformConv" | "ConvTranspose":
            return math.prod(given[1][1:])
        case "QLinearConv":
            return math.prod(given[3][1:])
        case "MatMul" | "MatMulInteger" | "QLinearMatMul":
            return given[0][-1] if given[0] else 1
        case "Gemm":
            return given[0][0 if integer(node, "transA", 0) else 1] if given[0] else 1
        case "Einsum":
            return _contracted(node, given)
        case "AveragePool" | "LpPool":
            return _window(node)
    return 1


def reduced(node: NodeProto, shapes: Shapes) -> int:
    """How many input elements go into one output element of a reduction, pooling or softmax."""
    given, made = shapes.get(node.input[0], ()), shapes.get(node.output[0], ())
    if node.op_type in ("Softmax", "LogSoftmax"):
        return given[integer(node, "axis", -1)] if given else 1
    return max(1, math.prod(given) // max(1, math.prod(made)))


def _window(node: NodeProto) -> int:
    kernel = attribute(node, "kernel_shape")
    return math.prod(kernel.ints) if kernel is not None else 1


def _recurrent(node: NodeProto, given: list[tuple[int, ...]]) -> int:
    """Steps, batch and directions times the two products of a step."""
    if len(given) < 3 or len(given[0]) != 3:
        return 0
    first, second, width = given[0]
    directions, rows, _ = given[1]
    hidden = rows // _GATES[node.op_type]
    return 2 * first * second * directions * rows * (width + hidden)


def _contracted(node: NodeProto, given: list[tuple[int, ...]]) -> int:
    equation = attribute(node, "equation")
    text = "" if equation is None else equation.s.decode().replace(" ", "")
    left, arrow, right = text.partition("->")
    if not arrow:
        return 1
    extents = {
        letter: extent
        for term, shape in zip(left.split(","), given, strict=False)
        for letter, extent in zip(term, shape, strict=False)
    }
    return math.prod(extent for letter, extent in extents.items() if letter not in right)
