"""What got better and worse from one run to another, task by task."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from edgekernelbench.evaluator.model import BaselineResult
from edgekernelbench.records.schema import Record
from edgekernelbench.scores.attempts import has_baseline, is_correct, is_fast, speedups
from edgekernelbench.scores.pairs import Pairs, baseline_medians_of, log_ratio, medians_of, share

What = Literal["correct", "fast", "time", "none"]
GRAVITY: dict[What, int] = {"correct": 3, "fast": 2, "time": 1, "none": 0}


@dataclass(frozen=True, slots=True)
class Side:
    """A run's attempts at a task: shares of them that are correct, and fast at 1.0 over the best
    baseline; the commonest status; speed-up over the best baseline of the fastest; its time."""

    correct: float
    fast: float
    status: str
    speedup: float | None
    median_us: float | None


@dataclass(frozen=True, slots=True)
class Change:
    """A task in both runs.

    Attributes:
        what: the gravest difference: in ``correct``, else in ``fast``, else in ``time`` beyond its
            interval.
        ahead: the run that the difference favours; empty where ``what`` is ``none``.
        ratio, low, high: time of B over A, held against the baselines that both runs measured, with
            its 95 % interval; None without such a time.
    """

    task: str
    workload: str
    target: str
    level: int
    family: str
    what: What
    ahead: Literal["a", "b", ""]
    a: Side
    b: Side
    ratio: float | None
    low: float | None
    high: float | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def changes(pairs: Pairs) -> list[Change]:
    """All tasks, in the order of the pairs."""
    return [_change(task, a, b) for task, (a, b) in pairs.items()]


def _change(task: str, a: Sequence[Record], b: Sequence[Record]) -> Change:
    sides = _side(a), _side(b)
    ratio, low, high = _ratio(a, b)
    what, ahead = _verdict(*sides, low, high, comparable=_both_have_best(a, b))
    facts = a[0].task
    return Change(
        task=task,
        workload=facts.workload,
        target=facts.target,
        level=facts.level,
        family=facts.family,
        what=what,
        ahead=ahead,
        a=sides[0],
        b=sides[1],
        ratio=ratio,
        low=low,
        high=high,
    )


def _side(attempts: Sequence[Record]) -> Side:
    right = [r for r in attempts if is_correct(r)]
    found = [speedups(r)["best"][0] for r in right if "best" in speedups(r)]
    times = [medians_of(r)["kernel"] for r in right]
    return Side(
        correct=share(attempts, is_correct),
        fast=share(attempts, lambda r: is_fast(r, "best", 1.0)),
        status=Counter(r.status.value for r in attempts).most_common(1)[0][0],
        speedup=max(found, default=None),
        median_us=min(times, default=None),
    )


def _both_have_best(a: Sequence[Record], b: Sequence[Record]) -> bool:
    return has_baseline(a, "best") and has_baseline(b, "best")


def _verdict(
    a: Side, b: Side, low: float | None, high: float | None, *, comparable: bool
) -> tuple[What, Literal["a", "b", ""]]:
    if a.correct != b.correct:
        return "correct", "a" if a.correct > b.correct else "b"
    if comparable and a.fast != b.fast:
        return "fast", "a" if a.fast > b.fast else "b"
    if low is not None and high is not None and (low > 1 or high < 1):
        return "time", "a" if low > 1 else "b"
    return "none", ""


def _ratio(
    a: Sequence[Record], b: Sequence[Record]
) -> tuple[float | None, float | None, float | None]:
    """As the time of `compare`, for one task; the half widths of both runs' speed-ups, in
    logarithms, add up as errors that know nothing of each other."""
    raw, drift = log_ratio(a, b, medians_of), log_ratio(a, b, baseline_medians_of)
    if raw is None or drift is None:
        return None, None, None
    names = _rivals(a) & _rivals(b)
    half = math.hypot(*(_half_width(side, names) for side in (a, b)))
    ratio = raw - drift
    return math.exp(ratio), math.exp(ratio - half), math.exp(ratio + half)


def _rivals(attempts: Sequence[Record]) -> set[str]:
    return {name for r in attempts if is_correct(r) for name in baseline_medians_of(r)}


def _half_width(attempts: Sequence[Record], names: set[str]) -> float:
    """Of the mean logarithm of a run's speed-ups at a task. Those over several baselines share the
    kernel's own error, and are averaged; attempts are independent of each other."""
    widths = []
    for record in attempts:
        if is_correct(record) and record.evaluation is not None:
            own = [speedup_width(record.evaluation.baselines[n]) for n in names & _names(record)]
            widths.append(sum(own) / len(own) if own else 0.0)
    return math.hypot(*widths) / len(widths)


def _names(record: Record) -> set[str]:
    return set(baseline_medians_of(record))


def speedup_width(result: BaselineResult) -> float:
    """Half the interval of a speed-up, in logarithms."""
    if result.speedup_low is None or result.speedup_high is None:
        return 0.0
    return math.log(result.speedup_high / result.speedup_low) / 2
