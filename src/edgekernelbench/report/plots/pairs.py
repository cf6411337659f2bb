"""Times of one run over those of another, task by task and family by family."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from edgekernelbench.report.plots.axes import Frame, log_scale
from edgekernelbench.report.words import short_time, times

_UP, _DOWN = "M{x} {y}m-5 4h10l-5 -9z", "M{x} {y}m-5 -4h10l-5 9z"


def ratio_plot(result: dict[str, Any]) -> Markup | None:
    """B over A by the time of B, a mark a task; None where no task has a time in both."""
    timed = [change for change in result["changes"] if change["ratio"] is not None]
    if not timed:
        return None
    ahead = sum(change["low"] > 1 for change in timed)
    behind = sum(change["high"] < 1 for change in timed)
    frame = Frame(
        f"Time of B over A by B's time, for {len(timed)} tasks that both solve: A is surely faster "
        f"on {ahead}, B on {behind}.",
        log_scale(change["b"]["median_us"] for change in timed),
        log_scale([*(change["ratio"] for change in timed), 0.8, 1.25], 2.0),
        "time of B", "Time of B over A",
        short_time, lambda value: f"{value:g}x",
    )  # fmt: skip
    frame.line([(frame.x.low, 1.0), (frame.x.high, 1.0)], "rule")
    for change in sorted(timed, key=_sure):
        _mark(frame, change)
    frame.text(frame.x.high, 1.0, "A is faster ↑", anchor="end", dx=-4, dy=-8)
    frame.text(frame.x.high, 1.0, "B is faster ↓", anchor="end", dx=-4, dy=18)
    return frame.svg()


def _sure(change: dict[str, Any]) -> bool:
    return change["low"] > 1 or change["high"] < 1


def _mark(frame: Frame, change: dict[str, Any]) -> None:
    """A triangle that points to who is surely faster, a hollow circle where nobody is."""
    x, y = frame.px(change["b"]["median_us"]), frame.py(change["ratio"])
    words = (
        f"{change['workload']}: {times(change['ratio'])} "
        f"({times(change['low'])} to {times(change['high'])})"
    )
    if change["low"] > 1:
        css, shape = "fast", Markup('<path d="{d}"/>').format(d=_UP.format(x=x, y=y))
    elif change["high"] < 1:
        css, shape = "slow", Markup('<path d="{d}"/>').format(d=_DOWN.format(x=x, y=y))
    else:
        css, circle = "outside hollow", Markup('<circle cx="{x}" cy="{y}" r="3.5"/>')
        shape = circle.format(x=x, y=y)
    frame.add(
        '<g class="point {css}"><title>{words}</title>{shape}</g>',
        css=css, words=words, shape=shape,
    )  # fmt: skip
