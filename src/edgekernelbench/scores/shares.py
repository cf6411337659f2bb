"""A share of tasks with its count and its interval, as it stands in scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgekernelbench.records.schema import Record
from edgekernelbench.scores.attempts import Success, Tasks, has_baseline, is_correct, speedups
from edgekernelbench.scores.statistics import LEAST_FOR_BOOTSTRAP, mean_interval, pass_at_k, wilson

THRESHOLDS = (0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0)

WILSON = "Wilson"
BOOTSTRAP = "bootstrap"


def share(tasks: Tasks, k: int, success: Success) -> dict[str, Any]:
    """The share of tasks with a success in ``k`` attempts.

    Wilson's interval takes a task for one draw. With several attempts a task its share has less
    variance than that, and a bootstrap that draws whole tasks stands for it, ``wilson`` beside
    it; not where it says nothing: too few tasks, or no difference between any.
    """
    return _cell([[success(record) for record in a] for a in tasks.values()], k)


Hits = Sequence[Sequence[bool]]
"""Whether each attempt at each task is a success."""


def _cell(tasks: Hits, k: int) -> dict[str, Any]:
    shares = np.array([pass_at_k(len(hits), sum(hits), k) for hits in tasks])
    n = shares.size
    value = float(shares.mean()) if n else None
    interval, method = wilson(value or 0.0, n), WILSON
    beside: dict[str, Any] = {}
    if any(len(hits) > 1 for hits in tasks):
        beside["wilson"] = interval
        if n >= LEAST_FOR_BOOTSTRAP and np.ptp(shares) > 0:
            interval, method = mean_interval(shares), BOOTSTRAP
    return {
        **_counts(tasks, value),
        "low": interval[0],
        "high": interval[1],
        "interval": method,
        **beside,
    }


def _counts(tasks: Hits, value: float | None) -> dict[str, Any]:
    return {"value": value, "count": sum(map(any, tasks)), "n": len(tasks)}


def correct_at(
    tasks: Tasks, ks: Sequence[int], absent: int, admits: Success | None = None
) -> dict[str, Any]:
    """Correct@k by k, over the tasks with ``k`` attempts; ``too_few_attempts`` counts the others.

    Args:
        absent: tasks of the run that have no attempt that counts, and are not among ``tasks``.
        admits: what an attempt has to be beside correct.
    """
    out = {}
    for k in ks:
        able = {task: attempts for task, attempts in tasks.items() if len(attempts) >= k}
        cell = share(able, k, _both(is_correct, admits))
        out[str(k)] = cell | {"too_few_attempts": len(tasks) - len(able) + absent}
    return out


def fast_at(
    tasks: Tasks, baselines: Sequence[str], admits: Success | None = None
) -> dict[str, dict[str, Any]]:
    """Fast@p by baseline and p. ``admits``: what an attempt has to be beside fast."""
    out = {}
    for name in baselines:
        able = _able(tasks, name, admits)
        out[name] = {f"{p:.1f}": _fast(able, p, len(tasks)) for p in THRESHOLDS}
    return out


def fast_curve(tasks: Tasks, baseline: str, ps: Sequence[float]) -> list[dict[str, Any]]:
    """Fast@p over a baseline at any positive ``ps``, each as in `fast_at` but for the medians."""
    able = _able(tasks, baseline, None)
    return [_cell(_reaching(able, p)[1], 1) for p in ps]


_Able = Sequence[Sequence[tuple[float, float]]]
"""Median and lower bound of the speed-up of each attempt at each task; zeros where it has none."""


def _able(tasks: Tasks, baseline: str, admits: Success | None) -> _Able:
    """Tasks on which the baseline exists."""

    def reached(record: Record) -> tuple[float, float]:
        counts = admits is None or admits(record)
        return speedups(record).get(baseline, (0.0, 0.0)) if counts else (0.0, 0.0)

    return [[reached(r) for r in a] for a in tasks.values() if has_baseline(a, baseline)]


def _reaching(able: _Able, p: float) -> tuple[Hits, Hits]:
    """By median and by lower bound."""
    by_median = [[median >= p for median, _ in attempts] for attempts in able]
    return by_median, [[low >= p for _, low in attempts] for attempts in able]


def _fast(able: _Able, p: float, tasks: int) -> dict[str, Any]:
    """Tasks on which the baseline does not exist leave the denominator, and are counted."""
    by_median, by_low = _reaching(able, p)
    shares = [pass_at_k(len(hits), sum(hits), 1) for hits in by_median]
    value = float(np.mean(shares)) if shares else None
    return _cell(by_low, 1) | {
        "by_median": _counts(by_median, value),
        "without_baseline": tasks - len(able),
    }


def _both(success: Success, admits: Success | None) -> Success:
    return success if admits is None else lambda r: success(r) and admits(r)


def without(tasks: Tasks, leaves: Success) -> Tasks:
    """The tasks of which no attempt ``leaves``."""
    return {t: a for t, a in tasks.items() if not any(map(leaves, a))}
