"""``ekb suite add`` and ``ekb suite remove``: the user's own tasks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from edgekernelbench.cli.common import JsonOption, err, out, print_json, quantity
from edgekernelbench.errors import UsageError
from edgekernelbench.suite.model import ToleranceClass

if TYPE_CHECKING:
    from edgekernelbench.suite.own.add import Added


def add(
    path: Annotated[
        Path,
        typer.Argument(help="An ONNX model, a folder of them, or a Python file of tasks."),
    ],
    name: Annotated[
        str | None, typer.Option(help="Of the own suite; the file's if left out.")
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(metavar="INPUT=1,3,224,224", help="Shape of an ONNX input; repeatable."),
    ] = None,
    range_: Annotated[
        list[str] | None,
        typer.Option(
            "--range", metavar="INPUT=LOW,HIGH", help="Values of an ONNX input; repeatable."
        ),
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="Of ONNX models, where theirs does not fit."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put it in the place of an own suite of that name.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Add own tasks: checked, copied, and from then on named like any other."""
    from edgekernelbench.suite.own.add import add as add_suite

    shapes = dict(shape_of(text) for text in shape or [])
    ranges = dict(range_of(text) for text in range_ or [])
    added = add_suite(path, name, shapes, ranges, tolerance_class(tolerance), replace)
    try:
        _print(added, json)
        out.file.flush()
    except OSError as error:
        suite = added.manifest.name
        raise UsageError(
            f"the own suite {suite!r} is added, but that cannot be printed ({error.strerror})",
            f"`ekb suite list --subset own:{suite}` shows it",
        ) from error


def _print(added: Added, json: bool) -> None:
    tasks = added.manifest.tasks
    if json:
        rows = [
            {"workload": t.workload.id, "canonical": bool(t.canonical), "reason": t.no_canonical}
            for t in tasks
        ]
        print_json({"suite": added.manifest.name, "tasks": rows, "warnings": list(added.warnings)})
        return
    for task in tasks:
        work = task.workload
        known = bool(work.definition.flops_formula)
        flops = quantity(work.flops, "op") if known else "operations unknown"
        program = "canonical program" if task.canonical else "no canonical program"
        out.print(
            f"{work.id}: {flops}, {quantity(work.bytes_min, 'B')}, {work.tolerance}, {program}",
            markup=False,
        )
    for warning in added.warnings:
        err.print("[bold yellow]warning:[/] ", end="")
        err.print(warning, markup=False, soft_wrap=True)


def remove(name: Annotated[str, typer.Argument(help="Of the own suite.")]) -> None:
    """Remove an own suite with all its tasks."""
    from edgekernelbench.suite.own import store

    store.remove(name)


def tolerance_class(text: str | None) -> ToleranceClass | None:
    known: tuple[ToleranceClass, ...] = get_args(ToleranceClass)
    if text is None:
        return None
    for name in known:
        if name == text:
            return name
    raise UsageError(
        f"--tolerance {text}: not a tolerance class", f"docs/tolerances.md: {', '.join(known)}"
    )


def shape_of(text: str) -> tuple[str, tuple[int, ...]]:
    # A name may hold "=" and ",": what stands behind the last "=" are the numbers.
    name, _, numbers = text.rpartition("=")
    try:
        shape = tuple(int(number) for number in numbers.split(","))
    except ValueError:
        shape = ()
    if not name or not shape or min(shape) < 1:
        raise UsageError(f"--shape {text}: not a shape", "write it like --shape input=1,3,224,224")
    return name, shape


def range_of(text: str) -> tuple[str, tuple[float, float]]:
    name, _, numbers = text.rpartition("=")
    try:
        low, high = (float(number) for number in numbers.split(","))
    except ValueError:
        low, high = math.inf, -math.inf
    if not name or not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(
            f"--range {text}: not a range", "write it like --range input=0,255, the lower first"
        )
    return name, (low, high)
