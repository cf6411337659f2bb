"""An ONNX graph as calls of PyTorch functions. Runs on any device that PyTorch has."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgekernelbench.baselines.torch_node import Node
from edgekernelbench.baselines.torch_ops import OPERATORS


def load_torch() -> Any:
    """PyTorch, which is no dependency of this package."""
    return importlib.import_module("torch")


def torch_dtype(name: str) -> Any:
    """PyTorch's dtype of NumPy's name."""
    torch = load_torch()
    return torch.bool if name == "bool" else getattr(torch, name)


@dataclass(frozen=True, slots=True)
class _Step:
    function: Callable[..., Any]
    given: tuple[str, ...]
    made: tuple[str, ...]


class TorchGraph:
    """A model with its initializers on a device. What depends on them alone is computed once.

    Args:
        model: serialized.
        inputs: tensors by the graph's input names; they stay where they are.
        device: PyTorch's name of it.

    Raises:
        KeyError: an operator is not among `torch_ops.KNOWN`.
        torch_node.Unsupported: an operator has attributes that PyTorch's has not.
    """

    def __init__(self, model: bytes, inputs: Mapping[str, Any], device: str) -> None:
        import onnx

        torch = load_torch()
        graph = onnx.load_from_string(model).graph
        self._torch, self._inputs = torch, dict(inputs)
        self._arrays = {t.name: _array(t) for t in graph.initializer}
        self._constants = {n: torch.from_numpy(a).to(device) for n, a in self._arrays.items()}
        self._outputs = tuple(output.name for output in graph.output)
        self._steps: list[_Step] = []
        for node in graph.node:
            self._add(node)
        self.operators = len(self._steps)
        self._last = _last_uses(self._steps, self._outputs)
        given = (*self._inputs.values(), *self._constants.values())
        self._given = frozenset(tensor.untyped_storage().data_ptr() for tensor in given)

    def _add(self, node: Any) -> None:
        given = tuple(node.input)
        known = tuple(self._arrays.get(name) for name in given)
        function = OPERATORS[node.op_type](Node(self._torch, node, known))
        step = _Step(function, given, tuple(node.output))
        if all(name in self._constants for name in given if name):
            values = dict(self._constants)
            _carry_out(step, values)
            for name in step.made:
                self._constants[name] = values[name]
                self._arrays[name] = values[name].cpu().numpy()
        else:
            self._steps.append(step)

    def run(self) -> dict[str, Any]:
        """One call: outputs by name, each in memory of its own. Nothing waits for the device."""
        values = {"": None, **self._constants, **self._inputs}
        for step, dead in zip(self._steps, self._last, strict=True):
            _carry_out(step, values)
            for name in dead:
                del values[name]
        return {name: self._whole(values[name]) for name in self._outputs}

    def _whole(self, tensor: Any) -> Any:
        """A result as it is to be handed over: in order, and no part of what was given."""
        ordered = tensor.contiguous()
        shared = ordered.untyped_storage().data_ptr() in self._given
        return ordered.clone() if shared else ordered


def _carry_out(step: _Step, values: dict[str, Any]) -> None:
    result = step.function(*(values.get(name) for name in step.given))
    if len(step.made) == 1:
        values[step.made[0]] = result[0] if isinstance(result, tuple) else result
    else:
        values.update(zip(step.made, result, strict=True))


def _last_uses(steps: Sequence[_Step], outputs: Sequence[str]) -> list[tuple[str, ...]]:
    """After each step, what no later one reads: its memory serves again."""
    seen = set(outputs)
    dead: list[tuple[str, ...]] = []
    made_by_steps = {name for step in steps for name in step.made}
    for step in reversed(steps):
        names = dict.fromkeys((*step.given, *step.made))
        dead.append(tuple(n for n in names if n in made_by_steps and n not in seen))
        seen |= set(names)
    return dead[::-1]


def _array(tensor: Any) -> np.ndarray:
    """An initializer; 4-bit integers in bytes."""
    from onnx import TensorProto, numpy_helper

    array = numpy_helper.to_array(tensor)
    if tensor.data_type == TensorProto.UINT4:
        array = array.astype(np.uint8)
    elif tensor.data_type == TensorProto.INT4:
        array = array.astype(np.int8)
    return np.array(array, order="C")  # writable, and a scalar stays one
