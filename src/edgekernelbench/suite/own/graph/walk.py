"""Nodes and tensors of an ONNX graph, those of its subgraphs included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, NodeProto, TensorProto


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """The graph and all graphs inside its nodes (branches, loop bodies)."""
    yield graph
    for node in graph.node:
        for inner in attribute_graphs(node):
            yield from graphs(inner)


def attribute_graphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs that a node itself holds."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def nodes(graph: GraphProto) -> Iterator[NodeProto]:
    for each in graphs(graph):
        yield from each.node


def tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """Initializers and the values of attributes."""
    for each in graphs(graph):
        yield from each.initializer
        for node in each.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors


def attribute(node: NodeProto, name: str) -> AttributeProto | None:
    return next((a for a in node.attribute if a.name == name), None)


def integer(node: NodeProto, name: str, default: int) -> int:
    found = attribute(node, name)
    return default if found is None else int(found.i)


def label(node: NodeProto) -> str:
    """How a message names a node: ``Conv node 'conv1'``, or by its first output."""
    name = node.name or next((output for output in node.output if output), "?")
    return f"{node.op_type} node {name!r}"
