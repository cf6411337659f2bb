"""``ekb audit``: what to look at before a run's figures are believed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from edgekernelbench.cli.common import JsonOption, microseconds, out, print_json, warn
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus, Performance
from edgekernelbench.records.schema import Record

if TYPE_CHECKING:
    from edgekernelbench.runs.audit import Finding


def audit(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The --out folder of a run.")],
    rerun: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Evaluate this attempt again, with new seeds."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List what is in quarantine, and what is correct but worth a look.

    With --rerun the exit code is 1 unless the kernel is correct again.
    """
    from edgekernelbench.records.read import find_records
    from edgekernelbench.runs.audit import audit as findings_of
    from edgekernelbench.runs.audit import rerun as evaluate_again

    loaded = find_records(folder)
    warn(loaded.problems)
    if rerun is not None:
        _again(*evaluate_again(loaded.records, rerun), json)
        return
    findings = findings_of(loaded.records, folder)
    if json:
        print_json([finding.as_dict() for finding in findings])
        return
    for finding in findings:
        _print(finding)
    quarantined = sum(finding.verdict == "quarantined" for finding in findings)
    out.print(
        f"{len(loaded.records)} records: {quarantined} in quarantine, "
        f"{len(findings) - quarantined} correct ones to look at"
    )


def _print(finding: Finding) -> None:
    colour = "red" if finding.verdict == "quarantined" else "yellow"
    out.print(f"[bold {colour}]{finding.verdict}[/]  {escape(finding.id)}", soft_wrap=True)
    for reason in finding.reasons:
        out.print(f"  {reason}", markup=False, soft_wrap=True)
    low, median, high, overhead = (
        microseconds(finding.figures[name] or 0.0)
        for name in ("low_us", "median_us", "high_us", "launch_overhead_us")
    )
    speedup = finding.figures["speedup"]
    ahead = "" if speedup is None else f", {speedup:.2f}x of best"
    out.print(f"  {median} [{low} .. {high}], a call alone {overhead}{ahead}", markup=False)
    out.print(f"  kernel: {finding.kernel or 'not in the folder'}", markup=False, soft_wrap=True)
    if finding.seeds is not None:
        told = ", ".join(f"{name} {value}" for name, value in finding.seeds.items())
        out.print(f"  seeds: {told}", markup=False, soft_wrap=True)


def _again(record: Record, evaluation: Evaluation, json: bool) -> None:
    if json:
        before = None if record.evaluation is None else record.evaluation.model_dump(mode="json")
        print_json({"before": before, "again": evaluation.model_dump(mode="json")})
    else:
        for word, one in (("before", record.evaluation), ("again", evaluation)):
            out.print(f"{word}: {_line(one)}", markup=False, soft_wrap=True)
    if evaluation.status is not EvaluationStatus.CORRECT:
        raise typer.Exit(1)


def _line(evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return "no evaluation"
    figures: Performance | None = evaluation.performance or evaluation.quarantined
    if figures is None:
        return f"{evaluation.status.value}  {evaluation.message}"
    interval = f"{microseconds(figures.low_us)} .. {microseconds(figures.high_us)}"
    return (
        f"{evaluation.status.value}  {microseconds(figures.median_us)} [{interval}]"
        f"  {evaluation.message}".rstrip()
    )
