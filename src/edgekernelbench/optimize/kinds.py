"""What an operator means for the cut: which ones start a group, which ones join one."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import NodeProto


class Kind(Enum):
    """``ANCHOR`` has a group of its own that element-wise work may join behind it. ``ROW`` reduces
    or normalises: groups of rows and element-wise work grow around it, since their values are the
    same few rows. ``POINT`` is element-wise, ``MOVE`` only places elements elsewhere."""

    ANCHOR = "anchor"
    ROW = "row"
    POINT = "point"
    MOVE = "move"


_ROWS = frozenset(
    ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL1",
     "ReduceL2", "ReduceLogSumExp", "ReduceLogSum", "ReduceProd", "Softmax", "LogSoftmax",
     "LayerNormalization", "RMSNormalization", "InstanceNormalization", "GroupNormalization",
     "LpNormalization", "MeanVarianceNormalization"]
)  # fmt: skip
_POINTS = frozenset(
    ["Abs", "Acos", "Add", "And", "Asin", "Atan", "BatchNormalization", "BitShift", "BitwiseAnd",
     "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "Ceil", "Celu", "Clip", "Cos", "Cosh",
     "DequantizeLinear", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater",
     "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Less",
     "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "PRelu",
     "Pow", "QuantizeLinear", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign",
     "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh",
     "ThresholdedRelu", "Where", "Xor"]
)  # fmt: skip
_MOVES = frozenset(
    ["DepthToSpace", "Dropout", "Expand", "Flatten", "Identity", "Pad", "Reshape", "Slice",
     "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"]
)  # fmt: skip


def kind_of(node: NodeProto) -> Kind:
    """Every operator that is not known starts a group."""
    if node.op_type in _ROWS:
        return Kind.ROW
    if node.op_type in _POINTS:
        return Kind.POINT
    return Kind.MOVE if node.op_type in _MOVES else Kind.ANCHOR


def leads(node: NodeProto) -> bool:
    """Whether it may stand in front of the operator that reads it, in that one's group."""
    return kind_of(node) is Kind.MOVE or node.op_type in ("DequantizeLinear", "Cast")
