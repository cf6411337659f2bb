"""Terminal tables of scores and records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from edgekernelbench.cli.common import microseconds, quantity
from edgekernelbench.records.schema import Record
from edgekernelbench.scores.attempts import baseline_order


def share(cell: dict[str, Any]) -> str:
    """``75.0 % 9/12 [47, 91]``: value, count, interval."""
    if cell["value"] is None:
        return "-"
    text = f"{100 * cell['value']:5.1f} % {cell['count']}/{cell['n']}"
    if "low" in cell:
        text += f" [{100 * cell['low']:.0f}, {100 * cell['high']:.0f}]"
    return text


def plain_table(title: str | None, caption: str | None = None) -> Table:
    """A table without frames."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        caption=escape(caption) if caption else None,
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )


def score_tables(result: dict[str, Any]) -> Iterator[Table]:
    """Headline, one row a baseline; what kernels take; one row a level, a family and so on."""
    yield _headline(result)
    yield _resources(result["resources"])
    for title in ("level", "family", "domain", "backend"):
        table = plain_table(f"by {title}")
        table.add_column(title)
        table.add_column("Correct@1")
        table.add_column("Fast@1.0 best")
        table.add_column("geomean best", justify="right")
        table.add_column("geomean tvm", justify="right")
        for name, group in result[f"by_{title}"].items():
            table.add_row(
                escape(name),
                share(group["correct_at"]["1"]),
                share(group["fast_at"]["best"]["1.0"]),
                _times(group["geomean_speedup"].get("best")),
                _times(group["geomean_speedup"].get("tvm")),
            )
        yield table
    if result.get("portability"):
        yield portability_table(result["portability"])


def _resources(bill: dict[str, dict[str, Any]]) -> Table:
    """What correct kernels take; a line for each figure that any of them tells."""
    table = plain_table("correct kernels take")
    for column in ("", "median", "most", "kernels"):
        table.add_column(column, justify="right" if column else "left")
    for name, cell in bill.items():
        if cell["n"]:
            words, unit = name.rsplit("_", 1)
            shown = (_amount(cell[which], unit) for which in ("median", "max"))
            table.add_row(words.replace("_", " "), *shown, str(cell["n"]))
    return table


def _amount(value: float, unit: str) -> str:
    if unit == "bytes":
        return quantity(value, "B")
    return microseconds(value * 1e6 if unit == "seconds" else value)


_SHARES = {
    "correct_on_all": "correct on all",
    "fast_on_all": "fast on all",
    "fast_on_one": "fast on at least one",
}


def portability_table(scores: dict[str, Any]) -> Table:
    """Shares of kernels: of those judged on all targets, and on the targets that support each."""
    left = ", ".join(f"{reason} {count}" for reason, count in scores["left_out"].items())
    table = plain_table(
        f"portability: {scores['kernels']} kernels on {', '.join(scores['targets'])}",
        f"Left out of the first column: {left or 'none'}.\n"
        "Fast: the lower bound of the speed-up over best reaches 1.",
    )
    for column in ("kernels", "judged on all", "where supported"):
        table.add_column(column)
    for key, words in _SHARES.items():
        table.add_row(words, share(scores[key]), share(scores["where_supported"][key]))
    return table


def _headline(result: dict[str, Any]) -> Table:
    """The columns beside Fast@1.0 of all: within a cap of memory, and of what is no launch."""
    statuses = ", ".join(f"{name} {count}" for name, count in result["statuses"].items())
    correct = "  ".join(f"Correct@{k} {share(v)}" for k, v in result["correct_at"].items())
    table = plain_table(
        f"{correct}\n{_too_few(result)}"
        f"{result['n']} tasks, {result['attempts']} attempts: {statuses}\n"
        f"spent: {_spent(result['spent'])}",
        f"[low, high]: 95 % interval over tasks ({_methods(result)}). Fast: the lower bound of\n"
        "the speed-up's 95 % interval reaches p. tvm-raw is shown, never part of best."
        + _beside(result),
    )
    table.add_column("baseline")
    table.add_column("Fast@1.0")
    table.add_column("by median")
    table.add_column("Fast@2.0")
    other = {"no launches": result["without_overhead"], "in the cap": result.get("memory_cap")}
    others = {words: section for words, section in other.items() if _tells(section)}
    for words in others:
        table.add_column(f"Fast@1.0 {words}")
    table.add_column("geomean speed-up", justify="right")
    for name in baseline_order(result["fast_at"]):
        at = result["fast_at"][name]
        low, high = result["geomean_interval"][name][0], result["geomean_interval"][name][1]
        interval = "" if low is None else f" [{low:.2f}, {high:.2f}]"
        table.add_row(
            escape(name),
            share(at["1.0"]),
            share(at["1.0"]["by_median"]),
            share(at["2.0"]),
            *(share(section["fast_at"][name]["1.0"]) for section in others.values()),
            _times(result["geomean_speedup"][name]) + interval,
        )
    return table


