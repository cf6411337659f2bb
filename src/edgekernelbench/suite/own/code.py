"""The code of own tasks, loaded when first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from edgekernelbench.suite.model import Definition
from edgekernelbench.suite.own import store
from edgekernelbench.suite.own.manifest import OwnTask
from edgekernelbench.suite.patterns.registry import Pattern

_offered: dict[str, Pattern] = {}


@contextmanager
def offered(id: str, pattern: Pattern) -> Iterator[None]:
    """Inside the block ``pattern`` is that of a definition whose suite is not stored yet."""
    _offered[id] = pattern
    try:
        yield
    finally:
        del _offered[id]


def task_of(definition: Definition) -> OwnTask:
    """What is stored of the task of a definition.

    Raises:
        UsageError: its suite is gone or damaged.
    """
    tasks = store.read(definition.origin).tasks
    found = next((t for t in tasks if t.workload.definition.id == definition.id), None)
    if found is None:
        raise LookupError(f"own suite {definition.origin} has no {definition.id}")
    return found


def own_pattern(definition: Definition) -> Pattern:
    """Reference, twin and input generators of an own task; a Python file is run for that."""
    if definition.id in _offered:
        return _offered[definition.id]
    folder = store.folder_of(definition.origin)
    task = task_of(definition)
    if task.function:
        file = folder / task.file
        return _functions(file, file.stat().st_mtime_ns)[task.function]
    from edgekernelbench.suite.own.graph.pattern import graph_pattern

    weights = [decl.name for decl in definition.inputs if decl.const]
    return graph_pattern(definition.id, folder / task.file, weights, task.ranges, task.operators)


def canonical_file(definition: Definition) -> Path:
    """The task's canonical program.

    Raises:
        FileNotFoundError: it has none; the text says why.
    """
    task = task_of(definition)
    if not task.canonical:
        raise FileNotFoundError(f"{definition.id}: no canonical program: {task.no_canonical}")
    return store.folder_of(definition.origin) / task.canonical


@cache
def _functions(file: Path, changed: int) -> dict[str, Pattern]:
    from edgekernelbench.suite.own.python.read import read_tasks

    return {found.id: found for found in read_tasks(file)}
