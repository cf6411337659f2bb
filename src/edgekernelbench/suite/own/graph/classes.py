"""The tolerance class of a graph, by what it is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.model import ToleranceClass
from edgekernelbench.suite.own.graph.dtypes import dtype_of
from edgekernelbench.suite.own.graph.walk import attribute, integer, nodes
from edgekernelbench.suite.own.graph.work import MOVEMENT, Shapes, accumulated, reduced

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

_QUANTISING = frozenset(["QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul"])
_SUMS = frozenset(["Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum", "AveragePool",
                   "GlobalAveragePool", "ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2",
                   "ReduceSumSquare", "CumSum", "LayerNormalization", "InstanceNormalization",
                   "GroupNormalization", "RMSNormalization"])  # fmt: skip
_ELEMENTWISE = frozenset(["Abs", "Add", "BatchNormalization", "Ceil", "Clip", "Div", "Floor",
                          "HardSigmoid", "HardSwish", "LeakyRelu", "Max", "Min", "Mul", "Neg",
                          "PRelu", "Reciprocal", "Relu", "Round", "Sign", "Sqrt", "Sub", "MaxPool",
                          "GlobalMaxPool", "ReduceMax", "ReduceMin", "DequantizeLinear", "Resize",
                          "ThresholdedRelu"])  # fmt: skip
_TRANSCENDENTAL = frozenset(["Acos", "Asin", "Atan", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp",
                             "Gelu", "Log", "Mish", "Pow", "Selu", "Sigmoid", "Sin", "Sinh",
                             "Softplus", "Softsign", "Swish", "Tan", "Tanh"])  # fmt: skip


def tolerance_of(graph: GraphProto, dtypes: Iterable[DType]) -> ToleranceClass:
    """Classes as the suite's: that of the operator if there is one, else that of a graph.

    Args:
        dtypes: the outputs'.
    """
    floats = any(dtype.is_float for dtype in dtypes)
    quantised = any(node.op_type in _QUANTISING for node in nodes(graph))
    if not floats:
        return "int8_requant" if quantised or _rounds(graph) else "int_exact"
    if quantised:
        return "f32_dynamic_quant"
    width = "f16" if _has_half(graph) else "f32"
    working = computing(graph)
    if not working:
        rounded = width == "f16" and any(node.op_type == "Cast" for node in nodes(graph))
        return "f16_elementwise" if rounded else "exact_move"
    return cast(ToleranceClass, f"{width}_{_kind(working[0]) if len(working) == 1 else 'graph'}")


def computing(graph: GraphProto) -> list[NodeProto]:
    """Nodes that do more than move elements."""
    return [
        node
        for node in nodes(graph)
        if node.op_type not in MOVEMENT or attribute(node, "reduction") is not None
    ]


def accumulation_of(graph: GraphProto, shapes: Shapes) -> int:
    """Terms summed into one output element, where there is one operator; else 1."""
    working = computing(graph)
    if len(working) != 1 or _kind(working[0]) not in ("reduction", "softmax"):
        return 1
    return max(accumulated(working[0], shapes), reduced(working[0], shapes))


def _kind(node: NodeProto) -> str:
    if node.op_type in _SUMS:
        return "reduction"
    if node.op_type in ("Softmax", "LogSoftmax"):
        return "softmax"
    if node.op_type in ("LSTM", "GRU", "RNN"):
        return "recurrence"
    if node.op_type in _ELEMENTWISE:
        return "elementwise"
    return "transcendental" if node.op_type in _TRANSCENDENTAL else "graph"


def _rounds(graph: GraphProto) -> bool:
    """Whether integers are made of computed floats, so that a rounding error can move them."""
    return any(
        node.op_type == "Cast"
        and (made := dtype_of(integer(node, "to", 0))) is not None
        and made.is_int
        and (given := _dtypes(graph).get(node.input[0])) is not None
        and given.is_float
        for node in graph.node
    )


def _has_half(graph: GraphProto) -> bool:
    return DType.F16 in _dtypes(graph).values()


def _dtypes(graph: GraphProto) -> dict[str, DType | None]:
    values = [*graph.input, *graph.output, *graph.value_info]
    found = {value.name: dtype_of(value.type.tensor_type.elem_type) for value in values}
    return found | {tensor.name: dtype_of(tensor.data_type) for tensor in graph.initializer}
