"""Writes five small models of the kinds that edge devices run, with random weights, as ONNX files.

    python benchmarks/edge_models.py FOLDER [NAME ...]

- ``resnet8``: MLPerf Tiny's image classification network, 32 x 32, batch norms not folded;
- ``ds_cnn``: MLPerf Tiny's keyword spotting network, 49 x 10 coefficients;
- ``mobilenet``: MobileNetV2 of width 0.35 at 96 x 96, batch norms folded, ReLU6 as Clip;
- ``transformer``: an encoder of two layers, 32 tokens, width 64, four heads, with layer norms and
  GELU in the pieces that exporters take them apart into;
- ``bert_tiny``: the same at the size of BERT-Tiny's encoder, 128 tokens, width 128, two heads.

Weights are scaled so that the values of all layers have about the same size; what a network is
trained for changes no time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 17


class Graph:
    """A model under construction; each method adds nodes and returns the name of the result."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self._rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: list[onnx.TensorProto] = []

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        output = f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(
            helper.make_node(kind, list(inputs), [output], name=f"/{output}", **attributes)
        )
        return output

    def constant(self, values: np.ndarray, kind: str = "c") -> str:
        name = f"{kind}.{len(self._tensors)}"
        self._tensors.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def number(self, value: float) -> str:
        return self.constant(np.array(value, np.float32))

    def weight(self, *shape: int, fan_in: int, gain: float = 1.0) -> str:
        scale = gain / np.sqrt(fan_in)
        values = scale * self._rng.standard_normal(shape)
        return self.constant(values.astype(np.float32), "weight")

    def vector(self, size: int, centre: float = 0.0, spread: float = 0.1) -> str:
        values = centre + spread * self._rng.standard_normal(size)
        return self.constant(values.astype(np.float32), "vector")

    # ------------------------------------------------------------ layers
    def conv(
        self,
        x: str,
        channels: tuple[int, int],
        kernel: tuple[int, int],
        stride: int = 1,
        pads: Sequence[int] | None = None,
        *,
        depthwise: bool = False,
        norm: bool = False,
        gain: float = 2.0**0.5,
    ) -> str:
        given, made = channels
        inner = 1 if depthwise else given
        height, width = kernel
        fan_in = inner * height * width
        inputs = [x, self.weight(made, inner, height, width, fan_in=fan_in, gain=gain)]
        if not norm:
            inputs.append(self.vector(made))
        half = (height // 2, width // 2)
        y = self.node("Conv", *inputs, kernel_shape=list(kernel), strides=[stride, stride],
                      pads=list(pads or (*half, *half)),
                      group=given if depthwise else 1)  # fmt: skip
        if not norm:
            return y
        positive = np.abs(1 + 0.1 * self._rng.standard_normal(made)).astype(np.float32)
        return self.node("BatchNormalization", y, self.vector(made, 1.0), self.vector(made),
                         self.vector(made), self.constant(positive), epsilon=1e-5)  # fmt: skip

    def dense(self, x: str, given: int, made: int, gain: float = 1.0) -> str:
        y = self.node("MatMul", x, self.weight(given, made, fan_in=given, gain=gain))
        return self.node("Add", self.vector(made), y)

    def layer_norm(self, x: str, size: int) -> str:
        centred = self.node("Sub", x, self.node("ReduceMean", x, axes=[-1], keepdims=1))
        squares = self.node("Pow", centred, self.number(2))
        variance = self.node("ReduceMean", squares, axes=[-1], keepdims=1)
        deviation = self.node("Sqrt", self.node("Add", variance, self.number(1e-5)))
        normal = self.node("Div", centred, deviation)
        scaled = self.node("Mul", normal, self.vector(size, 1.0))
        return self.node("Add", scaled, self.vector(size))

    def gelu(self, x: str) -> str:
        erf = self.node("Erf", self.node("Div", x, self.number(2**0.5)))
        product = self.node("Mul", x, self.node("Add", erf, self.number(1)))
        return self.node("Mul", product, self.number(0.5))

    def reshape(self, x: str, *shape: int) -> str:
        return self.node("Reshape", x, self.constant(np.array(shape, np.int64)))

    def save(self, folder: Path, given: onnx.ValueInfoProto, made: str, shape: list[int]) -> Path:
        output = helper.make_tensor_value_info(made, onnx.TensorProto.FLOAT, shape)
        graph = helper.make_graph(self._nodes, self.name, [given], [output], self._tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        file = folder / f"{self.name}.onnx"
        onnx.save(model, file)
        return file


def image(name: str, *shape: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, list(shape))


# ---------------------------------------------------------------- models
def resnet8(folder: Path) -> Path:
    g = Graph("resnet8", 1)
    x = g.node("Relu", g.conv("image", (3, 16), (3, 3), norm=True))
    given = 16
    for made, stride in ((16, 1), (32, 2), (64, 2)):
        y = g.node("Relu", g.conv(x, (given, made), (3, 3), stride, norm=True))
        y = g.conv(y, (made, made), (3, 3), norm=True, gain=1.0)
        side = x if stride == 1 else g.conv(x, (given, made), (1, 1), stride, gain=1.0)
        x, given = g.node("Relu", g.node("Add", y, side)), made
    pooled = g.node("Flatten", g.node("GlobalAveragePool", x), axis=1)
    logits = g.node("Gemm", pooled, g.weight(10, 64, fan_in=64), g.vector(10), transB=1)
    return g.save(folder, image("image", 1, 3, 32, 32), g.node("Softmax", logits, axis=-1), [1, 10])


def ds_cnn(folder: Path) -> Path:
    g = Graph("ds_cnn", 2)
    x = g.node("Relu", g.conv("mfcc", (1, 64), (10, 4), 2, (4, 1, 5, 1)))
    for _ in range(4):
        x = g.node("Relu", g.conv(x, (64, 64), (3, 3), depthwise=True))
        x = g.node("Relu", g.conv(x, (64, 64), (1, 1)))
    pooled = g.node("Flatten", g.node("GlobalAveragePool", x), axis=1)
    logits = g.node("Gemm", pooled, g.weight(12, 64, fan_in=64), g.vector(12), transB=1)
    return g.save(folder, image("mfcc", 1, 1, 49, 10), g.node("Softmax", logits, axis=-1), [1, 12])


def mobilenet(folder: Path) -> Path:
    """MobileNetV2's table of (expansion, channels, repeats, stride), times 0.35, to eights."""
    g = Graph("mobilenet", 3)

    def relu6(x: str) -> str:
        return g.node("Clip", x, g.number(0), g.number(6))

    x, given = relu6(g.conv("image", (3, 16), (3, 3), 2)), 16
    for expansion, made, repeats, stride in (
        (1, 8, 1, 1), (6, 8, 2, 2), (6, 16, 3, 2), (6, 24, 4, 2), (6, 32, 3, 1), (6, 56, 3, 2),
        (6, 112, 1, 1),
    ):  # fmt: skip
        for number in range(repeats):
            wide, step = given * expansion, stride if number == 0 else 1
            y = relu6(g.conv(x, (given, wide), (1, 1))) if expansion > 1 else x
            y = relu6(g.conv(y, (wide, wide), (3, 3), step, depthwise=True))
            y = g.conv(y, (wide, made), (1, 1), gain=1.0)
            x = g.node("Add", x, y) if step == 1 and given == made else y
            given = made
    x = relu6(g.conv(x, (given, 1280), (1, 1)))
    pooled = g.node("Flatten", g.node("GlobalAveragePool", x), axis=1)
    logits = g.node("Gemm", pooled, g.weight(100, 1280, fan_in=1280), g.vector(100), transB=1)
    return g.save(folder, image("image", 1, 3, 96, 96), logits, [1, 100])


def transformer(folder: Path) -> Path:
    return encoder(folder, "transformer", tokens=32, width=64, heads=4)


def bert_tiny(folder: Path) -> Path:
    return encoder(folder, "bert_tiny", tokens=128, width=128, heads=2)


def encoder(folder: Path, name: str, tokens: int, width: int, heads: int) -> Path:
    g = Graph(name, 4)
    size = width // heads

    def split(x: str, order: list[int]) -> str:
        return g.node("Transpose", g.reshape(x, 1, tokens, heads, size), perm=order)

    places = g.constant(
        0.3 * np.random.default_rng(5).standard_normal((1, tokens, width)).astype("f4")
    )
    x = g.node("Add", g.dense("features", width, width), places)
    for _ in range(2):
        y = g.layer_norm(x, width)
        q, k, v = (g.dense(y, width, width) for _ in range(3))
        scores = g.node("MatMul", split(q, [0, 2, 1, 3]), split(k, [0, 2, 3, 1]))
        weights = g.node("Softmax", g.node("Mul", scores, g.number(size**-0.5)), axis=-1)
        mixed = g.node("MatMul", weights, split(v, [0, 2, 1, 3]))
        joined = g.reshape(g.node("Transpose", mixed, perm=[0, 2, 1, 3]), 1, tokens, width)
        x = g.node("Add", x, g.dense(joined, width, width))
        y = g.gelu(g.dense(g.layer_norm(x, width), width, 4 * width))
        x = g.node("Add", x, g.dense(y, 4 * width, width))
    pooled = g.node("ReduceMean", g.layer_norm(x, width), axes=[1], keepdims=0)
    return g.save(folder, image("features", 1, tokens, width), g.dense(pooled, width, 10), [1, 10])


MODELS: dict[str, Callable[[Path], Path]] = {
    "resnet8": resnet8,
    "ds_cnn": ds_cnn,
    "mobilenet": mobilenet,
    "transformer": transformer,
    "bert_tiny": bert_tiny,
}


def main() -> None:
    folder, *names = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in names or MODELS:
        print(MODELS[name](Path(folder)))


if __name__ == "__main__":
    main()
