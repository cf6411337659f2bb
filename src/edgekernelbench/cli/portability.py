"""``ekb portability``: one kernel on all targets, one table."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from edgekernelbench.cli.common import (
    SUBSETS_HELP,
    JsonOption,
    microseconds,
    out,
    print_json,
    quantity,
    read_kernel,
)
from edgekernelbench.cli.display import Display
from edgekernelbench.cli.tables import plain_table, portability_table
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.scores.attempts import baseline_order

if TYPE_CHECKING:
    from edgekernelbench.agents.base import Agent
    from edgekernelbench.runs.portability import Row
    from edgekernelbench.suite import Workload


def portability(
    kernel: Annotated[
        str | None,
        typer.Argument(
            metavar="[KERNEL]",
            help="A kernel file, - for standard input, or a folder of files named after workloads.",
        ),
    ] = None,
    workload: Annotated[
        str | None, typer.Option("--workload", help="Which task a single kernel is for.")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", help="Repeatable; all targets of this machine if left out."),
    ] = None,
    subset: Annotated[
        str | None,
        typer.Option(help=f"Canonical programs in place of kernel files: {SUBSETS_HELP}"),
    ] = None,
    out_folder: Annotated[
        Path | None,
        typer.Option("--out", help="Keep the records here, for `ekb score`.", show_default=False),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    json: JsonOption = False,
) -> None:
    """Judge a kernel on several targets.

    Exit code 1 unless it is correct on every target that supports it.
    """
    from edgekernelbench.runs.portability import (
        Portability,
        code_rows,
        rows,
        run_portability,
        targets_of,
    )
    from edgekernelbench.scores.score import score

    agent, texts, chosen = _kernels(kernel, workload, subset)
    targets = targets_of(target or [])
    if resume and out_folder is None:
        raise UsageError("--resume goes on with a run that was kept", "name its folder with --out")
    scratch = tempfile.TemporaryDirectory(prefix="edgekernelbench-portability-")
    kept = scratch if out_folder is None else nullcontext(str(out_folder))
    with kept as folder, Display() as display:
        order = Portability(agent, subset or "given", chosen, targets, Path(folder), resume)
        records = run_portability(order, display)
    scores = score(records).get("portability")
    table = rows(records, tuple(code_rows(texts, chosen, targets)))
    if json:
        print_json({"rows": [row.model_dump(mode="json") for row in table], "scores": scores})
    else:
        _print(table, scores)
    judged = [row for row in table if row.status is not EvaluationStatus.UNSUPPORTED]
    if not judged or any(row.status not in _RIGHT for row in judged):
        raise typer.Exit(1)


def _kernels(
    kernel: str | None, workload: str | None, subset: str | None
) -> tuple[Agent, dict[str, str], tuple[Workload, ...]]:
    from edgekernelbench.agents.registry import make_agent
    from edgekernelbench.runs.portability import given, kernels_in
    from edgekernelbench.suite.find import find_subset, find_workload

    if (kernel is None) == (subset is None):
        raise UsageError("kernels are given as files or by --subset", "give KERNEL or --subset")
    if subset is not None:
        if workload is not None:
            raise UsageError("--workload goes with a kernel file", "leave it or --subset out")
        return make_agent("canonical"), {}, find_subset(subset)
    assert kernel is not None
    if kernel != "-" and Path(kernel).is_dir():
        if workload is not None:
            raise UsageError("--workload goes with one kernel file", "leave it out for a folder")
        texts = {name: read_kernel(str(file)) for name, file in kernels_in(Path(kernel)).items()}
    elif workload is None:
        raise UsageError("which task is the kernel for?", "name it with --workload")
    else:
        texts = {workload: read_kernel(kernel)}
    return given(texts), texts, tuple(find_workload(name) for name in texts)


_RIGHT = (EvaluationStatus.CORRECT, "code_only")


def _ratio(row: Row, baseline: str) -> str:
    if baseline not in row.ratios:
        return "-"
    return f"{'~' if baseline in row.unsure else ''}{row.ratios[baseline]:.2f}x"


def _print(table: tuple[Row, ...], scores: dict[str, Any] | None) -> None:
    baselines = baseline_order({name for row in table for name in row.ratios})
    alone = len({row.workload for row in table}) == 1
    drawn = plain_table(table[0].workload if alone else None)
    for column in (*(() if alone else ("workload",)), "target", "status", "time"):
        drawn.add_column(column, no_wrap=True)
    for column in (*baselines, "registers", "shared", "workspace", "code"):
        drawn.add_column(column, justify="right", no_wrap=True)
    for row in table:
        ratios = [_ratio(row, baseline) for baseline in baselines]
        taken = (row.shared_bytes, row.workspace_bytes, row.code_bytes)
        drawn.add_row(
            *(() if alone else (escape(row.workload),)),
            escape(row.target),
            str(row.status).replace("_", " ") if row.status == "code_only" else row.status.value,
            "-" if row.median_us is None else microseconds(row.median_us),
            *ratios,
            "-" if row.registers is None else str(row.registers),
            *("-" if n is None else quantity(n, "B") for n in taken),
        )
    out.print(drawn)
    if any(row.unsure for row in table):
        out.print("~: the 95 % interval of that ratio holds 1, so neither is faster for sure")
    for row in table:
        if row.message:
            line = f"{row.workload} on {row.target}: {row.message}"
            out.print(line, markup=False, soft_wrap=True)
    if scores is not None:
        out.print(portability_table(scores))
