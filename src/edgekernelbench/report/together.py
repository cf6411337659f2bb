"""Several entries side by side, and what a paired test says of each against the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from edgekernelbench.errors import UsageError
from edgekernelbench.records.schema import Record
from edgekernelbench.report.plots.curves import fast_plot
from edgekernelbench.report.view import View
from edgekernelbench.scores.agents import agent_row
from edgekernelbench.scores.attempts import baseline_order
from edgekernelbench.scores.compare import compare

DRAWN = 6
"""Curves that can be told apart in one picture."""


@dataclass(frozen=True, slots=True)
class Paired:
    """An entry against the first: what `ekb compare` gives, or why it refuses."""

    name: str
    result: dict[str, Any] | None
    refusal: str


@dataclass(frozen=True, slots=True)
class Together:
    """``rows``: one an entry, as `ekb compare-agents` has them. ``plot``: Fast@p over the best
    baseline, a line for each of the first `DRAWN`."""

    rows: tuple[dict[str, Any], ...]
    baselines: tuple[str, ...]
    plot: Markup
    paired: tuple[Paired, ...]


def together(views: Sequence[View]) -> Together | None:
    """None for a single entry."""
    if len(views) < 2:
        return None
    rows = tuple(
        agent_row(view.entry.agent, view.entry.records) | {"name": view.entry.name}
        for view in views
    )
    curves = {view.entry.name: view.curves["best"] for view in views[:DRAWN]}
    title = "Share of tasks with a kernel at least p times as fast as the best baseline, by run"
    return Together(
        rows,
        baseline_order({name for row in rows for name in row["fast_at"]}),
        fast_plot(curves, title, None),
        tuple(
            paired(view.entry.name, view.entry.records, views[0].entry.records)
            for view in views[1:]
        ),
    )


def paired(name: str, records: Sequence[Record], first: Sequence[Record]) -> Paired:
    """What a paired test says of records against the first's."""
    try:
        return Paired(name, compare(records, first), "")
    except UsageError as error:
        return Paired(name, None, error.message)
