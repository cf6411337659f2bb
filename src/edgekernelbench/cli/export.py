"""``ekb export``: records and scores as CSV, Parquet, Markdown or LaTeX."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from edgekernelbench.cli.common import out, quantity, warn
from edgekernelbench.errors import UsageError


def export(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="The --out folders of runs.")
    ],
    output: Annotated[
        Path, typer.Option("--out", "-o", help="The file, or - for standard output.")
    ],
    form: Annotated[
        Literal["csv", "parquet", "markdown", "latex"] | None,
        typer.Option("--format", help="If left out, as the file's name ends.", show_default=False),
    ] = None,
    k: Annotated[
        list[int] | None,
        typer.Option("--k", min=1, help="k of Correct@k, in Markdown and LaTeX; repeatable."),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this one, in Markdown and LaTeX (headline, statuses, by-level, by-family, "
            "by-domain, by-dtype, by-backend); repeatable."
        ),
    ] = None,
) -> None:
    """Write runs for other programs: csv and parquet have a row for each attempt and baseline,
    markdown and latex tables for a paper."""
    from edgekernelbench.report.entries import read_entries
    from edgekernelbench.report.export.write import exported, format_of
    from edgekernelbench.report.write import write_bytes

    stdout = str(output) == "-"
    if stdout and form is None:
        raise UsageError("-: the form is not named", "add --format")
    chosen = form or format_of(output)
    found = read_entries(folders)
    warn(found.problems)
    data = exported(found.entries, chosen, sorted(set(k or [1])), table)
    if stdout:
        sys.stdout.buffer.write(data)
        return
    size = write_bytes(output, data)
    told = f"{output}: {chosen}, {sum(len(e.records) for e in found.entries)} attempts"
    out.print(f"{told} of {len(found.entries)} runs, {quantity(size, 'B')}", markup=False)
