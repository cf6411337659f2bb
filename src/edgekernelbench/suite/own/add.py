"""`add`: a model, a folder of models or a Python file becomes an own suite."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.load import SUBSETS, load_suite
from edgekernelbench.suite.model import ToleranceClass
from edgekernelbench.suite.own import store, verify
from edgekernelbench.suite.own.graph.options import Options
from edgekernelbench.suite.own.guard import first_line
from edgekernelbench.suite.own.manifest import Manifest, OwnTask
from edgekernelbench.suite.own.names import MAX_NAME, plain, suite_name


@dataclass(frozen=True, slots=True)
class Added:
    """A new own suite. ``warnings``: what its tasks cannot have, each with its reason."""

    manifest: Manifest
    warnings: tuple[str, ...]


def add(
    path: Path,
    name: str | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    tolerance: ToleranceClass | None = None,
    replace: bool = False,
) -> Added:
    """Checks what lies at ``path`` and stores it as an own suite.

    Args:
        name: of the suite; made of the file's or folder's name if left out.
        shapes: of inputs of ONNX models, where they are dynamic.
        ranges: lowest and highest values of inputs of ONNX models.
        tolerance: class of ONNX models; made of their operators if left out.
        replace: an own suite of that name gives way once the new one is whole.

    Raises:
        UsageError: no task can be made of it, or the name is taken; nothing is stored then.
    """
    path = path.expanduser()
    try:
        usable = path.is_file() or path.is_dir()
        there = usable or path.exists()
    except (OSError, ValueError) as error:
        raise UsageError(f"{str(path)[:200]}: {first_line(error)}", _KINDS) from error
    if not usable:
        told = "neither a file nor a folder" if there else "there is no such file or folder"
        raise UsageError(f"{path}: {told}", _KINDS)
    chosen = suite_name(name, path.resolve().stem if path.is_file() else path.resolve().name)
    _check_free(chosen, path, replace)
    with store.staged(chosen, replace) as folder, redirect_stdout(sys.stderr):
        if path.suffix == ".py":
            if shapes or ranges or tolerance:
                raise UsageError(
                    f"{path}: --shape, --range and --tolerance are for ONNX models",
                    "a Python file says them itself: shapes=, draw=, tolerance=",
                )
            from edgekernelbench.suite.own.python.make import make_tasks

            tasks = make_tasks(path, chosen, folder)
            kind = "python"
        else:
            options = Options(shapes or {}, ranges or {}, tolerance=tolerance)
            tasks = _models(path, chosen, folder, options)
            kind = "onnx"
        manifest = Manifest(name=chosen, kind=kind, source=str(path.resolve()), tasks=tasks)
        store.write(folder, manifest)
    with redirect_stdout(sys.stderr):
        doubts = [f"{t.workload.id}: {doubt}" for t in tasks for doubt in verify.doubts(t.workload)]
    return Added(manifest, (*_warnings(manifest), *doubts))


_KINDS = "give an ONNX model (.onnx), a folder of them, or a Python file of tasks (.py)"


def _check_free(name: str, path: Path, replace: bool) -> None:
    if name in store.names() and not replace:
        raise store.taken(name, f"{path}: ")
    suite = load_suite()
    families = {definition.family for definition in suite.definitions.values()}
    for kind, known in (
        ("pattern", suite.definitions),
        ("workload", suite.workloads),
        ("family", families),
        ("subset", {*SUBSETS, "own"}),
    ):
        if name in known:
            raise UsageError(
                f"{path}: {name!r} is a {kind} of the packaged suite",
                "choose another name with --name",
            )


def _models(path: Path, name: str, folder: Path, options: Options) -> tuple[OwnTask, ...]:
    from edgekernelbench.suite.own.graph.make import make_task

    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix == ".onnx")
        if not files:
            raise UsageError(f"{path}: no .onnx file in that folder", _KINDS)
        ids: dict[str, Path] = {}
        for file in files:
            taken = {i.partition("__")[2] for i in ids}
            ids[f"{name}__{plain(file.stem[:MAX_NAME], taken)}"] = file
    elif path.suffix == ".onnx":
        ids = {name: path}
    else:
        raise UsageError(f"{path}: neither .onnx nor .py", _KINDS)
    tasks = tuple(make_task(file, id, name, folder, options) for id, file in ids.items())
    unknown = sorted({*options.shapes, *options.ranges} - options.used)
    if unknown:
        raise UsageError(
            f"{path}: no input is called {unknown[0]!r}",
            f"inputs: {', '.join(sorted(_inputs(tasks)))}",
        )
    return tasks


def _inputs(tasks: tuple[OwnTask, ...]) -> set[str]:
    return {s.name for task in tasks for s in task.workload.input_specs if not s.const}


def _warnings(manifest: Manifest) -> list[str]:
    """Baselines that tasks cannot have."""
    told: list[str] = []
    seen: set[str] = set()
    for task in manifest.tasks:
        definition = task.workload.definition
        if definition.id in seen:
            continue
        seen.add(definition.id)
        if definition.pattern.has_twin:
            if not task.canonical and manifest.kind == "onnx":
                told.append(f"{definition.id}: no canonical program: {task.no_canonical}")
            continue
        told.append(f"{definition.id}: no ort baseline: it has no ONNX twin")
        if not task.canonical:
            told.append(f"{definition.id}: no tvm baseline: no twin and no canonical program")
    return told
