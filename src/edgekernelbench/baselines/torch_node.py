"""A node of an ONNX graph on its way into PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Tensor = Any
Function = Callable[..., Any]


class Unsupported(ValueError):
    """PyTorch's counterpart of an operator cannot do what a node asks for."""


class Node:
    """A node while it is turned into a function: attributes, and the inputs known beforehand."""

    def __init__(self, torch: Any, proto: Any, known: Sequence[np.ndarray | None]) -> None:
        from onnx import helper

        self.torch = torch
        self.functional = torch.nn.functional
        self.kind: str = proto.op_type
        self._attributes = {a.name: helper.get_attribute_value(a) for a in proto.attribute}
        self._known = known
        self.inputs, self.outputs = tuple(proto.input), tuple(proto.output)

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute; text as `str`."""
        value = self._attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def has(self, position: int) -> bool:
        """Whether an input is given."""
        return position < len(self.inputs) and self.inputs[position] != ""

    def const(self, position: int) -> np.ndarray | None:
        """An input's value; None where it is not given.

        Raises:
            Unsupported: it depends on data.
        """
        if not self.has(position):
            return None
        found = self._known[position]
        if found is None:
            raise Unsupported(f"{self.kind}: input {position} depends on data")
        return found

    def integers(self, position: int) -> list[int] | None:
        """A constant input as integers."""
        found = self.const(position)
        return None if found is None else [int(n) for n in found.reshape(-1)]

    def only(self, name: str, default: Any, *allowed: Any) -> Any:
        """An attribute that must have one of some values.

        Raises:
            Unsupported: it has not.
        """
        value = self.get(name, default)
        if value not in (default, *allowed):
            raise Unsupported(f"{self.kind}: {name} = {value}")
        return value

    def known(self, position: int) -> bool:
        """Whether an input's value does not depend on data."""
        return self.has(position) and self._known[position] is not None
