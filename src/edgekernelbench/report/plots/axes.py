"""Scales with round ticks, and a frame of axes to draw into."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

WIDTH, HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 10, 44, 62


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values to coordinates. ``ticks`` are within ``low..high``."""

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """0 at ``low``, 1 at ``high``; values beyond are held at the nearer end."""
        of = math.log if self.log else float
        low, high = of(self.low), of(self.high)
        at = of(max(value, self.low) if self.log else value)
        return min(max((at - low) / (high - low), 0.0), 1.0)


_BEYOND = 1e100


def percent_scale() -> Scale:
    """0 to 1, ticks at every fifth."""
    return Scale(0.0, 1.0, False, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))


def log_scale(values: Iterable[float], least_ratio: float = 10.0) -> Scale:
    """Around positive values, from round number to round number, ``least_ratio`` wide at least.
    Values that nobody measured do not stretch it."""
    known = [value for value in values if 1 / _BEYOND < value < _BEYOND] or [1.0]
    low, high = min(known) / 1.08, max(known) * 1.08
    grow = max(1.0, math.sqrt(least_ratio / (high / low)))
    low, high = low / grow, high * grow
    steps = _steps(low, high)
    below = max((s for s in steps if s <= low), default=low)
    above = min((s for s in steps if s >= high), default=high)
    return Scale(below, above, True, tuple(s for s in steps if below <= s <= above))


def _steps(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten, or only powers, every so many, where that is too dense."""
    first, last = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    decades = math.log10(high / low)
    if decades <= 2.3:
        return [m * 10.0**e for e in range(first, last + 1) for m in (1, 2, 5)]
    every = max(1, math.ceil(decades / 7))
    return [10.0**e for e in range(first - first % every, last + every, every)]


@dataclass(slots=True)
class Frame:
    """Axes with a grid; ``add`` draws into them.

    Attributes:
        title: what a screen reader says of the whole plot.
    """

    title: str
    x: Scale
    y: Scale
    x_label: str
    y_label: str
    x_text: Callable[[float], str]
    y_text: Callable[[float], str]
    parts: list[Markup] = field(default_factory=list)

    def px(self, value: float) -> float:
        return round(_LEFT + self.x.share(value) * (WIDTH - _LEFT - _RIGHT), 1)

    def py(self, value: float) -> float:
        return round(HEIGHT - _BOTTOM - self.y.share(value) * (HEIGHT - _TOP - _BOTTOM), 1)

    def add(self, markup: str, **values: object) -> None:
        """Adds an element; ``{name}`` in it are filled in, escaped."""
        self.parts.append(Markup(markup).format(**values))

    def line(self, points: Sequence[tuple[float, float]], css: str) -> None:
        """A line through values."""
        at = " ".join(f"{self.px(x)},{self.py(y)}" for x, y in points)
        self.add('<polyline class="{css}" points="{at}"/>', css=css, at=at)

    def area(self, lower: Sequence[tuple[float, float]], upper: Sequence[tuple[float, float]],
             css: str) -> None:  # fmt: skip
        """What lies between two lines of values."""
        around = [*lower, *reversed(upper)]
        at = " ".join(f"{self.px(x)},{self.py(y)}" for x, y in around)
        self.add('<polygon class="{css}" points="{at}"/>', css=css, at=at)

    def text(self, x: float, y: float, words: str, css: str = "note", anchor: str = "start",
             dx: float = 0, dy: float = 0) -> None:  # fmt: skip
        """Words at values, moved by some units."""
        self.add(
            '<text class="{css}" x="{x}" y="{y}" text-anchor="{anchor}">{words}</text>',
            css=css, x=self.px(x) + dx, y=self.py(y) + dy, anchor=anchor, words=words,
        )  # fmt: skip

    def svg(self) -> Markup:
        """The whole picture."""
        head = Markup(
            '<svg class="plot" viewBox="0 0 {w} {h}" role="img" aria-label="{title}" '
            'xmlns="http://www.w3.org/2000/svg">'
        ).format(w=WIDTH, h=HEIGHT, title=self.title)
        return head + Markup("").join([*self._grid(), *self.parts]) + Markup("</svg>")

    def _grid(self) -> list[Markup]:
        bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
        out = []
        for tick in self.x.ticks:
            at = self.px(tick)
            anchor = "end" if at > right - 20 else "middle"
            out.append(_line("grid", at, _TOP, at, bottom))
            out.append(_text("tick", at, bottom + 24, anchor, self.x_text(tick)))
        for tick in self.y.ticks:
            at = self.py(tick)
            out.append(_line("grid", _LEFT, at, right, at))
            out.append(_text("tick", _LEFT - 8, at + 4, "end", self.y_text(tick)))
        out.append(_line("axis", _LEFT, bottom, right, bottom))
        middle = (_LEFT + right) / 2
        out.append(_text("label", middle, HEIGHT - 8, "middle", self.x_label))
        out.append(_text("label", 0, 22, "start", self.y_label))
        return out


def _line(css: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    return Markup(f'<line class="{css}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')


def _text(css: str, x: float, y: float, anchor: str, words: str) -> Markup:
    return Markup(
        f'<text class="{css}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
    )
