"""The groups of a model as tasks: equal ones are one task, whose kernels serve all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgekernelbench.errors import UsageError
from edgekernelbench.optimize.cut import Group, cut
from edgekernelbench.optimize.extract import Extract, extract
from edgekernelbench.optimize.fold import folded
from edgekernelbench.optimize.view import View, view_of
from edgekernelbench.suite.model import Workload
from edgekernelbench.suite.own import store
from edgekernelbench.suite.own.graph.walk import label
from edgekernelbench.suite.own.manifest import Manifest, OwnTask
from edgekernelbench.suite.own.names import plain

if TYPE_CHECKING:
    from onnx import ModelProto

SUITE = "parts"
"""The own suite of a model's parts, in the optimisation's own folder."""
_SEEDS = (1, 2)

Range = tuple[float, float]


@dataclass(frozen=True)
class Instance:
    """A group where it stands. ``tensors``: its part's interface to the model's tensors."""

    part: str
    tensors: Mapping[str, str]


@dataclass(frozen=True)
class Part:
    """Groups that are equal up to their weights.

    Attributes:
        id: of its workload.
        operators: of its nodes, in order.
        nodes: those of its first group, as messages name them.
        model: of its first group.
        ranges: of inputs, over all groups: lowest and highest value that they had.
    """

    id: str
    operators: tuple[str, ...]
    nodes: tuple[str, ...]
    extract: Extract
    count: int
    ranges: Mapping[str, Range]


@dataclass(frozen=True)
class Dissection:
    """A model in parts. ``instances`` are in an order in which they can run."""

    parts: tuple[Part, ...]
    instances: tuple[Instance, ...]


def dissect(task: OwnTask, model: ModelProto) -> Dissection:
    """Cuts the stored model of a whole task.

    Args:
        model: its tensors carry the names of the task's header.
    """
    workload = task.workload
    weights = {spec.name for spec in workload.input_specs if spec.const}
    view = view_of(folded(model, weights), weights)
    groups = cut(view)
    _check_known(view, groups)
    extracts = [extract(view, group) for group in groups]
    observed = _observed(workload, view, groups)
    first: dict[str, int] = {}
    for number, each in enumerate(extracts):
        first.setdefault(each.signature, number)
    ids: dict[str, str] = {}
    for signature, number in first.items():
        kind = view.nodes[groups[number].anchor].op_type.lower()
        ids[signature] = f"{SUITE}__{plain(f'{kind}_{len(ids) + 1:02}')}"
    parts = tuple(
        _part(view, groups[number], extracts, ids[signature], signature, observed, task)
        for signature, number in first.items()
    )
    instances = tuple(Instance(ids[each.signature], each.names) for each in extracts)
    return Dissection(parts, instances)


def _check_known(view: View, groups: Sequence[Group]) -> None:
    """Raises UsageError for a tensor between groups whose shape is not known."""
    for group in groups:
        for name in group.outputs:
            if name not in view.shapes or not view.elements.get(name):
                node = label(view.nodes[view.maker[name]])
                raise UsageError(
                    f"{node}: the shape of its result {name!r} is not known beforehand",
                    "a kernel's shapes are fixed: cut the model before that node with "
                    "`onnx.utils.extract_model`",
                )


def _part(
    view: View,
    group: Group,
    extracts: Sequence[Extract],
    id: str,
    signature: str,
    observed: Mapping[str, Range],
    task: OwnTask,
) -> Part:
    alike = [each for each in extracts if each.signature == signature]
    nodes = [view.nodes[number] for number in group.nodes]
    return Part(
        id,
        tuple(node.op_type for node in nodes),
        tuple(label(node) for node in nodes),
        alike[0],
        len(alike),
        _ranges(alike, observed, task),
    )


# ---------------------------------------------------------------- ranges
def _observed(workload: Workload, view: View, groups: Sequence[Group]) -> dict[str, Range]:
    """Lowest and highest values of what one group hands to another, for a few draws of inputs."""
    from onnx import ModelProto, helper

    from edgekernelbench.suite.own.graph.double import Reference

    made = {name for group in groups for name in group.outputs}
    wanted = sorted(made - {value.name for value in view.model.graph.output})
    watched = ModelProto()
    watched.CopyFrom(view.model)
    watched.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in wanted)
    reference = Reference(watched, view.weights)
    found: dict[str, Range] = {}
    for seed in _SEEDS:
        with np.errstate(all="ignore"):
            results = reference(workload.inputs(seed))
        for name, values in results.items():
            if values.dtype.kind in "fiu" and values.size:
                low, high = float(values.min()), float(values.max())
                known = found.get(name, (low, high))
                found[name] = (min(low, known[0]), max(high, known[1]))
    return found


def _ranges(
    alike: Sequence[Extract], observed: Mapping[str, Range], task: OwnTask
) -> dict[str, Range]:
    """Of the part's inputs. What comes from outside is drawn as for the whole."""
    found: dict[str, Range] = {}
    for value in alike[0].model.graph.input:
        tensors = [each.names[value.name] for each in alike]
        known = [observed.get(t) or task.ranges.get(t) for t in tensors]
        ranges = [r for r in known if r is not None]
        if len(ranges) < len(known):
            continue  # a task's input whose usual draw is right
        low, high = min(r[0] for r in ranges), max(r[1] for r in ranges)
        if np.isfinite([low, high]).all() and low < high:
            found[value.name] = (low, high)
    return found


