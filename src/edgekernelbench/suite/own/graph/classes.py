"""The tolerance class of a graph, by what it is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.model import ToleranceClass
from edgekernelbench.suite.own.graph.walk import nodes
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
        return "int8_requant" if quantised else "int_exact"
    if quantised:
        return "f32_dynamic_quant"
    working = computing(graph)
    if not working:
        return "exact_move"
    width = "f16" if _has_half(graph) else "f32"
    return cast(ToleranceClass, f"{width}_{_kind(working[0]) if len(working) == 1 else 'graph'}")


def computing(graph: GraphProto) -> list[NodeProto]:
    """Nodes that do more than move elements."""
    return [node for node in nodes(graph) if node.op_type not in MOVEMENT]


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


def _has_half(graph: GraphProto) -> bool:
    half = 10  # onnx.TensorProto.FLOAT16
    values = [*graph.input, *graph.output, *graph.value_info]
    return any(value.type.tensor_type.elem_type == half for value in values)
