"""A model's own functions, replaced by their bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.own.graph.walk import attribute_graphs, nodes

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, NodeProto

MAX_NODES = 100_000

Key = tuple[str, str, str]


def inlined(model: ModelProto, path: Path) -> ModelProto:
    """The model without calls of functions of its own.

    Raises:
        UsageError: a function calls itself by some way, or too many nodes would come of it.
    """
    if not model.functions:
        return model
    from onnx import inliner

    sizes = _sizes(model.functions, path)
    total = sum(sizes.get(_called(node), 1) for node in nodes(model.graph))
    if total > MAX_NODES:
        raise UsageError(
            f"{path}: {total} nodes once its functions are replaced by their bodies",
            f"at most {MAX_NODES}; cut the model",
        )
    return inliner.inline_local_functions(model)


def _sizes(functions: Iterable[FunctionProto], path: Path) -> Mapping[Key, int]:
    """How many nodes come of each function; callees before callers, without recursion of ours."""
    bodies = {(f.domain, f.name, f.overload): list(_nodes(f.node)) for f in functions}
    sizes: dict[Key, int] = {}
    for start in bodies:
        pending, open_ = [start], set[Key]()
        while pending:
            key = pending[-1]
            missing = [c for n in bodies[key] if (c := _called(n)) in bodies and c not in sizes]
            if key in sizes or not missing:
                sizes[key] = sum(sizes.get(_called(node), 1) for node in bodies[key])
                open_.discard(pending.pop())
                continue
            open_.add(key)
            circular = next((callee for callee in missing if callee in open_), None)
            if circular is not None:
                raise UsageError(
                    f"{path}: function {circular[1]!r} calls itself, perhaps through others",
                    "export the model without recursive functions",
                )
            pending.append(missing[0])
    return sizes


def _called(node: NodeProto) -> Key:
    return node.domain, node.op_type, node.overload


def _nodes(body: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in body:
        yield node
        for graph in attribute_graphs(node):
            yield from nodes(graph)
