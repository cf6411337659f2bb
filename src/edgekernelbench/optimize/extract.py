"""A group as a small model of its own, with names that say nothing of where it came from.

Two groups that do the same to other weights become the same small model, byte for byte but for the
weights; its signature is a digest of all else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgekernelbench.optimize.cut import Group
from edgekernelbench.optimize.view import View, reads
from edgekernelbench.suite.own.graph.walk import attribute_graphs, graphs

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto


@dataclass(frozen=True)
class Extract:
    """A group's model.

    Attributes:
        names: tensors of the interface (inputs, weights, outputs) in the small model to what they
            are called in the whole one.
        weights: the initializers that are const inputs.
        computed: the weights' nodes that are in it beside the group's own: they compute on weights
            alone.
        signature: equal for groups that are equal up to the values of weights.
    """

    model: ModelProto
    names: Mapping[str, str]
    weights: frozenset[str]
    computed: tuple[int, ...]
    signature: str


def extract(view: View, group: Group) -> Extract:
    """The model of a group of ``view``."""
    from onnx import helper

    computed = _computed(view, group)
    numbers = sorted({*group.nodes, *computed})
    naming = _Naming(view, group)
    nodes = [naming.node(view.nodes[number]) for number in numbers]
    tensors = {tensor.name: tensor for tensor in view.model.graph.initializer}
    held = [name for name in naming.names if name in tensors]
    graph = helper.make_graph(
        nodes,
        "part",
        [_value(view, name, naming.names[name]) for name in group.inputs],
        [_value(view, name, naming.names[name]) for name in group.outputs],
        [_renamed(tensors[name], naming.names[name]) for name in held],
    )
    model = helper.make_model(
        graph, opset_imports=view.model.opset_import, ir_version=view.model.ir_version
    )
    weights = {naming.names[name] for name in held if name in view.weights}
    interface = (*group.inputs, *(name for name in held if name in view.weights), *group.outputs)
    return Extract(
        model,
        {naming.names[name]: name for name in interface},
        frozenset(weights),
        computed,
        _signature(model, weights),
    )


def _computed(view: View, group: Group) -> tuple[int, ...]:
    """Nodes that make what the group's nodes read and that depend on weights alone."""
    pending, found = list(group.nodes), set[int]()
    while pending:
        for name in reads(view.nodes[pending.pop()]):
            maker = view.maker.get(name)
            if maker is not None and name in view.known and maker not in found:
                found.add(maker)
                pending.append(maker)
    return tuple(sorted(found))


class _Naming:
    """Gives tensors names in the order in which they are met: x0, w0, c0, y0, t0 and so on."""

    def __init__(self, view: View, group: Group) -> None:
        self._view = view
        self._held = {tensor.name for tensor in view.model.graph.initializer}
        self._counts: dict[str, int] = {}
        self.names: dict[str, str] = {}
        for name in group.inputs:
            self._give(name, "x")
        for name in group.outputs:
            self._give(name, "y")

    def _give(self, name: str, letter: str) -> str:
        number = self._counts.get(letter, 0)
        self._counts[letter] = number + 1
        self.names[name] = f"{letter}{number}"
        return self.names[name]

    def _of(self, name: str) -> str:
        if not name or name in self.names:
            return self.names.get(name, "")
        if name in self._held:
            return self._give(name, "w" if name in self._view.weights else "c")
        return self._give(name, "t")

    def node(self, node: NodeProto) -> NodeProto:
        new = type(node).FromString(node.SerializeToString())
        new.ClearField("name")
        new.ClearField("doc_string")
        for name in reads(node):
            self._of(name)
        new.input[:] = [self._of(name) for name in node.input]
        new.output[:] = [self._of(name) for name in node.output]
        _rename_captured(new, self._known)
        return new

    def _known(self, name: str) -> str:
        return self.names.get(name, name)


def _rename_captured(node: NodeProto, new: Callable[[str], str]) -> None:
    """Tensors that graphs inside of a node take from around it. Names of their own stay: none
    is called like a tensor around it, by ONNX's rule."""
    for held in attribute_graphs(node):
        for graph in graphs(held):
            for inner in graph.node:
                inner.input[:] = [new(name) for name in inner.input]
            for value in graph.output:
                value.name = new(value.name)


def _value(view: View, name: str, new: str):
    from onnx import helper

    return helper.make_tensor_value_info(new, view.elements[name], list(view.shapes[name]))


def _renamed(tensor: TensorProto, name: str) -> TensorProto:
    new = type(tensor).FromString(tensor.SerializeToString())
    new.name = name
    new.ClearField("doc_string")
    return new


def _signature(model: ModelProto, weights: set[str]) -> str:
    blank = type(model).FromString(model.SerializeToString())
    for tensor in blank.graph.initializer:
        if tensor.name in weights:
            shape, element = list(tensor.dims), tensor.data_type
            tensor.Clear()
            tensor.name, tensor.data_type = f"weight {len(shape)}", element
            tensor.dims.extend(shape)
    return hashlib.sha256(blank.SerializeToString(deterministic=True)).hexdigest()
