"""Single ONNX operators, lifted and interpreted, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgekernelbench.compilers.tvm.lift import LiftResult, lift
from edgekernelbench.compilers.tvm.lift.refusal import unsayable
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.verify import verify
from edgekernelbench.suite.twin import OPSET

_DTYPES = {d.numpy: d for d in DType}


@dataclass(frozen=True)
class Array:
    """A port."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    role: str


def model_of(
    nodes: Sequence[Any],
    inputs: dict[str, np.ndarray],
    outputs: dict[str, tuple[int, tuple[int, ...]]],
    constants: dict[str, np.ndarray],
) -> onnx.ModelProto:
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in inputs.items()
    ]
    results = [helper.make_tensor_value_info(n, t, s) for n, (t, s) in outputs.items()]
    held = [numpy_helper.from_array(a, n) for n, a in constants.items()]
    graph = helper.make_graph(list(nodes), "test", infos, results, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def run_onnx(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    import onnxruntime

    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def ports_of(inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> tuple[Array, ...]:
    return tuple(
        Array(name, _DTYPES[array.dtype], array.shape, role)
        for role, group in (("input", inputs), ("output", outputs))
        for name, array in group.items()
    )


def lift_model(
    model: onnx.ModelProto, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]
) -> LiftResult:
    fixed = tuple(tensor.name for tensor in model.graph.initializer)
    return lift(model, ports_of(inputs, outputs), fixed)


def check(
    operator: str,
    inputs: dict[str, np.ndarray],
    constants: dict[str, np.ndarray] | None = None,
    order: Sequence[str] | None = None,
    results: int = 1,
    **attributes: Any,
) -> None:
    """Lifts ``operator(inputs, constants)`` and compares it with ONNX Runtime."""
    constants = constants or {}
    names = list(order or [*inputs, *constants])
    made = [f"y{k}" for k in range(results)]
    node = helper.make_node(operator, names, made, **attributes)
    infer = model_of([node], inputs, {}, constants)
    shaped = _with_outputs(infer, made)
    want = run_onnx(shaped, inputs)
    result = lift_model(shaped, inputs, want)
    assert result.program is not None, result.reason
    assert not [d for d in verify(result.program) if d.severity == "error"]
    got = interpret(result.program, inputs, "declared")
    for name, array in want.items():
        np.testing.assert_allclose(got[name], array, rtol=2e-5, atol=1e-5, err_msg=name)


def _with_outputs(model: onnx.ModelProto, names: list[str]) -> onnx.ModelProto:
    """The model with outputs of the shapes that ONNX infers."""
    inferred = onnx.shape_inference.infer_shapes(_open_ended(model, names))
    known = {v.name: v for v in (*inferred.graph.value_info, *inferred.graph.output)}
    del model.graph.output[:]
    model.graph.output.extend(known[name] for name in names)
    return model


def _open_ended(model: onnx.ModelProto, names: list[str]) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    copy.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    return copy


RNG = np.random.default_rng(3)
X = RNG.normal(size=(3, 5, 4)).astype(np.float32)
Y = RNG.normal(size=(5, 4)).astype(np.float32)
P = np.abs(X) + 0.1
IMAGE = RNG.normal(size=(1, 3, 7, 6)).astype(np.float32)
S = RNG.integers(-9, 10, size=(3, 5)).astype(np.int32)


@pytest.mark.parametrize("name", ["Add", "Sub", "Mul", "Div", "Max", "Min"])
def test_arithmetic_with_broadcast(name: str) -> None:
    check(name, {"a": X, "b": Y})


@pytest.mark.parametrize(
    "name",
    ["Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Neg", "Relu", "Round", "Sigmoid", "Sign",
     "Sin", "Softplus", "Tanh", "Elu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish"],
)  # fmt: skip
def test_element_wise(name: str) -> None:
    check(name, {"a": X})


@pytest.mark.parametrize("name", ["Log", "Sqrt", "Reciprocal"])
def test_element_wise_on_positive_numbers(name: str) -> None:
    check(name, {"a": P})


@pytest.mark.parametrize("exponent", [0.5, 2.0, 3.0, 1.7])
def test_powers(exponent: float) -> None:
    check("Pow", {"a": P}, {"e": np.array([exponent], np.float32)})


@pytest.mark.parametrize(
    "name", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2"]
)
@pytest.mark.parametrize("axes", [[0], [1], [-1], [0, 2]])
def test_reductions(name: str, axes: list[int]) -> None:
    check(name, {"a": X}, {"axes": np.array(axes, np.int64)}, keepdims=0)


@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_positions_take_the_first_of_equals(name: str, keepdims: int) -> None:
    ties = np.round(X)
    check(name, {"a": ties}, axis=1, keepdims=keepdims)


def test_integers() -> None:
    check("Div", {"a": S}, {"b": np.array([4], np.int32)})
    check("Mul", {"a": S, "b": S.copy()})
    bytes_ = RNG.integers(0, 256, size=(3, 5)).astype(np.uint8)
    check("Add", {"a": bytes_, "b": bytes_[::-1].copy()})  # wraps


def test_conditions() -> None:
    check("Greater", {"a": X, "b": Y})
    check("Where", {"c": X > 0, "a": X, "b": -X})
    check("And", {"a": X > 0, "b": X < 1})
    check("Not", {"a": X > 0})
    check("IsNaN", {"a": np.where(X > 1, np.nan, X).astype(np.float32)})


@pytest.mark.parametrize("to", [TensorProto.INT32, TensorProto.FLOAT16, TensorProto.BOOL])
def test_casts(to: int) -> None:
    check("Cast", {"a": X}, to=to)


def test_moves() -> None:
    check("Transpose", {"a": X}, perm=[2, 0, 1])
    check("Reshape", {"a": X}, {"s": np.array([5, 12], np.int64)})
    check("Concat", {"a": X, "b": X + 1}, axis=1)
    check("Split", {"a": X}, {"s": np.array([2, 3], np.int64)}, results=2, axis=1)
    check("Expand", {"a": Y}, {"s": np.array([3, 5, 4], np.int64)})
    check("Tile", {"a": Y}, {"r": np.array([2, 1], np.int64)})
    ranges = {"s": [1], "e": [5], "x": [1], "t": [2]}
    check("Slice", {"a": X}, {k: np.array(v, np.int64) for k, v in ranges.items()})
    check("Pad", {"a": Y}, {"p": np.array([1, 0, 2, 3], np.int64)})
    check("Flatten", {"a": X})


def test_gathers() -> None:
    check("Gather", {"a": Y, "i": np.array([[4, 0], [-1, 2]], np.int64)}, axis=0)
    check("GatherElements", {"a": Y, "i": np.array([[0, 3, 1, 1]], np.int64)}, axis=0)


def test_windows() -> None:
    check("MaxPool", {"a": IMAGE}, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    check("AveragePool", {"a": IMAGE}, kernel_shape=[2, 2], strides=[1, 2])
    check("GlobalAveragePool", {"a": IMAGE})
    weights = {"w": RNG.normal(size=(4, 3, 3, 2)).astype(np.float32)}
    check("Conv", {"a": IMAGE}, weights, strides=[2, 1], pads=[1, 0, 1, 1])


def test_products_and_norms() -> None:
    check("MatMul", {"a": X, "b": Y.T.copy()})
    check("Gemm", {"a": Y, "b": Y + 1}, {"c": Y[:, 0].copy()}, transB=1, alpha=0.5)
    check("Softmax", {"a": X}, axis=1)
    check("LogSoftmax", {"a": X}, axis=-1)
    scale = {"g": np.ones(4, np.float32), "b": np.zeros(4, np.float32)}
    check("LayerNormalization", {"a": X}, scale)


def test_data_is_no_index_without_a_clamp() -> None:
    """The compiler trusts indices; the program must not."""
    index = np.array([3, 1], np.int64)
    node = helper.make_node("Gather", ["a", "i"], ["y"], axis=0)
    model = _with_outputs(model_of([node], {"a": Y, "i": index}, {}, {}), ["y"])
    result = lift_model(model, {"a": Y, "i": index}, {"y": Y[index]})
    assert result.program is not None, result.reason
    assert not [d for d in verify(result.program) if d.severity == "error"]
    wild = np.array([10**12, -(10**12)], np.int64)
    got = interpret(result.program, {"a": Y, "i": wild}, "declared")["y"]
    np.testing.assert_array_equal(got, Y[[4, 0]])


def test_an_output_that_is_an_input_is_copied() -> None:
    nodes = [
        helper.make_node("Identity", ["a"], ["y"]),
        helper.make_node("Relu", ["a"], ["z"]),
        helper.make_node("Identity", ["z"], ["z2"]),
    ]
    model = _with_outputs(model_of(nodes, {"a": Y}, {}, {}), ["y", "z", "z2"])
    result = lift_model(model, {"a": Y}, {"y": Y, "z": Y, "z2": Y})
    assert result.program is not None, result.reason
    got = interpret(result.program, {"a": Y}, "declared")
    relu = np.maximum(Y, 0)
    for name, want in {"y": Y, "z": relu, "z2": relu}.items():
        np.testing.assert_array_equal(got[name], want)


def test_an_unknown_input_is_refused() -> None:
    node = helper.make_node("Relu", ["a"], ["y"])
    model = _with_outputs(model_of([node], {"a": Y}, {}, {}), ["y"])
    result = lift(model, ports_of({}, {"y": Y}))
    assert result.program is None and "no port" in result.reason


def test_what_has_no_loops_is_refused() -> None:
    """TopK stays a call of a library function."""
    constants = {"k": np.array([2], np.int64)}
    node = helper.make_node("TopK", ["a", "k"], ["v", "i"])
    model = _with_outputs(model_of([node], {"a": Y}, {}, constants), ["v", "i"])
    outputs = {"v": Y[:, :2], "i": np.zeros((5, 2), np.int64)}
    result = lift_model(model, {"a": Y}, outputs)
    assert result.program is None and result.reason
    assert "ExternFunc" not in result.reason and "lowered to loops" in result.reason


def test_parts_that_no_kernel_has_are_named_in_words() -> None:
    assert str(unsayable("While")) == "it has a loop that ends by a condition, which no kernel has"
    assert "a Rare of the compiler" in str(unsayable("Rare"))


def test_a_scatter_of_the_compiler_is_refused_in_words() -> None:
    node = helper.make_node("ScatterElements", ["a", "i", "u"], ["y"], axis=0, reduction="add")
    index, update = np.zeros((3, 6), np.int64), np.ones((3, 6), np.float32)
    given = {"a": np.zeros((5, 6), np.float32), "i": index, "u": update}
    result = lift_model(
        _with_outputs(model_of([node], given, {}, {}), ["y"]), given, {"y": given["a"]}
    )
    assert result.program is None
    assert result.reason.startswith("function scatter_elements: it has ")
