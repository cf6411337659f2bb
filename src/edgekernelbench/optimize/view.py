"""A model as the cut sees it: who makes and who reads each tensor, and what is known beforehand."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from edgekernelbench.suite.own.graph.shapes import known_shapes
from edgekernelbench.suite.own.graph.walk import attribute_graphs

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

Shape = tuple[int, ...]


@dataclass(frozen=True)
class View:
    """A model in stored form.

    Attributes:
        nodes: in their order, which is one of execution.
        weights: initializers that are const inputs of the task; all others are fixed.
        known: tensors that depend on no input of the model: initializers, and what is computed
            from them alone.
        maker: the number of the node that makes a tensor.
        readers: the numbers of the nodes that read a tensor, in order.
    """

    model: ModelProto
    weights: frozenset[str]
    nodes: tuple[NodeProto, ...]
    shapes: Mapping[str, Shape]
    elements: Mapping[str, int]
    known: frozenset[str]
    outputs: tuple[str, ...]
    maker: Mapping[str, int] = field(default_factory=dict)
    readers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def made(self, node: int) -> list[str]:
        """The tensors that a node makes and that something wants."""
        wanted = self.readers
        outputs = self.nodes[node].output
        return [name for name in outputs if name and (name in wanted or name in self.outputs)]

    def given(self, node: int) -> list[str]:
        """What a node reads that is not known beforehand, each once."""
        return [name for name in reads(self.nodes[node]) if name not in self.known]

    def size(self, tensor: str) -> int:
        return math.prod(self.shapes.get(tensor, ()))


def view_of(model: ModelProto, weights: Collection[str]) -> View:
    """Looks at a model whose constants are folded (`fold.folded`)."""
    graph = model.graph
    nodes = tuple(graph.node)
    known = {tensor.name for tensor in graph.initializer}
    maker: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    for number, node in enumerate(nodes):
        read = list(reads(node))
        for name in read:
            readers.setdefault(name, []).append(number)
        for name in node.output:
            if name:
                maker[name] = number
                if all(r in known for r in read):
                    known.add(name)
    return View(
        model,
        frozenset(weights),
        nodes,
        known_shapes(model),
        _elements(graph),
        frozenset(known),
        tuple(value.name for value in graph.output),
        maker,
        {name: tuple(numbers) for name, numbers in readers.items()},
    )


def reads(node: NodeProto) -> Iterator[str]:
    """All tensors that a node needs, each once: those that the graphs inside of it take from
    around them are among them."""
    seen: set[str] = set()
    inner = (name for graph in attribute_graphs(node) for name in _captured(graph))
    for name in (*node.input, *inner):
        if name and name not in seen:
            seen.add(name)
            yield name


def _captured(graph: GraphProto) -> Iterator[str]:
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        yield from (name for name in reads(node) if name not in own)
        own |= set(node.output)
    yield from (value.name for value in graph.output if value.name not in own)


def _elements(graph: GraphProto) -> dict[str, int]:
    """ONNX element types by tensor, as far as they are known."""
    values = (*graph.input, *graph.value_info, *graph.output)
    found = {value.name: value.type.tensor_type.elem_type for value in values}
    return found | {tensor.name: tensor.data_type for tensor in graph.initializer}
