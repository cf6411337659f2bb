"""Small ONNX models, as exporters would write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32 = TensorProto.FLOAT


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 4
    values = np.random.default_rng([seed, *shape]).standard_normal(shape)
    return (values / np.sqrt(fan_in)).astype(np.float32)


def value(name: str, shape: Sequence[int | str] | None, dtype: int = F32) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: dict[str, np.ndarray] | None = None,
    opset: int = 17,
    domain: str = "",
) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in (initializers or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", opset)]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def save(made: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(made.SerializeToString())
    return path


def one(kind: str, *shape: int | str, dtype: int = F32, **attributes: object) -> onnx.ModelProto:
    """One operator of one input ``x`` to ``y`` of the same shape."""
    node = helper.make_node(kind, ["x"], ["y"], **attributes)
    return model([node], [value("x", shape, dtype)], [value("y", shape, dtype)])


def cnn() -> onnx.ModelProto:
    """Convolution, ReLU, pooling, fully connected; the batch is dynamic, names are no words."""
    nodes = [
        helper.make_node("Conv", ["input.1", "conv.weight", "conv.bias"], ["/c"], pads=[1] * 4),
        helper.make_node("Relu", ["/c"], ["/r"]),
        helper.make_node("MaxPool", ["/r"], ["/p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["/p"], ["/f"]),
        helper.make_node("Gemm", ["/f", "fc.weight", "fc.bias"], ["output"], transB=1),
    ]
    tensors = {
        "conv.weight": weights(5, 3, 3, 3),
        "conv.bias": weights(5),
        "fc.weight": weights(7, 60),
        "fc.bias": np.zeros(7, np.float32),
    }
    inputs, outputs = [value("input.1", ["N", 3, 6, 8])], [value("output", ["N", 7])]
    return model(nodes, inputs, outputs, tensors)


def quantised() -> onnx.ModelProto:
    """An 8-bit convolution between quantisation and dequantisation, per-channel weights."""
    rng = np.random.default_rng(1)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"]),
        helper.make_node("DequantizeLinear", ["wq", "sw", "zw"], ["wd"], axis=0),
        helper.make_node("DequantizeLinear", ["bq", "sb", "zb"], ["bd"], axis=0),
        helper.make_node("Conv", ["xd", "wd", "bd"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "sy", "zy"], ["y"]),
    ]
    scale = (0.004 * rng.uniform(0.5, 1, 6)).astype(np.float32)
    tensors = {
        "sx": np.float32(0.02),
        "zx": np.uint8(128),
        "wq": rng.integers(-127, 128, (6, 4, 3, 3)).astype(np.int8),
        "sw": scale,
        "zw": np.zeros(6, np.int8),
        "bq": rng.integers(-500, 500, 6).astype(np.int32),
        "sb": 0.02 * scale,
        "zb": np.zeros(6, np.int32),
        "sy": np.float32(0.02),
        "zy": np.uint8(0),
    }
    inputs = [value("x", [1, 4, 7, 9])]
    return model(nodes, inputs, [value("y", [1, 6, 7, 9], TensorProto.UINT8)], tensors)


def embedding() -> onnx.ModelProto:
    """Rows of a table by indices, their mean, a product."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("ReduceMean", ["rows"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("MatMul", ["mean", "w"], ["y"]),
    ]
    tensors = {"table": weights(50, 16), "w": weights(16, 5)}
    inputs = [value("ids", [3, 6], TensorProto.INT64)]
    return model(nodes, inputs, [value("y", [3, 5])], tensors)
