"""Figures as a reader wants them."""

from __future__ import annotations

from typing import Any

from edgekernelbench.records.schema import Spent


def times(value: float | None) -> str:
    """A ratio: ``1.07x``, ``0.054x``, ``123x``."""
    if value is None:
        return "–"
    return (
        f"{value:.0f}x" if value >= 99.5 else f"{value:.2f}x" if value >= 0.1 else f"{value:.2g}x"
    )


def short_time(us: float | None) -> str:
    """Three significant digits and a unit, from microseconds."""
    if us is None:
        return "–"
    for unit, scale in (("ns", 1e-3), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)):
        if us < 999.5 * scale or unit == "s":
            return f"{us / scale:.3g} {unit}"
    raise AssertionError("unreachable")


def seconds(value: float | None) -> str:
    """A span of work: ``42 s``, ``3.5 min``, ``2.1 h``."""
    if value is None:
        return "–"
    if value < 100:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < 100 * 60 else f"{value / 3600:.3g} h"


def prefixed(value: float | None, unit: str) -> str:
    """With a decimal prefix: ``34.1 MB``."""
    if value is None:
        return "–"
    for prefix, scale in (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
        if abs(value) < 999.5 * scale or prefix == "T":
            return f"{value / scale:.3g} {prefix}{unit}"
    raise AssertionError("unreachable")


def percent(value: float | None) -> str:
    """One decimal."""
    return "–" if value is None else f"{100 * value:.1f} %"


def count(cell: dict[str, Any] | None) -> str:
    """``9/12``."""
    return "–" if cell is None or cell["value"] is None else f"{cell['count']}/{cell['n']}"


def interval(cell: dict[str, Any] | None) -> str:
    """``47–91`` in percent; empty where there is none."""
    if cell is None or not cell["n"] or cell.get("low") is None:
        return ""
    return f"{100 * cell['low']:.0f}–{100 * cell['high']:.0f}"


def amount(value: float, name: str) -> str:
    """A line of the bill, by the unit that ends its name."""
    if name.endswith("_bytes"):
        return prefixed(value, "B")
    return short_time(value * 1e6 if name.endswith("_seconds") else value)


def plain(name: str) -> str:
    """A stored name in words: ``wrong_result`` becomes ``wrong result``."""
    return name.replace("_", " ").removesuffix(" ir") + (" IR" if name.endswith("_ir") else "")


def budget_words(limits: Spent) -> str:
    """What an attempt may use: ``8 evaluations, 60 seconds``."""
    known = limits.model_dump(exclude_none=True)
    words = (
        f"{value:,g} {name.removesuffix('s') if value == 1 else name}"
        for name, value in known.items()
    )
    return ", ".join(words) or "no limits"


def signed(value: float) -> str:
    """A difference of shares in points."""
    return f"{100 * value:+.1f}"


def chance(p_value: float | None) -> str:
    """A p-value with three decimals."""
    if p_value is None:
        return "–"
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def change_words(change: dict[str, Any]) -> str:
    """A task in two runs: what differs, A first."""
    a, b = change["a"], change["b"]
    match change["what"]:
        case "correct" if {a["correct"], b["correct"]} <= {0.0, 1.0}:
            return f"{plain(a['status'])} in A, {plain(b['status'])} in B"
        case "correct":
            return f"correct in {percent(a['correct'])} of attempts, {percent(b['correct'])} in B"
        case "fast":
            return f"{times(a['speedup'])} of its best baseline, {times(b['speedup'])} in B"
        case "time":
            low, high = times(change["low"]), times(change["high"])
            return f"B takes {times(change['ratio'])} as long as A [{low}, {high}]"
    return "no difference"
