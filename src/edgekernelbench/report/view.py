"""What the page says of one entry, ready for its template."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from edgekernelbench.records.schema import Record, Spent
from edgekernelbench.report.entries import Entry
from edgekernelbench.report.losses import Failure, Loss, failures, losses
from edgekernelbench.report.matrix import Matrix, matrix_of
from edgekernelbench.report.plots.curves import Curve, curves_of, fast_plot
from edgekernelbench.report.plots.points import Roofs, gap_plot, roofline_plot
from edgekernelbench.report.roofs import roofs_of
from edgekernelbench.report.tasks import TaskRow, task_rows
from edgekernelbench.report.words import budget_words
from edgekernelbench.scores.attempts import baseline_order, counted, is_correct
from edgekernelbench.scores.score import score

GROUPS = ("level", "family", "domain", "dtype", "backend")

Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Roofline:
    """``drawn``: correct kernels whose operations are known; ``correct``: all of them."""

    target: str
    plot: Markup
    roofs: Roofs | None
    drawn: int
    correct: int


@dataclass(frozen=True, slots=True)
class View:
    """An entry's page. ``score``: what `ekb score --json` prints; ``places``: of tasks in rows."""

    number: int
    entry: Entry
    score: dict[str, Any]
    rows: tuple[TaskRow, ...]
    places: dict[str, int]
    baselines: tuple[str, ...]
    facts: Facts
    losses: tuple[Loss, ...]
    outcomes: Counter[str]
    failures: tuple[Failure, ...]
    curves: dict[str, Curve]
    curve_plot: Markup
    gap: Markup | None
    rooflines: tuple[Roofline, ...]
    spending: tuple[Spending, ...]
    matrix: Matrix | None

    @property
    def timed(self) -> int:
        """Tasks with a correct kernel and a baseline."""
        return sum(self.outcomes[name] for name in ("fast", "unsure", "slow"))

    def link(self, task: str) -> str:
        """Address of a task's section within the page."""
        return task_link(self.number, self.places[task])


@dataclass(frozen=True, slots=True)
class Spending:
    """What attempts used of one thing; ``limit``: an attempt's, None where there is none.

    Attributes:
        known: attempts that tell.
        at_limit: of these, those that used it up.
        per_correct: the total over correct attempts; None without any.
    """

    what: str
    limit: float | None
    total: float
    median: float
    most: float
    known: int
    at_limit: int
    per_correct: float | None


def task_link(entry: int, row: int) -> str:
    """Address of a task's section within the page."""
    return f"#task-{entry}-{row}"


def view_of(number: int, entry: Entry, ks: Sequence[int]) -> View:
    """Computes everything of one entry."""
    scored = score(entry.records, ks)
    rows = task_rows(entry.records)
    places = {row.task: place for place, row in enumerate(rows)}

    def link(row: TaskRow) -> str:
        return task_link(number, places[row.task])

    baselines = baseline_order(scored["fast_at"])
    curves = curves_of(counted(entry.records), baselines)
    title = f"Share of tasks with a kernel at least p times as fast, by baseline, of {entry.name}"
    return View(
        number=number,
        entry=entry,
        score=scored,
        rows=rows,
        places=places,
        baselines=baselines,
        facts=_facts(entry),
        losses=losses(rows),
        outcomes=Counter(row.outcome for row in rows),
        failures=failures(rows),
        curves=curves,
        curve_plot=fast_plot(curves, title, "best"),
        gap=gap_plot(rows, link),
        rooflines=tuple(_rooflines(entry, rows, link)),
        spending=tuple(_spending(entry.records)),
        matrix=matrix_of(rows),
    )


def _rooflines(entry: Entry, rows: Sequence[TaskRow], link: Any) -> Iterable[Roofline]:
    for name in sorted({row.shown.task.target for row in rows}):
        own = [row for row in rows if row.shown.task.target == name]
        records = [record for row in own for record in row.attempts]
        roofs = roofs_of(name, records, entry.targets.get(name))
        found = roofline_plot(own, roofs, link)
        if found is not None:
            yield Roofline(name, found[0], roofs, found[1], sum(row.correct > 0 for row in own))


def _facts(entry: Entry) -> Facts:
    """What was run, where and under what conditions; several values where records differ."""
    told: dict[str, dict[str, None]] = {}

    def tell(name: str, value: object) -> None:
        if value not in (None, ""):
            told.setdefault(name, {})[str(value)] = None

    for record in entry.records:
        tell("agent", record.agent)
        tell("model", record.model)
        tell("target", record.task.target)
        tell("budget of an attempt", budget_words(record.limits))
        tell("tolerances", f"version {record.task.tolerance_version}")
        tell("edgekernelbench", record.versions.get("edgekernelbench"))
        tell("isolation", None if record.isolated else "the agent was not isolated")
        evaluation = record.evaluation
        if evaluation is not None and evaluation.environment is not None:
            tell("processor", evaluation.environment.cpu)
            tell("system", evaluation.environment.system)
        if evaluation is not None and evaluation.performance is not None:
            tell("threads", evaluation.performance.threads)
            tell("caches", evaluation.performance.cache_state)
            tell("timer", evaluation.performance.timer)
    days = sorted({record.started[:10] for record in entry.records})
    tell("date", days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}")
    return tuple((name, ", ".join(values)) for name, values in told.items())


def _spending(records: Sequence[Record]) -> Iterable[Spending]:
    correct = sum(map(is_correct, records))
    for what in Spent.model_fields:
        used = [(value, r) for r in records if (value := getattr(r.spent, what)) is not None]
        if not used or not any(value for value, _ in used):
            continue
        values = [value for value, _ in used]
        limits = {getattr(record.limits, what) for record in records}
        limit = limits.pop() if len(limits) == 1 else None
        yield Spending(
            what=what,
            limit=limit,
            total=sum(values),
            median=statistics.median(values),
            most=max(values),
            known=len(values),
            at_limit=0 if limit is None else sum(value >= limit for value in values),
            per_correct=sum(values) / correct if correct else None,
        )
