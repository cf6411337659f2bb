"""``ekb suite``: what there is to work on."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from edgekernelbench.cli import suiteadd, suitecheck
from edgekernelbench.cli.common import SUBSETS_HELP, JsonOption, out, print_json
from edgekernelbench.errors import UsageError
from edgekernelbench.suite import load_suite
from edgekernelbench.suite.find import find_workload, find_workloads

app = typer.Typer(help="Patterns and workloads.", no_args_is_help=True)

SubsetOption = Annotated[str, typer.Option("--subset", help=SUBSETS_HELP)]
FamilyOption = Annotated[str | None, typer.Option("--family", help="Only of this family.")]
LevelOption = Annotated[int | None, typer.Option("--level", help="Only of this level: 1, 2, 3.")]
DtypeOption = Annotated[str | None, typer.Option("--dtype", help="Only of this dtype: f32, ...")]
PatternOption = Annotated[str | None, typer.Option("--pattern", help="Only of this pattern.")]
WorkloadArgument = Annotated[str, typer.Argument(metavar="WORKLOAD")]


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
def list_(
    subset: SubsetOption = "all",
    family: FamilyOption = None,
    level: LevelOption = None,
    dtype: DtypeOption = None,
    pattern: PatternOption = None,
    json: JsonOption = False,
) -> None:
    """List the workloads of a subset; options narrow it, together all of them must hold."""
    wanted = {"family": family, "level": level, "dtype": dtype, "pattern": pattern}
    rows: list[dict[str, Any]] = [
        {
            "workload": w.id,
            "pattern": w.definition.id,
            "level": w.level,
            "family": w.family,
            "domain": w.domain,
            "dtype": w.dtype,
        }
        for w in find_workloads(subset, wanted)
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
        "notes": found.notes,
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
    out.print(f"provenance: {found.provenance}\n", markup=False)
    out.print(found.statement(), markup=False, soft_wrap=True)


@app.command("canonical")
def canonical(workload: WorkloadArgument) -> None:
    """Print the canonical IR program of a workload."""
    found = find_workload(workload)
    try:
        text = found.canonical()
    except FileNotFoundError as error:
        raise UsageError(
            f"{found.id}: no canonical program", "write one from the statement: `ekb suite show`"
        ) from error
    print(text)


app.command("check")(suitecheck.check)
app.command("add")(suiteadd.add)
app.command("remove")(suiteadd.remove)
