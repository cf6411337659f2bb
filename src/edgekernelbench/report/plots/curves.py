"""Fast@p over p: one line a baseline, or one a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from edgekernelbench.report.plots.axes import Frame, Scale, percent_scale
from edgekernelbench.scores.attempts import Tasks
from edgekernelbench.scores.shares import THRESHOLDS, fast_curve

_LOW, _HIGH, _POINTS = 0.25, 8.0, 97
PS = tuple(
    sorted(
        {round(_LOW * (_HIGH / _LOW) ** (i / (_POINTS - 1)), 4) for i in range(_POINTS)}
        | set(THRESHOLDS)
    )
)
"""Where the curves are computed; the thresholds of scores among them."""

Curve = Sequence[Mapping[str, Any]]


def curves_of(tasks: Tasks, baselines: Sequence[str]) -> dict[str, Curve]:
    """Cells of Fast@p at each of `PS`, by baseline."""
    return {name: fast_curve(tasks, name, PS) for name in baselines}


def fast_plot(curves: Mapping[str, Curve], title: str, banded: str | None) -> Markup:
    """Lines in the order given, styled ``s0``, ``s1``, ...; the one named has its interval."""
    frame = Frame(
        title, Scale(_LOW, _HIGH, True, (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)), percent_scale(),
        "p, times as fast as the baseline", "Share of tasks",
        lambda value: f"{value:g}x", lambda value: f"{100 * value:.0f} %",
    )  # fmt: skip
    frame.line([(1.0, 0.0), (1.0, 1.0)], "rule")
    for number, (name, cells) in enumerate(curves.items()):
        known = [(p, cell) for p, cell in zip(PS, cells, strict=True) if cell["n"]]
        if not known:
            continue
        if name == banded:
            frame.area(
                [(p, cell["low"]) for p, cell in known],
                [(p, cell["high"]) for p, cell in known],
                f"band s{number}",
            )
        frame.line([(p, cell["value"]) for p, cell in known], f"curve s{number}")
    return frame.svg()
