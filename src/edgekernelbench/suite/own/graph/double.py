"""A model computed in float64 by ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from edgekernelbench.suite.own.graph.walk import attribute, graphs, tensors

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

_FLOAT, _HALF, _DOUBLE = 1, 10, 11  # of onnx.TensorProto.DataType
_DTYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype", "softmax_precision",
                     "precision")  # fmt: skip


class Reference:
    """Calls the model: all inputs and weights by name to all outputs by name.

    Raises:
        NotImplementedError: the reference evaluator lacks an operator.
    """

    def __init__(self, model: ModelProto, weights: Collection[str]) -> None:
        from onnx.reference import ReferenceEvaluator

        from edgekernelbench.suite.own.graph.operators import OPERATORS

        double = as_double(model, weights)
        self._inputs = {value.name: _numpy(value) for value in double.graph.input}
        self._evaluator = ReferenceEvaluator(double, new_ops=OPERATORS)
        self._outputs = [value.name for value in double.graph.output]

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        feeds = {name: arrays[name].astype(dtype) for name, dtype in self._inputs.items()}
        results: Any = self._evaluator.run(None, feeds)
        return {
            name: np.asarray(values) for name, values in zip(self._outputs, results, strict=True)
        }


def as_double(model: ModelProto, weights: Collection[str]) -> ModelProto:
    """A copy in which float32 and float16 are float64 throughout, and weights are graph inputs."""
    from onnx import ModelProto

    copy = ModelProto()
    copy.CopyFrom(model)
    for tensor in tensors(copy.graph):
        _widen(tensor)
    for graph in graphs(copy.graph):
        del graph.value_info[:]
        for value in (*graph.input, *graph.output):
            _widen_type(value)
        for node in graph.node:
            _widen_node(node)
    _to_inputs(copy, weights)
    return copy


def _widen(tensor: TensorProto) -> None:
    from onnx import numpy_helper

    if tensor.data_type in (_FLOAT, _HALF):
        values = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def _widen_type(value: ValueInfoProto) -> None:
    if value.type.tensor_type.elem_type in (_FLOAT, _HALF):
        value.type.tensor_type.elem_type = _DOUBLE


def _widen_node(node: NodeProto) -> None:
    from onnx import helper

    for name in _DTYPE_ATTRIBUTES:
        found = attribute(node, name)
        if found is not None and found.i in (_FLOAT, _HALF):
            found.i = _DOUBLE
    if node.op_type == "ConstantOfShape" and attribute(node, "value") is None:
        node.attribute.append(
            helper.make_attribute("value", helper.make_tensor("value", _DOUBLE, [1], [0.0]))
        )
    if node.op_type == "Constant":
        _widen_constant(node)


def _widen_constant(node: NodeProto) -> None:
    """A number given as an attribute becomes a tensor, whose dtype can be chosen."""
    from onnx import helper

    for given in node.attribute:
        if given.name in ("value_float", "value_floats"):
            numbers = [given.f] if given.name == "value_float" else list(given.floats)
            dims = [] if given.name == "value_float" else [len(numbers)]
            tensor = helper.make_tensor("value", _DOUBLE, dims, numbers)
            given.CopyFrom(helper.make_attribute("value", tensor))


def _to_inputs(model: ModelProto, weights: Collection[str]) -> None:
    from onnx import helper

    graph = model.graph
    kept = []
    for tensor in graph.initializer:
        if tensor.name in weights:
            graph.input.append(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            )
        else:
            kept.append(tensor)
    fresh = [type(tensor).FromString(tensor.SerializeToString()) for tensor in kept]
    del graph.initializer[:]
    graph.initializer.extend(fresh)


def _numpy(value: ValueInfoProto) -> np.dtype:
    from onnx import helper

    return helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
