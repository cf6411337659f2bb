"""``ekb suite``: what there is to work on."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from edgekernelbench.cli import suitecheck
from edgekernelbench.cli.common import JsonOption, out, print_json, quantity
from edgekernelbench.errors import UsageError
from edgekernelbench.suite import Workload, load_suite

app = typer.Typer(help="Patterns and workloads.", no_args_is_help=True)

SubsetOption = Annotated[str, typer.Option("--subset", help="quick, agent, heldout or all.")]
WorkloadArgument = Annotated[str, typer.Argument(metavar="WORKLOAD")]


def find_workload(name: str) -> Workload:
    """The workload of that name.

    Raises:
        UsageError: naming the nearest ones, if there is none.
    """
    import difflib

    workloads = load_suite().workloads
    if name in workloads:
        return workloads[name]
    near = difflib.get_close_matches(name, list(workloads), 3, 0.5)
    raise UsageError(
        f"unknown workload {name!r}",
        f"did you mean {', '.join(near)}?" if near else "`ekb suite list` names them all",
    )


@app.command("stats")
def stats(json: JsonOption = False) -> None:
    """Count patterns and workloads by level, family and domain."""
    result = load_suite().stats()
    if json:
        print_json(result)
        return
    out.print(f"{result['patterns']} patterns, {result['workloads']} workloads")
    for key in ("by_level", "by_family", "by_domain"):
        counts = ", ".join(f"{name} {count}" for name, count in result[key].items())
        out.print(f"{key.removeprefix('by_')}: {counts}")


@app.command("list")
def list_(subset: SubsetOption = "all", json: JsonOption = False) -> None:
    """List the workloads of a subset."""
    rows: list[dict[str, Any]] = [
        {
            "workload": w.id,
            "pattern": w.definition.id,
            "level": w.level,
            "family": w.family,
            "domain": w.domain,
            "dtype": w.dtype,
        }
        for w in load_suite().subset(subset)
    ]
    if json:
        print_json(rows)
        return
    table = Table(title=f"{len(rows)} workloads", title_justify="left")
    for column in ("workload", "level", "family", "domain", "dtype"):
        table.add_column(column)
    for row in rows:
        table.add_row(*(str(row[c]) for c in ("workload", "level", "family", "domain", "dtype")))
    out.print(table)


@app.command("show")
def show(workload: WorkloadArgument, json: JsonOption = False) -> None:
    """Show a task: its statement, reference, shapes and where it comes from."""
    found = find_workload(workload)
    facts = {
        "workload": found.id,
        "pattern": found.definition.id,
        "level": found.level,
        "family": found.family,
        "domain": found.domain,
        "dtype": found.dtype,
        "source": found.source,
        "provenance": found.provenance,
        "tolerance": found.tolerance,
        "flops": found.flops,
        "bytes_min": found.bytes_min,
        "header": found.header(),
        "statement": found.statement(),
    }
    if json:
        print_json(facts)
        return
    out.print(f"[bold]{found.id}[/]  level {found.level}, {found.family}, {found.domain}")
    out.print(f"{found.source} ({found.provenance})", markup=False)
    out.print(f"{quantity(found.flops, 'op')}, {quantity(found.bytes_min, 'B')} in and out\n")
    out.print(found.statement(), markup=False, soft_wrap=True)


@app.command("canonical")
def canonical(workload: WorkloadArgument) -> None:
    """Print the canonical IR program of a workload."""
    print(find_workload(workload).canonical())


app.command("check")(suitecheck.check)
