"""``ekb report``: one offline page of what runs reached, where they lose and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgekernelbench.cli.common import out, quantity, warn


def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="The --out folders of runs.")
    ],
    output: Annotated[
        Path, typer.Option("--out", "-o", help="The page.", show_default=True)
    ] = Path("report.html"),
    k: Annotated[
        list[int] | None, typer.Option("--k", min=1, help="k of Correct@k; repeatable.")
    ] = None,
) -> None:
    """Write a page that needs no network: scores, plots, and every task with its kernels."""
    from edgekernelbench.report.entries import read_entries
    from edgekernelbench.report.page import report_page
    from edgekernelbench.report.write import write_page

    found = read_entries(folders)
    warn(found.problems)
    size = write_page(output, report_page(found, sorted(set(k or [1]))))
    out.print(f"{output}: {len(found.entries)} runs, {quantity(size, 'B')}", markup=False)
