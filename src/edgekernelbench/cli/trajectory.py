"""``ekb trajectory``: an attempt step by step, every decision with its layer, reason and effect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from edgekernelbench.cli.common import JsonOption, err, microseconds, out, print_json
from edgekernelbench.errors import UsageError

if TYPE_CHECKING:
    from edgekernelbench.records.schema import Record, Step

_REASON = 100


def trajectory(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.", show_default=False)],
    workload: Annotated[
        str | None, typer.Option(help="Only attempts at this task.", show_default=False)
    ] = None,
    epoch: Annotated[
        int | None, typer.Option(min=0, help="Only the attempt of this number.")
    ] = None,
    patches: Annotated[bool, typer.Option("--patches", help="Print each change, too.")] = False,
    json: JsonOption = False,
) -> None:
    """Show how an agent came to its kernel."""
    records = [r for r in _records(folder) if workload in (None, r.task.workload)]
    records = [r for r in records if epoch in (None, r.epoch)]
    if not records:
        raise UsageError(
            f"{folder} has no such attempt", f"`ekb score {folder}` shows what there is"
        )
    if json:
        print_json([_as_data(record, folder) for record in records])
        return
    for record in records:
        _print(record, folder, patches)


def _records(folder: Path) -> list[Record]:
    from edgekernelbench.records.read import RECORDS, read_records

    path = folder / RECORDS
    if not path.is_file():
        raise UsageError(f"{folder} is no folder of a run: it has no {RECORDS}", "name one")
    read = read_records(path)
    return list(read.records)


def _text(folder: Path, key: str | None) -> str | None:
    """A text of the run; None where it was not kept or is gone."""
    from edgekernelbench.records.read import kept_text

    return None if key is None else kept_text(folder, key)


def _as_data(record: Record, folder: Path) -> dict[str, Any]:
    steps = [
        {**step.model_dump(mode="json"), "patch_text": _text(folder, step.patch)}
        for step in record.trajectory
    ]
    spent = record.spent.model_dump(mode="json")
    evaluation = record.evaluation
    performance = None if evaluation is None else evaluation.performance
    return {
        "id": record.id,
        "workload": record.task.workload,
        "agent": record.agent,
        "options": record.agent_options,
        "epoch": record.epoch,
        "status": record.status.value,
        "message": record.message if evaluation is None else evaluation.message,
        "median_us": None if performance is None else performance.median_us,
        "spent": spent,
        "steps": steps,
    }


def _print(record: Record, folder: Path, patches: bool) -> None:
    out.print(f"[bold]{escape(record.id)}[/]: {record.status.value}", soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for column in ("at", "step", "layer", "time", "effect", "what and why"):
        table.add_column(column, overflow="fold")
    for step in record.trajectory:
        table.add_row(*map(escape, _row(step)))
    out.print(table)
    out.print(f"{_verdict(record)}\n{_spent(record)}\n", markup=False, soft_wrap=True)
    if patches:
        for number, step in enumerate(record.trajectory):
            text = _text(folder, step.patch)
            if text is not None:
                out.print(f"\n[bold]{number}[/] {escape(step.reason[:_REASON])}")
                out.print(text, markup=False, soft_wrap=True)
            elif step.patch is not None:
                err.print(f"the text of step {number} is not in {folder}")


def _verdict(record: Record) -> str:
    """On the kernel that was handed in, which the harness evaluated once more."""
    evaluation = record.evaluation
    if evaluation is None or evaluation.performance is None:
        message = record.message if evaluation is None else evaluation.message
        return f"verdict: {record.status.value}: {message}".removesuffix(": ")
    told = f"verdict: {record.status.value}, {microseconds(evaluation.performance.median_us)}"
    best = None if evaluation.best is None else evaluation.baselines[evaluation.best].speedup
    return told if best is None else f"{told}, {best:.2f} times as fast as {evaluation.best}"


def _spent(record: Record) -> str:
    spent = record.spent
    parts = [
        (sum(step.action == "ask" for step in record.trajectory) or None, "questions"),
        (spent.tokens or None, "tokens"),
        (spent.evaluations, "evaluations"),
        (spent.seconds, "s without the wait for the device"),
    ]
    told = [f"{value:,.4g} {unit}" if unit[0] == "s" else f"{value:,} {unit}"
            for value, unit in parts if value is not None]  # fmt: skip
    return f"spent: {', '.join(told)}"


def _row(step: Step) -> tuple[str, ...]:
    told = step.reason if step.action == "stop" else step.reason[:_REASON]
    if step.status is not None and step.median_us is None:
        told = f"{step.status.value}: {told}".removesuffix(": ")
    elif step.action == "check":
        told = told or "it can be built"
    if step.tokens is not None:
        told = f"{step.tokens} tokens; {told}"
    return (
        f"{step.seconds:.1f} s",
        step.action,
        step.layer or "",
        "" if step.median_us is None else microseconds(step.median_us),
        effect(step),
        told,
    )


def effect(step: Step) -> str:
    """How an evaluation compares with the best before it: above 1 it is faster."""
    if step.action != "evaluate" or step.before_us is None or step.median_us is None:
        return ""
    return f"{step.before_us / step.median_us:.2f}x"
