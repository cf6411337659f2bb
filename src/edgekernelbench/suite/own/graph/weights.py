"""Which initializers are weights, to be redrawn, and which belong to the model's structure.

A weight is a tensor of several numbers that only other numbers are computed from: floats, and
integers of a quantised model. What a shape, an axis, an index or a scale of sizes depends on is
fixed, and so is everything of one element and what no redraw would change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgekernelbench.suite.own.graph.dtypes import dtype_of
from edgekernelbench.suite.own.graph.walk import attribute, nodes

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto

_SHAPE_LIKE: dict[str, tuple[int, ...]] = {
    "Reshape": (1,), "Resize": (1, 2, 3), "Upsample": (1,), "Expand": (1,), "Slice": (1, 2, 3, 4),
    "Tile": (1,), "Pad": (1, 3), "ConstantOfShape": (0,), "Range": (0, 1, 2), "Squeeze": (1,),
    "Unsqueeze": (1,), "Split": (1,), "TopK": (1,), "OneHot": (1,), "CumSum": (1,),
    "CumProd": (1,), "Trilu": (1,), "Col2Im": (1, 2), "CenterCropPad": (1,), "AffineGrid": (1,),
    "MaxUnpool": (2,), "Loop": (0, 1), "If": (0,), "Compress": (1,), "DFT": (1, 2),
    "STFT": (1, 3), "Dropout": (1, 2), "Clip": (1, 2),
}  # fmt: skip
_QUANTISED: dict[str, tuple[int, ...]] = {
    "DequantizeLinear": (0, 2), "QuantizeLinear": (2,), "QLinearConv": (2, 3, 5, 7, 8),
    "QLinearMatMul": (0, 2, 3, 5, 7), "ConvInteger": (1, 3), "MatMulInteger": (0, 1, 2, 3),
}  # fmt: skip
"""Inputs that hold quantised numbers whatever their width."""


def lift_constants(graph: GraphProto) -> None:
    """Makes initializers of ``Constant`` nodes, where some exporters keep weights."""
    kept: list[NodeProto] = []
    for node in graph.node:
        value = attribute(node, "value") if node.op_type == "Constant" else None
        if value is None:
            kept.append(node)
        else:
            graph.initializer.add().CopyFrom(value.t)
            graph.initializer[-1].name = node.output[0]
    if len(kept) < len(graph.node):
        del graph.node[:]
        graph.node.extend(kept)


def weight_names(graph: GraphProto) -> list[str]:
    """Initializers that are weights, in their order."""
    structure = _structural(graph)
    quantised = _read_at(graph, _QUANTISED)
    return [
        tensor.name
        for tensor in graph.initializer
        if tensor.name not in structure and _is_weight(tensor, tensor.name in quantised)
    ]


def _is_weight(tensor: TensorProto, quantised: bool) -> bool:
    from onnx import numpy_helper

    dtype = dtype_of(tensor.data_type)
    if dtype is None or np.prod(tensor.dims, dtype=np.int64) <= 1 or 0 in tensor.dims:
        return False
    values = numpy_helper.to_array(tensor)
    if dtype.is_float:
        return bool(np.isfinite(values).all())
    if not dtype.is_int or not (quantised or dtype.bits == 8):
        return False
    return bool(values.min() != values.max())


def _structural(graph: GraphProto) -> set[str]:
    """All tensors that a shape, an axis or a branch is computed from."""
    makers = {output: node for node in nodes(graph) for output in node.output if output}
    pending = list(_read_at(graph, _SHAPE_LIKE))
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        maker = makers.get(name)
        if maker is not None and maker.op_type not in ("Shape", "Size"):
            pending += [given for given in maker.input if given]
    return found


def _read_at(graph: GraphProto, places: dict[str, tuple[int, ...]]) -> set[str]:
    return {
        node.input[index]
        for node in nodes(graph)
        for index in places.get(node.op_type, ())
        if index < len(node.input) and node.input[index]
    }
