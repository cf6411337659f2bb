"""ONNX twins: a small graph builder for ``@pattern.twin`` functions.

In such a function an activation is a `Value` and a const input an array, so that weights can be
rearranged by NumPy at once. ``g.Conv(x, w, strides=[2, 2])`` adds an operator; arrays, numbers
and lists of integers become initializers. Float64 arrays and Python floats take the dtype of
the workload's ``T``; arrays of other dtypes keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.patterns.registry import arguments

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

    from edgekernelbench.suite.model import TensorSpec, Workload

OPSET = 21
_IR_VERSION = 10

_FAITHFUL = {"session.qdq_matmulnbits_accuracy_level": "1"}
_EXACT_SUMS = {"session.x64quantprecision": "1"}


def session_config(model: bytes) -> dict[str, str]:
    """ONNX Runtime session entries under which a serialized model computes what it says.

    By default the runtime quantises the activations of 4-bit products to 8 bits: faster, and
    outside of the tolerance. On x86 processors without VNNI, QLinear operators also add pairs of u8
    times s8 products with saturation to 16 bits, so that large weights give wrong sums; for models
    that have such operators the second entry makes them take u8 weights. (Elsewhere it would break
    per-channel DequantizeLinear without zero points.)
    """
    return _FAITHFUL | (_EXACT_SUMS if b"QLinear" in model else {})


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the graph."""

    name: str


Operand = Value | np.ndarray | float | int | Sequence[int] | None
"""What an operator takes; None leaves an optional input out."""


class Graph:
    """Collects nodes and initializers. Any attribute is an operator: ``g.Add(a, b)``."""

    def __init__(self, float_dtype: np.dtype, const: Mapping[str, np.ndarray]) -> None:
        self.float_dtype = float_dtype
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []
        self._const_names = {id(array): name for name, array in const.items()}
        self._kept: dict[str, np.ndarray] = {}
        self._count = 0

    def __getattr__(self, operator: str) -> Callable[..., Value]:
        if not operator[:1].isupper():
            raise AttributeError(operator)
        return lambda *operands, **attributes: self.op(operator, *operands, **attributes)[0]

    def op(
        self, operator: str, *operands: Operand, outputs: int = 1, **attributes: Any
    ) -> tuple[Value, ...]:
        """Add an operator with several outputs."""
        from onnx import helper

        names = [self._input_name(operand) for operand in operands]
        values = tuple(Value(self._fresh(operator)) for _ in range(outputs))
        node = helper.make_node(operator, names, [value.name for value in values], **attributes)
        self.nodes.append(node)
        return values

    def value(self, array: np.ndarray) -> Value:
        """An initializer as a value."""
        return Value(self._initializer(array))

    def uint4(self, array: np.ndarray) -> Value:
        """An initializer of 4-bit numbers 0..15, two to a byte; the last extent must be even."""
        from onnx import TensorProto, helper

        name = self._fresh("const")
        flat = array.astype(np.uint8).reshape(-1)
        packed = (flat[0::2] | flat[1::2] << 4).tobytes()
        self.initializers.append(
            helper.make_tensor(name, TensorProto.UINT4, array.shape, packed, raw=True)
        )
        return Value(name)

    def cast(self, value: Value, dtype: DType | None = None) -> Value:
        """``value`` as another dtype; as the workload's ``T`` if left out."""
        numpy = self.float_dtype if dtype is None else dtype.numpy
        return self.Cast(value, to=_onnx_dtype(numpy))

    def _input_name(self, operand: Operand) -> str:
        if isinstance(operand, Value):
            return operand.name
        return "" if operand is None else self._initializer(operand)

    def _initializer(self, operand: np.ndarray | float | int | Sequence[int]) -> str:
        from onnx import numpy_helper

        name = self._const_names.get(id(operand))
        if name in self._kept:
            return name
        array = np.asarray(operand)
        if array.dtype == np.float64:
            array = array.astype(self.float_dtype)
        name = name or self._fresh("const")
        self._kept[name] = array
        # Not `ascontiguousarray`: it turns a scalar into an array of one element.
        self.initializers.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem.lower()}.{self._count}"


def build_twin(workload: Workload, inputs: Mapping[str, np.ndarray]) -> ModelProto | None:
    """The workload as an ONNX model, const inputs baked in; None without a twin.

    Graph inputs are the non-const inputs that the twin uses, under their names.
    """
    pattern = workload.definition.pattern
    if pattern.twin_model is not None:
        return pattern.twin_model(inputs)
    if pattern.build_twin is None:
        if pattern.no_twin is None:
            raise LookupError(f"{pattern.id} has neither a twin nor a reason not to have one")
        return None
    const = {s.name: np.asarray(inputs[s.name]) for s in workload.input_specs if s.const}
    graph = Graph(workload.float_dtype.numpy, const)
    values = {s.name: Value(s.name) for s in workload.input_specs if not s.const}
    available = {**workload.sizes, **const, **values}
    who = f"the twin of {pattern.id}"
    with pattern.guard():
        result = pattern.build_twin(graph, **arguments(pattern.build_twin, available, who, skip=1))
    return _model(workload, graph, (result,) if isinstance(result, Value) else tuple(result))


def run_twin(model: ModelProto, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Outputs of a twin in ONNX Runtime on one thread; ``inputs`` may hold more than it uses."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    serialized = model.SerializeToString()
    for key, value in session_config(serialized).items():
        options.add_session_config_entry(key, value)
    session = onnxruntime.InferenceSession(serialized, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    feeds = {given.name: inputs[given.name] for given in session.get_inputs()}
    results = session.run(None, feeds)
    return {name: np.asarray(value) for name, value in zip(names, results, strict=True)}


def _model(workload: Workload, graph: Graph, results: tuple[Value, ...]) -> ModelProto:
    from onnx import checker, helper

    for value, spec in zip(results, workload.output_specs, strict=True):
        graph.nodes.append(helper.make_node("Identity", [value.name], [spec.name]))
    _drop_identities(graph.nodes, {spec.name for spec in workload.output_specs})
    proto = helper.make_graph(
        graph.nodes,
        workload.id,
        [_value_info(spec) for spec in workload.input_specs if not spec.const],
        [_value_info(spec) for spec in workload.output_specs],
        graph.initializers,
    )
    model = helper.make_model(
        proto,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=_IR_VERSION,
        producer_name="edgekernelbench",
        doc_string=_doc(workload),
    )
    checker.check_model(model, full_check=True)
    return model


def _drop_identities(nodes: list[NodeProto], outputs: set[str]) -> None:
    """Let the node that computes an output write it directly, if nothing else reads it."""
    for identity in [n for n in nodes if n.op_type == "Identity" and n.output[0] in outputs]:
        inner, outer = identity.input[0], identity.output[0]
        readers = sum(name == inner for node in nodes for name in node.input)
        makers = [n for n in nodes if inner in n.output]
        if readers == 1 and makers:
            names = [outer if name == inner else name for name in makers[0].output]
            del makers[0].output[:]
            makers[0].output.extend(names)
            nodes.remove(identity)


def _value_info(spec: TensorSpec) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(spec.name, _onnx_dtype(spec.dtype.numpy), spec.shape)


def _onnx_dtype(dtype: np.dtype) -> int:
    from onnx import helper

    return helper.np_dtype_to_tensor_dtype(dtype)


def _doc(workload: Workload) -> str:
    text = f"{workload.pattern}: {workload.definition.formula}"
    if workload.float_dtype is DType.F16:
        text += " (f16 in and out; runtimes are expected to accumulate sums in f32)"
    return text
