"""Small models of the structures that the cut has to see through."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.suite.own.models import model, value, weights


class Net:
    """A model under construction; every call adds a node and returns its result's name."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: dict[str, np.ndarray] = {}

    def __call__(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        names = [f"{kind.lower()}{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0]

    def held(self, values: object) -> str:
        array = np.asarray(values)
        name = f"held{len(self.tensors)}"
        self.tensors[name] = array.astype(np.float32) if array.dtype.kind == "f" else array
        return name

    def weight(self, *shape: int) -> str:
        return self.held(weights(*shape, seed=len(self.tensors)))

    def conv(self, x: str, given: int, made: int, kernel: int = 3, **attributes: Any) -> str:
        pad = kernel // 2
        inputs = (x, self.weight(made, given, kernel, kernel), self.weight(made))
        return self("Conv", *inputs, pads=[pad] * 4, **attributes)

    def norm(self, x: str, channels: int) -> str:
        mean, scale, bias = (self.weight(channels) for _ in range(3))
        variance = self.held(1 + 0.1 * np.arange(channels, dtype=np.float32))
        return self("BatchNormalization", x, scale, bias, mean, variance)

    def layer_norm(self, x: str, size: int) -> str:
        centred = self("Sub", x, self("ReduceMean", x, axes=[-1], keepdims=1))
        variance = self("ReduceMean", self("Pow", centred, self.held(2.0)), axes=[-1], keepdims=1)
        deviation = self("Sqrt", self("Add", variance, self.held(1e-5)))
        scaled = self("Mul", self("Div", centred, deviation), self.weight(size))
        return self("Add", scaled, self.weight(size))

    def gelu(self, x: str) -> str:
        erf = self("Erf", self("Div", x, self.held(2.0**0.5)))
        return self("Mul", self("Mul", x, self("Add", erf, self.held(1.0))), self.held(0.5))

    def softmax(self, x: str) -> str:
        shifted = self("Sub", x, self("ReduceMax", x, axes=[-1], keepdims=1))
        powers = self("Exp", shifted)
        return self("Div", powers, self("ReduceSum", powers, self.held(np.array([-1])), keepdims=1))

    def model(self, shape: list[int], *outputs: str, x: str = "x") -> onnx.ModelProto:
        made = [value(name, None) for name in outputs]
        loose = model(self.nodes, [value(x, shape)], made, self.tensors)
        whole = onnx.shape_inference.infer_shapes(loose, strict_mode=True, data_prop=True)
        del loose.graph.output[:]
        loose.graph.output.extend(whole.graph.output)
        return loose


def residual() -> onnx.ModelProto:
    """Two equal convolutions with a skip around the second, then another skip with a projection."""
    net = Net()
    x = net("Relu", net.norm(net.conv("x", 4, 4), 4))
    x = net("Relu", net("Add", net.norm(net.conv(x, 4, 4), 4), x))
    side = net.conv(x, 4, 6, 1)
    x = net("Relu", net("Add", net.conv(x, 4, 6), side))
    return net.model([1, 4, 6, 6], x)


def attention() -> onnx.ModelProto:
    """One head, norms and GELU taken apart."""
    net = Net()
    y = net.layer_norm("x", 8)
    query, key, given = (
        net("Add", net("MatMul", y, net.weight(8, 8)), net.weight(8)) for _ in range(3)
    )
    scores = net("MatMul", query, net("Transpose", key, perm=[0, 2, 1]))
    mixed = net("MatMul", net.softmax(net("Mul", scores, net.held(8**-0.5))), given)
    x = net("Add", "x", net("MatMul", mixed, net.weight(8, 8)))
    y = net.gelu(net("Add", net("MatMul", x, net.weight(8, 16)), net.weight(16)))
    return net.model([1, 6, 8], net("Add", x, net("MatMul", y, net.weight(16, 8))))


def excitation() -> onnx.ModelProto:
    """Squeeze and excitation: a small branch that scales the large one."""
    net = Net()
    x = net("HardSwish", net.conv("x", 4, 8))
    scale = net("Relu", net.conv(net("GlobalAveragePool", x), 8, 2, 1))
    scale = net("HardSigmoid", net.conv(scale, 2, 8, 1))
    return net.model([1, 4, 6, 6], net.conv(net("Mul", x, scale), 8, 3, 1))


def shuffle() -> onnx.ModelProto:
    """Splits, reshapes with a computed shape, transposes, joins: elements moved all over."""
    net = Net()
    first = net("Split", "x", outputs=2, axis=1)
    second = first.replace("_0", "_1")
    y = net("Relu", net.conv(second, 2, 2))
    joined = net("Concat", first, y, axis=1)
    batch = net("Gather", net("Shape", joined), net.held(np.array([0])), axis=0)
    shape = net("Concat", batch, net.held(np.array([2, 2, 6, 6])), axis=0)
    turned = net("Transpose", net("Reshape", joined, shape), perm=[0, 2, 1, 3, 4])
    flat = net("Reshape", turned, net.held(np.array([1, 4, 6, 6])))
    return net.model([1, 4, 6, 6], net.conv(flat, 4, 3, 1))


def outputs() -> onnx.ModelProto:
    """What is computed on the way is an output too, and is read by two that follow."""
    net = Net()
    x = net("Relu", net.conv("x", 3, 4))
    return net.model([1, 3, 5, 5], x, net("Sigmoid", net.conv(x, 4, 4)), net("Tanh", x))


STRUCTURES = {
    "residual": residual,
    "attention": attention,
    "excitation": excitation,
    "shuffle": shuffle,
    "outputs": outputs,
}
