"""A model in the form in which it is stored: its tensors carry the names of the kernel header.

Graph inputs are the task's inputs, weights are initializers under the names of const inputs, all
other initializers are fixed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.own.graph.dtypes import dtype_of, spelled
from edgekernelbench.suite.own.graph.walk import graphs, nodes
from edgekernelbench.suite.own.graph.weights import lift_constants, weight_names
from edgekernelbench.suite.own.names import plain

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True, slots=True)
class Normal:
    """``original``: header names of inputs, weights and outputs to those that they came with."""

    model: ModelProto
    inputs: tuple[str, ...]
    weights: tuple[str, ...]
    outputs: tuple[str, ...]
    original: Mapping[str, str]


def normalized(model: ModelProto, path: Path, chosen: Collection[str] | None = None) -> Normal:
    """A copy of the model in stored form.

    Args:
        chosen: the weights, where how initializers are read does not decide.

    Raises:
        UsageError: an input or output has a dtype that no kernel has.
    """
    from onnx import ModelProto

    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    lift_constants(graph)
    _drop_unused(copy)
    known = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in known]
    kept = [type(value).FromString(value.SerializeToString()) for value in inputs]
    del graph.input[:]
    graph.input.extend(kept)
    for value in (*graph.input, *graph.output):
        _check_dtype(value.name, value.type.tensor_type.elem_type, path)
    _give_outputs_nodes(copy)
    weights = weight_names(graph)
    if chosen is not None:
        weights = [tensor.name for tensor in graph.initializer if tensor.name in chosen]
    interface = [v.name for v in graph.input] + weights + [v.name for v in graph.output]
    names: dict[str, str] = {}
    for name in interface:
        names[name] = plain(name, set(names.values()))
    _rename(copy, names)
    return Normal(
        copy,
        tuple(value.name for value in graph.input),
        tuple(names[name] for name in weights),
        tuple(value.name for value in graph.output),
        {new: old for old, new in names.items()},
    )


def _check_dtype(name: str, element: int, path: Path) -> None:
    if dtype_of(element) is None:
        raise UsageError(
            f"{path}: {name!r} is of dtype {spelled(element)}",
            "inputs and outputs may be f16, f32, f64, bool and integers but uint64; cut the model "
            "where they are",
        )


def _drop_unused(model: ModelProto) -> None:
    graph = model.graph
    used = {name for node in nodes(graph) for name in node.input}
    used |= {value.name for each in graphs(graph) for value in each.output}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    if len(kept) < len(graph.initializer):
        fresh = [type(tensor).FromString(tensor.SerializeToString()) for tensor in kept]
        del graph.initializer[:]
        graph.initializer.extend(fresh)


def _give_outputs_nodes(model: ModelProto) -> None:
    """An output that is an input or an initializer itself becomes a copy of it."""
    from onnx import helper

    graph = model.graph
    made = {name for node in graph.node for name in node.output}
    for value in graph.output:
        if value.name not in made:
            name = f"{value.name}.out"
            graph.node.append(helper.make_node("Identity", [value.name], [name]))
            value.name = name


def _rename(model: ModelProto, names: Mapping[str, str]) -> None:
    """Interface names as given; what else is called like one of them gives way."""
    taken = set(names.values())

    def new(name: str) -> str:
        if name in names:
            return names[name]
        return f"{name}.inner" if name in taken else name

    for graph in graphs(model.graph):
        for node in graph.node:
            node.input[:] = [new(name) for name in node.input]
            node.output[:] = [new(name) for name in node.output]
        for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
            value.name = new(value.name)
