"""Two runs held against each other: for the terminal and as a page, from one computation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgekernelbench.report.entries import Entry, read_whole
from edgekernelbench.report.page import render_page
from edgekernelbench.report.plots.pairs import ratio_plot
from edgekernelbench.scores.attempts import baseline_order
from edgekernelbench.scores.changes import GRAVITY
from edgekernelbench.scores.compare import compare
from edgekernelbench.scores.likeness import refuse_other_devices


@dataclass(frozen=True, slots=True)
class Comparison:
    """``result``: what `ekb compare --json` prints, A less B. ``problems``: of both folders."""

    a: Entry
    b: Entry
    result: dict[str, Any]
    problems: tuple[str, ...]

    @property
    def baselines(self) -> tuple[str, ...]:
        return baseline_order(self.result["fast_at"])

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """Tasks by what changed and who is ahead."""
        return Counter((change["what"], change["ahead"]) for change in self.result["changes"])

    def changed(self, ahead: str) -> list[dict[str, Any]]:
        """The tasks that speak for one run, the gravest first."""
        found = [change for change in self.result["changes"] if change["ahead"] == ahead]
        sign = 1.0 if ahead == "a" else -1.0
        return sorted(found, key=lambda c: (-GRAVITY[c["what"]], -sign * (c["ratio"] or 1.0)))

    @property
    def several_targets(self) -> bool:
        return len({change["target"] for change in self.result["changes"]}) > 1

    @property
    def unpaired(self) -> tuple[str, ...]:
        return unpaired(self.result["not_paired"])


def compare_runs(a: Path, b: Path) -> Comparison:
    """Compares the records of two folders.

    Raises:
        UsageError: a folder holds no record, or the two cannot be held against each other (see
            `scores.compare.compare` and `refuse_other_devices`).
    """
    (one, problems), (other, more) = read_whole(a), read_whole(b)
    refuse_other_devices(one.targets, other.targets)
    result = compare(one.records, other.records)
    return Comparison(one, other, result, (*problems, *more))


def unpaired(left: dict[str, list[str]], shown: int = 3) -> tuple[str, ...]:
    """Tasks that are in no figure, a line for each reason."""
    words = {
        "only_in_a": "only in A",
        "only_in_b": "only in B",
        "outside_denominator": "without a verdict on the kernel in A or B",
    }
    return tuple(
        f"not paired: {len(tasks)} task{'s' if len(tasks) > 1 else ''} {words[why]} "
        f"({_some(tasks, shown)})"
        for why, tasks in left.items()
        if tasks
    )


def _some(names: Sequence[str], shown: int) -> str:
    return ", ".join(names[:shown]) + (", ..." if len(names) > shown else "")


def comparison_page(found: Comparison) -> str:
    """The page, whole; nothing of it needs a script."""
    return render_page(
        "compare.html.j2", (), found=found, result=found.result, plot=ratio_plot(found.result)
    )
