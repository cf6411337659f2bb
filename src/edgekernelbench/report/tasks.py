"""One row a task: what became of it, whatever number of attempts it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from edgekernelbench.evaluator.model import OUTSIDE_DENOMINATOR, EvaluationStatus, Performance
from edgekernelbench.records.schema import Record
from edgekernelbench.scores.attempts import is_correct, is_fast, speedups, task_of

Outcome = Literal["fast", "unsure", "slow", "no_baseline", "failed", "outside"]
"""``fast``: an attempt counts at Fast@1.0 over the best baseline. ``slow``: correct, and surely
slower: the interval of the speed-up ends below 1. ``unsure``: correct, and the interval holds 1.
``no_baseline``: correct, nothing to be held against. ``outside``: no denominator has it."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task of an entry.

    Attributes:
        task: workload and target, as `scores.attempts.task_of` names it.
        places: of its attempts in the entry's records.
        attempts: as many records.
        shown: the attempt that stands for it: the fastest correct one, else the first counted.
        status: of ``shown``, or the commonest where all failed.
    """

    task: str
    places: tuple[int, ...]
    attempts: tuple[Record, ...]
    shown: Record
    outcome: Outcome
    status: EvaluationStatus

    @property
    def correct(self) -> int:
        return sum(map(is_correct, self.attempts))

    @property
    def performance(self) -> Performance | None:
        return None if self.shown.evaluation is None else self.shown.evaluation.performance

    @property
    def speedup(self) -> float | None:
        """Over the best baseline, by median."""
        found = speedups(self.shown).get("best")
        return None if found is None else found[0]

    @property
    def noisy(self) -> bool:
        """Other work disturbed the measurement."""
        noise = None if self.performance is None else self.performance.noise
        return noise is not None and noise.disturbed

    @property
    def rival(self) -> str | None:
        """Name of the fastest scored baseline."""
        return None if self.shown.evaluation is None else self.shown.evaluation.best

    @property
    def rival_told(self) -> str | None:
        """Its name and by which route it was made: ``tvm (ONNX twin)``."""
        if self.shown.evaluation is None or self.rival is None:
            return None
        route = self.shown.evaluation.baselines[self.rival].route.split(",")[0]
        return f"{self.rival} ({route})" if route else self.rival

    @property
    def rival_us(self) -> float | None:
        if self.shown.evaluation is None or self.rival is None:
            return None
        return self.shown.evaluation.baselines[self.rival].median_us

    @property
    def overhead_dominated(self) -> bool:
        return self.performance is not None and self.performance.overhead_dominated


def task_rows(records: Sequence[Record]) -> tuple[TaskRow, ...]:
    """Rows of an entry's tasks, by workload and target."""
    places: dict[str, list[int]] = {}
    for place, record in enumerate(records):
        places.setdefault(task_of(record), []).append(place)
    return tuple(_row(task, places[task], records) for task in sorted(places))


def _row(task: str, places: Sequence[int], records: Sequence[Record]) -> TaskRow:
    attempts = [records[place] for place in places]
    right = [record for record in attempts if is_correct(record)]
    inside = [record for record in attempts if record.status not in OUTSIDE_DENOMINATOR]
    if right:
        shown = min(right, key=_rank)
        status = shown.status
    else:
        status = Counter(record.status for record in inside or attempts).most_common(1)[0][0]
        shown = next(record for record in attempts if record.status is status)
    return TaskRow(
        task, tuple(places), tuple(attempts), shown, _outcome(right, bool(inside), shown), status
    )


def _outcome(right: Sequence[Record], counted: bool, shown: Record) -> Outcome:
    if not counted:
        return "outside"
    if not right:
        return "failed"
    if any(is_fast(record, "best", 1.0) for record in right):
        return "fast"
    if shown.evaluation is None or shown.evaluation.best is None:
        return "no_baseline"
    high = shown.evaluation.baselines[shown.evaluation.best].speedup_high
    return "slow" if high is not None and high < 1 else "unsure"


def _rank(record: Record) -> tuple[bool, bool, float]:
    """Attempts that count as fast before others, those with a rival before those without, the
    greater speed-up first; of those without any the shorter time."""
    found = speedups(record).get("best")
    assert record.evaluation is not None and record.evaluation.performance is not None
    if found is None:
        return True, True, record.evaluation.performance.median_us
    return not is_fast(record, "best", 1.0), False, -found[0]
