"""The tables of a paper, before they are Markdown or LaTeX: words and shares with their counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from edgekernelbench.errors import UsageError
from edgekernelbench.report.entries import Entry
from edgekernelbench.scores.attempts import baseline_order
from edgekernelbench.scores.score import score

GROUPS = ("level", "family", "domain", "dtype", "backend")
_BY = "by-"
NAMES = ("headline", "statuses", *(_BY + group for group in GROUPS))
NONE = "–"

Scored = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """``header`` and every row have the same length; the first column names the row.

    Attributes:
        label: for references to it, of letters and ``-``.
    """

    caption: str
    label: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables_of(
    entries: Sequence[Entry], ks: Sequence[int] = (1,), names: Sequence[str] = NAMES
) -> tuple[Table, ...]:
    """All runs in one table of headlines and one of statuses, then each by level, family, ...

    Args:
        names: which of `NAMES`, in this order.

    Raises:
        UsageError: a name is not known; and see `scores.score.score`.
    """
    if unknown := [name for name in names if name not in NAMES]:
        raise UsageError(f"there is no table {unknown[0]!r}", f"tables are {', '.join(NAMES)}")
    scored = [(entry.name, score(entry.records, ks)) for entry in entries]
    single = {"headline": _headline, "statuses": _statuses}
    out: list[Table] = []
    for name in names:
        out += [single[name](scored)] if name in single else _grouped(scored, name[len(_BY) :])
    return tuple(out)


def share(cell: dict[str, Any] | None) -> str:
    """``75.0 % (9/12) [47, 91]``: value, count and 95 % interval."""
    if cell is None or cell["value"] is None:
        return NONE
    told = f"{100 * cell['value']:.1f} % ({cell['count']}/{cell['n']})"
    if cell.get("low") is None:
        return told
    return f"{told} [{100 * cell['low']:.0f}, {100 * cell['high']:.0f}]"


def factor(value: float | None, interval: Sequence[float | None] = (None, None)) -> str:
    """``1.07 [0.98, 1.16]``: a ratio, with its interval where there is one."""
    if value is None:
        return NONE
    low, high = interval
    return f"{value:.2f}" if low is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _headline(scored: Sequence[tuple[str, Scored]]) -> Table:
    ks = sorted({int(k) for _, one in scored for k in one["correct_at"]})
    baselines = baseline_order({name for _, one in scored for name in one["fast_at"]})
    header = (
        "run", "tasks", "attempts", *(f"Correct@{k}" for k in ks),
        *(f"Fast@1.0 {name}" for name in baselines), "geomean speed-up best",
    )  # fmt: skip
    rows = tuple(
        (
            name,
            str(one["n"]),
            str(one["attempts"]),
            *(share(one["correct_at"].get(str(k))) for k in ks),
            *(share(one["fast_at"].get(b, {}).get("1.0")) for b in baselines),
            factor(one["geomean_speedup"]["best"], one["geomean_interval"]["best"]),
        )
        for name, one in scored
    )
    caption = (
        "Shares of tasks with their counts and 95 % intervals. Fast@1.0: the lower bound of the "
        "speed-up over the baseline reaches 1; best is the fastest scored baseline of each task."
    )
    return Table(caption + _noise(scored), "headline", header, rows)


def _noise(scored: Sequence[tuple[str, Scored]]) -> str:
    """What a reader has to know of the times: they were taken while other work ran."""
    parts = [
        f"{one['timing']['noisy']} of {one['timing']['correct']} in {name}"
        for name, one in scored
        if one["timing"]["noisy"]
    ]
    told = " Correct attempts measured on a noisy machine, with wider intervals: "
    return f"{told}{', '.join(parts)}." if parts else ""


def _statuses(scored: Sequence[tuple[str, Scored]]) -> Table:
    names = list(dict.fromkeys(name for _, one in scored for name in one["statuses"]))
    rows = tuple(
        (name, str(one["attempts"]), *(str(one["statuses"].get(n, 0)) for n in names))
        for name, one in scored
    )
    header = ("run", "attempts", *(name.replace("_", " ") for name in names))
    return Table("How the attempts ended.", "statuses", header, rows)


def _grouped(scored: Sequence[tuple[str, Scored]], group: str) -> Iterator[Table]:
    for number, (name, one) in enumerate(scored, 1):
        suffix = f"-{number}" if len(scored) > 1 else ""
        yield Table(
            f"{name} by {group}.",
            f"{_BY}{group}{suffix}",
            (group, "tasks", "Correct@1", "Fast@1.0 best", "geomean speed-up best"),
            tuple(_group_row(label, part) for label, part in one[f"by_{group}"].items()),
        )


def _group_row(label: str, part: Scored) -> tuple[str, ...]:
    return (
        label,
        str(part["n"]),
        share(part["correct_at"]["1"]),
        share(part["fast_at"]["best"]["1.0"]),
        factor(part["geomean_speedup"]["best"], part["geomean_interval"]["best"]),
    )
