"""The tasks of an optimisation: the whole model and its parts, in the optimisation's own folder."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgekernelbench.errors import UsageError
from edgekernelbench.files import write_whole
from edgekernelbench.optimize.journal import Cut, Journal
from edgekernelbench.optimize.parts import SUITE, Dissection, dissect, make_tasks
from edgekernelbench.optimize.request import Request, Watch
from edgekernelbench.suite.model import Workload
from edgekernelbench.suite.own import store
from edgekernelbench.suite.own.manifest import OwnTask
from edgekernelbench.suite.own.names import suite_name

HOME = "tasks"
"""In the optimisation's folder: what ``EDGEKERNELBENCH_HOME`` is to be for `ekb eval` there."""


@dataclass(frozen=True)
class Tasks:
    """Attributes:
    whole: the model as a task.
    parts: the tasks of its parts by id.
    dissection: how they make up the model.
    """

    whole: OwnTask
    parts: dict[str, Workload]
    dissection: Dissection

    @property
    def counts(self) -> dict[str, int]:
        return {part.id: part.count for part in self.dissection.parts}


def home_of(folder: Path) -> Path:
    """Where the own suites of an optimisation lie."""
    return folder / HOME / "suite"


def make(request: Request, journal: Journal, watch: Watch) -> Tasks:
    """Makes the tasks, or takes those that an earlier start of this optimisation made. Own suites
    must be those of the folder (`home_of`).

    Raises:
        UsageError: the model, or a part of it, is no task, or a part has no program.
    """
    name = _name(request.model)
    made = any(isinstance(event, Cut) for event in journal.events)
    if not made or name not in store.names():
        watch.say(f"{request.model}: making a task of it")
        _add_whole(request, name, watch)
    whole = store.read(name).tasks[0]
    dissection = dissect(whole, _stored_model(whole, name))
    signatures = {part.id: part.extract.signature for part in dissection.parts}
    known = [event.signatures for event in journal.events if isinstance(event, Cut)]
    if not known or SUITE not in store.names():
        watch.say(
            f"{len(dissection.instances)} groups of operators, {len(signatures)} different ones: "
            "making tasks of them"
        )
        make_tasks(dissection.parts, request.model)
        journal.add(Cut(signatures=signatures))
    elif known[-1] != signatures:
        raise UsageError(
            f"{request.folder}: the model was cut differently when this optimisation began",
            "go on with the version of the package that began it, or name another folder with -o",
        )
    parts = {task.workload.id: task.workload for task in store.read(SUITE).tasks}
    return Tasks(whole, parts, dissection)


def _name(model: Path) -> str:
    name = suite_name(None, model.resolve().stem)
    return f"{name}_model" if name == SUITE else name


def _add_whole(request: Request, name: str, watch: Watch) -> None:
    from edgekernelbench.suite.own.add import add

    added = add(
        request.model,
        name,
        request.shapes,
        request.ranges,
        request.tolerance,
        replace=name in store.names(),
    )
    for warning in added.warnings:
        watch.say(f"warning: {warning}")


def _stored_model(task: OwnTask, suite: str):
    import onnx

    return onnx.load_from_string((store.folder_of(suite) / task.file).read_bytes())


def write_weights(task: OwnTask, file: Path) -> None:
    """The model's own weights under the names of the kernel's const inputs, for a bundle."""
    from onnx import numpy_helper

    weights = {spec.name for spec in task.workload.input_specs if spec.const}
    model = _stored_model(task, task.workload.definition.origin)
    arrays = {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in model.graph.initializer
        if tensor.name in weights
    }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    write_whole(file, buffer.getvalue())