# ---------------------------------------------------------------- tasks
def make_tasks(parts: Sequence[Part], where: Path) -> tuple[OwnTask, ...]:
    """Stores a task for each part, in the place of those that are there.

    Args:
        where: the model, for messages.

    Raises:
        UsageError: a part is no task, or has no program; names its nodes.
    """
    with store.staged(SUITE, replace=True) as folder:
        tasks = tuple(_task(part, where, folder) for part in parts)
        store.write(folder, Manifest(name=SUITE, kind="onnx", source=str(where), tasks=tasks))
    return tasks


def _task(part: Part, where: Path, folder: Path) -> OwnTask:
    from edgekernelbench.suite.own.graph.make import make_task
    from edgekernelbench.suite.own.graph.options import Options

    file = folder / f"{part.id}.part.onnx"
    file.write_bytes(part.extract.model.SerializeToString())
    options = Options(ranges=_told(part), weights=part.extract.weights)
    try:
        task = make_task(file, part.id, SUITE, folder, options)
    except UsageError as error:
        told = error.message.removeprefix(f"{file}: ")
        raise UsageError(
            f"{where}: {_nodes(part)}: {told}", f"as a part of the model: {error.help}"
        ) from error
    finally:
        file.unlink()
    if not task.canonical:
        raise UsageError(
            f"{where}: {_nodes(part)}: there is no program to start from: {task.no_canonical}",
            "cut the model before and behind it with `onnx.utils.extract_model`, or export it "
            "without that operator, and optimise the rest",
        )
    return task


def _told(part: Part) -> dict[str, Range]:
    """Ranges to draw from: all of floats, of integers those that are no index and have none."""
    from edgekernelbench.suite.own.graph.dtypes import dtype_of
    from edgekernelbench.suite.own.graph.ranges import index_range
    from edgekernelbench.suite.own.graph.shapes import known_shapes

    model = part.extract.model
    shapes = known_shapes(model)
    told = dict(part.ranges)
    for value in model.graph.input:
        dtype = dtype_of(value.type.tensor_type.elem_type)
        legal = index_range(model.graph, value.name, shapes)
        if dtype is None or (not dtype.is_float and legal is not None):
            told.pop(value.name, None)
    return told


def _nodes(part: Part) -> str:
    shown = ", ".join(part.nodes[:3])
    return f"{shown}, ..." if len(part.nodes) > 3 else shown
