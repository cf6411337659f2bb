"""The leaderboard as a page, and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgekernelbench.report.board.sections import Place, Section
from edgekernelbench.report.page import render_page
from edgekernelbench.report.together import DRAWN


def board_page(sections: Sequence[Section], problems: Sequence[str]) -> str:
    """The page, whole; without scripts it lacks nothing but the sorting."""
    return render_page(
        "board.html.j2", ("sort.js",),
        sections=sections, problems=problems, drawn=DRAWN,
        entries=sum(len(section.places) for section in sections),
    )  # fmt: skip


def board_data(sections: Sequence[Section], problems: Sequence[str]) -> dict[str, Any]:
    """The JSON object of ``ekb leaderboard --json``."""
    return {"sections": [_section(section) for section in sections], "problems": list(problems)}


def _section(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "conditions": section.facts,
        "rows": [_row(place) for place in section.places],
        "paired": [
            {"name": pair.name, "result": pair.result, "refusal": pair.refusal}
            for pair in section.paired
        ],
    }


def _row(place: Place) -> dict[str, Any]:
    one = place.submission
    first = one.records[0]
    return {
        "rank": place.rank,
        "name": one.entry.name,
        "model": first.model,
        "isolated": one.isolated,
        "dates": one.dates,
        **one.row,
        "agent": first.agent,
        "limits": first.limits.model_dump(mode="json"),
        "verification": {
            "verdict": one.standing.word,
            "told": one.standing.told,
            "date": one.standing.date,
            "command": one.standing.command,
        },
    }
