"""Tasks that two runs both judged, and what either made of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from edgekernelbench.records.schema import Record
from edgekernelbench.scores.attempts import Success, counted, is_correct, task_of

Pairs = Mapping[str, tuple[Sequence[Record], Sequence[Record]]]
"""Attempts of both runs inside the denominator, by task."""


def pair_up(a: Sequence[Record], b: Sequence[Record]) -> tuple[Pairs, dict[str, list[str]]]:
    """The tasks that both judged; and by reason those that only one did."""
    judged_a, judged_b = counted(a), counted(b)
    seen_a, seen_b = ({task_of(r) for r in side} for side in (a, b))
    pairs = {t: (judged_a[t], judged_b[t]) for t in sorted(judged_a.keys() & judged_b.keys())}
    return pairs, {
        "only_in_a": sorted(seen_a - seen_b),
        "only_in_b": sorted(seen_b - seen_a),
        "outside_denominator": sorted((seen_a & seen_b) - pairs.keys()),
    }


def share(attempts: Sequence[Record], success: Success) -> float:
    """Of one side's attempts at a task."""
    return sum(map(success, attempts)) / len(attempts)


Medians = Mapping[str, float]


def log_ratio(
    a: Sequence[Record], b: Sequence[Record], medians: Callable[[Record], Medians]
) -> float | None:
    """Mean logarithm of B over A, of all that both tell."""
    sides = [_mean_logs([medians(r) for r in side if is_correct(r)]) for side in (a, b)]
    common = sides[0].keys() & sides[1].keys()
    return sum(sides[1][k] - sides[0][k] for k in common) / len(common) if common else None


def _mean_logs(told: Sequence[Medians]) -> dict[str, float]:
    logs: dict[str, list[float]] = {}
    for medians in told:
        for name, value in medians.items():
            logs.setdefault(name, []).append(math.log(value))
    return {name: sum(values) / len(values) for name, values in logs.items()}


def medians_of(record: Record) -> Medians:
    """Time of a correct kernel, in microseconds."""
    performance = None if record.evaluation is None else record.evaluation.performance
    return {} if performance is None else {"kernel": performance.median_us}


def baseline_medians_of(record: Record) -> Medians:
    """Times of the scored baselines beside it."""
    evaluation = record.evaluation
    results = {} if evaluation is None else evaluation.baselines
    return {
        name: result.median_us
        for name, result in results.items()
        if result.median_us is not None and result.scored
    }
