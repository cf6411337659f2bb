"""``ekb leaderboard``: one offline page on which runs stand in order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from edgekernelbench.cli.common import JsonOption, err, out, print_json, quantity, warn
from edgekernelbench.cli.tables import plain_table, share

if TYPE_CHECKING:
    from edgekernelbench.report.board.sections import Section


def leaderboard(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR...", help="The --out folders of runs, or folders above them."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--out", "-o", help="The page.", show_default=True)
    ] = Path("leaderboard.html"),
    json: JsonOption = False,
) -> None:
    """Write a page on which runs stand in order, apart by what may not be mixed.

    What is no run is named, and keeps no other from being shown.
    """
    from edgekernelbench.report.board.page import board_data, board_page
    from edgekernelbench.report.board.sections import sections_of
    from edgekernelbench.report.board.submissions import read_submissions
    from edgekernelbench.report.write import write_page

    found = read_submissions(folders or [])
    warn(found.problems)
    sections = sections_of(found.submissions)
    size = write_page(output, board_page(sections, found.problems))
    if json:
        print_json(board_data(sections, found.problems))
    else:
        for section in sections:
            out.print(_table(section))
    told = f"{len(found.submissions)} entries in {len(sections)} sections, {quantity(size, 'B')}"
    err.print(f"{output}: {told}", markup=False, soft_wrap=True)


def _table(section: Section) -> Table:
    told = (section.facts.get(name, "") for name in ("processor", "device", "tolerances"))
    table = plain_table(escape(section.title), "; ".join(filter(None, told)))
    for column in ("rank", "run", "agent", "Fast@1.0 best", "Correct@1", "verified"):
        table.add_column(column, justify="right" if column == "rank" else "left")
    for place in section.places:
        one = place.submission
        marks = one.standing.word + ("" if one.isolated else "; agent not isolated")
        table.add_row(
            "-" if place.rank is None else str(place.rank),
            escape(one.entry.name),
            escape(one.entry.agent),
            share(one.row["fast_at"]["best"]),
            share(one.row["correct_at"]),
            marks,
        )
    return table