def _too_few(result: dict[str, Any]) -> str:
    """A line for each k that does not count all tasks."""
    return "".join(
        f"Correct@{k} leaves out {left} of {cell['n'] + left} tasks: fewer than {k} attempts "
        "inside the denominator\n"
        for k, cell in result["correct_at"].items()
        if (left := cell["too_few_attempts"])
    )


def _methods(result: dict[str, Any]) -> str:
    """How the intervals of the headline were made."""
    shares = [*result["correct_at"].values(), *(at["1.0"] for at in result["fast_at"].values())]
    return " or ".join(sorted({cell["interval"] for cell in shares}, reverse=True))


def _tells(section: dict[str, Any] | None) -> bool:
    return section is not None and section.get("left_out") != 0


def _beside(result: dict[str, Any]) -> str:
    """What the columns beside the plain ones count, where there are some."""
    lines = ""
    if left := result["without_overhead"]["left_out"]:
        lines += (
            f"\nno launches: without {left} tasks whose time is mostly that of the call itself."
        )
    if cap := result.get("memory_cap"):
        correct = share(cap["correct_at"]["1"]).strip()
        lines += (
            f"\nin the cap of {quantity(cap['bytes'], 'B')}: Correct@1 {correct}; correct, but "
            f"over it {cap['over']}, of unknown need {cap['unknown']}."
        )
    return lines + _timing(result["timing"]) + _lost(result["lost_baselines"])


def _lost(baselines: dict[str, dict[str, int]]) -> str:
    """Which baselines were not there to be beaten, where they should have been."""
    lines = ""
    for name, seen in baselines.items():
        told = f"{sum(seen.values()) - seen['measured']} of {sum(seen.values())}"
        lines += (
            f"\nbaselines: {name} gave no time beside {told} correct attempts; best is without it."
        )
    return lines


def _timing(counts: dict[str, int]) -> str:
    """How many times are doubtful, where some are."""
    told = {
        "noisy": "measured on a noisy machine, intervals stretched",
        "wide": "with a wider interval than asked for",
    }
    parts = [f"{counts[name]} {words}" for name, words in told.items() if counts[name]]
    lines = ""
    if parts:
        lines += f"\ntiming: of {counts['correct']} correct attempts {'; '.join(parts)}."
    if counts["none"]:
        lines += f"\ntiming: {counts['none']} attempts have none, the machine was too busy."
    return lines


def _spent(spent: dict[str, float | None]) -> str:
    """What all attempts used together, without what nobody knows."""
    parts = []
    if spent["tokens"]:
        parts.append(f"{spent['tokens']:,.0f} tokens")
    if spent["cost"] is not None:
        parts.append(f"{spent['cost']:.2f} dollars")
    parts.append(f"{spent['evaluations'] or 0:,.0f} evaluations")
    parts.append(f"{(spent['seconds'] or 0) / 60:.1f} minutes")
    return ", ".join(parts)


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def record_row(record: Record) -> tuple[str, ...]:
    """Workload, status, time, speed-up over best (named), tvm, ort; for the table of a run."""
    evaluation = record.evaluation
    if evaluation is None or evaluation.performance is None:
        return record.task.workload, record.status.value, "-", "-", "-", "-"

    def against(name: str | None) -> str:
        result = evaluation.baselines.get(name) if name else None
        if result is None or result.speedup is None:
            return "-"
        return f"{result.speedup:.2f}x"

    best = against(evaluation.best)
    return (
        record.task.workload,
        record.status.value,
        microseconds(evaluation.performance.median_us),
        f"{best} ({evaluation.best})" if evaluation.best else "-",
        against("tvm"),
        against("ort"),
    )
