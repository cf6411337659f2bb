"""A point a task: the gap between correct and fast, and how near kernels come to the roofs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from edgekernelbench.report.plots.axes import Frame, log_scale
from edgekernelbench.report.tasks import TaskRow
from edgekernelbench.report.words import prefixed, short_time, times

Link = Callable[[TaskRow], str]
"""Address of a task's section."""

_R = 4.5


@dataclass(frozen=True, slots=True)
class Roofs:
    """Peaks of a target.

    Attributes:
        flops: f32 operations a second.
        memory: bytes a second from memory.
        source: whose figures they are, in words.
    """

    flops: float
    memory: float
    source: str


def gap_plot(rows: Iterable[TaskRow], link: Link) -> Markup | None:
    """Speed-up over the best baseline, by that baseline's time; None without any such task."""
    points = [
        (row, row.rival_us, row.speedup)
        for row in rows
        if row.rival_us is not None and row.speedup is not None
    ]
    if not points:
        return None
    slow, unsure = (sum(r.outcome == name for r, _, _ in points) for name in ("slow", "unsure"))
    frame = Frame(
        f"{len(points)} tasks with a correct kernel by the time of their best baseline and the "
        f"speed-up over it: {slow} are surely slower than it, {unsure} undecided.",
        log_scale(us for _, us, _ in points),
        log_scale([*(s for _, _, s in points), 0.8, 1.25]),
        "time of the best baseline",
        "Speed-up over the best baseline",
        short_time,
        lambda v: f"{v:g}x",
    )
    frame.line([(frame.x.low, 1.0), (frame.x.high, 1.0)], "rule")
    for row, us, speedup in points:
        words = f"{row.task}: {times(speedup)} of {row.rival} ({short_time(us)})"
        _point(frame, us, speedup, row, link(row), words)
    frame.text(frame.x.high, 1.0, "faster than every baseline ↑", anchor="end", dx=-4, dy=-8)
    frame.text(frame.x.high, 1.0, "correct, but slower ↓", anchor="end", dx=-4, dy=18)
    return frame.svg()


def roofline_plot(
    rows: Iterable[TaskRow], roofs: Roofs | None, link: Link
) -> tuple[Markup, int] | None:
    """Operations a second by operations a byte of inputs and outputs, and the number of tasks
    drawn; None where no correct kernel tells its operations."""
    points = [found for row in rows if (found := _intensity(row)) is not None]
    if not points:
        return None
    x = log_scale([*(i for _, i, _ in points), *_ridge(roofs)])
    y = log_scale([*(rate for _, _, rate in points), *([roofs.flops] if roofs else [])])
    told = f"peaks {roofs.source}" if roofs else "the target's peaks are not known"
    frame = Frame(
        f"Operations a second by operations a byte of {len(points)} correct kernels; {told}.",
        x, y, "operations per byte of inputs and outputs", "Operations per second",
        lambda v: f"{v:g}", lambda v: prefixed(v, ""),
    )  # fmt: skip
    if roofs is not None:
        _draw_roofs(frame, roofs)
    for row, intensity, rate in points:
        words = f"{row.task}: {prefixed(rate, '')}op/s at {intensity:.3g} op/B"
        _point(frame, intensity, rate, row, link(row), words)
    return frame.svg(), len(points)


def _ridge(roofs: Roofs | None) -> Sequence[float]:
    return () if roofs is None else (roofs.flops / roofs.memory,)


def _draw_roofs(frame: Frame, roofs: Roofs) -> None:
    ridge = roofs.flops / roofs.memory
    low = max(frame.x.low, frame.y.low / roofs.memory)
    frame.line([(low, low * roofs.memory), (ridge, roofs.flops), (frame.x.high, roofs.flops)],
               "roof")  # fmt: skip
    frame.text(frame.x.high, roofs.flops, f"{prefixed(roofs.flops, '')}op/s in f32", "note", "end",
               -4, -6)  # fmt: skip
    middle = math.sqrt(low * ridge)
    frame.text(middle, middle * roofs.memory, f"memory {prefixed(roofs.memory, 'B')}/s", "note",
               "start", 10, 16)  # fmt: skip


def _intensity(row: TaskRow) -> tuple[TaskRow, float, float] | None:
    """Operations a byte and operations a second of a correct kernel; None where it does none, or
    no compiler counted them."""
    evaluation, performance = row.shown.evaluation, row.performance
    resources = None if evaluation is None else evaluation.resources
    facts = None if resources is None else resources.facts
    if facts is None or performance is None or not facts.flops or not facts.io_bytes:
        return None
    return row, facts.flops / facts.io_bytes, facts.flops / (performance.median_us * 1e-6)


def _point(frame: Frame, x: float, y: float, row: TaskRow, href: str, words: str) -> None:
    """A circle for what is fast, a triangle for what is not, a diamond for what is undecided,
    hollow where the call itself takes most of the time: told apart without colours. The table has
    the same, for keyboards."""
    at, up = frame.px(x), frame.py(y)
    hollow = " hollow" if row.overhead_dominated else ""
    if row.outcome == "fast":
        shape = Markup('<circle cx="{x}" cy="{y}" r="{r}"/>').format(x=at, y=up, r=_R)
    else:
        corners = "l-5 -5l5 -5l5 5z" if row.outcome == "unsure" else "l-5 -9h10z"
        path = f"M{at:.1f} {up + 5:.1f}{corners}"
        shape = Markup('<path d="{path}"/>').format(path=path)
    frame.add(
        '<a href="{href}" tabindex="-1" class="point {css}"><title>{words}</title>{shape}</a>',
        href=href, css=row.outcome + hollow, words=words, shape=shape,
    )  # fmt: skip
