"""A share of tasks with its count and its interval, as it stands in scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    shares = np.array([pass_at_k(len(a), sum(map(success, a)), k) for a in tasks.values()])
    count = sum(any(map(success, a)) for a in tasks.values())
    return _cell(shares, count, any(len(attempts) > 1 for attempts in tasks.values()))


def _cell(shares: NDArray[np.float64], count: int, several: bool) -> dict[str, Any]:
    """Args: ``shares``: one a task; ``several``: some task has more than one attempt."""
    n = shares.size
    value = float(shares.mean()) if n else None
    interval, method = wilson(value or 0.0, n), WILSON
    beside: dict[str, Any] = {}
    if several:
        beside["wilson"] = interval
        if n >= LEAST_FOR_BOOTSTRAP and np.ptp(shares) > 0:
            interval, method = mean_interval(shares), BOOTSTRAP
    return {
        "value": value,
        "count": count,
        "n": n,
        "low": interval[0],
        "high": interval[1],
        "interval": method,
        **beside,
    }


def correct_at(tasks: Tasks, ks: Sequence[int], admits: Success | None = None) -> dict[str, Any]:
    """Correct@k by k; a k for which no task has enough attempts is left out, but for 1.

    Args:
        admits: what an attempt has to be beside correct.
    """
    out = {}
    for k in ks:
        able = {task: attempts for task, attempts in tasks.items() if len(attempts) >= k}
        if able or k == 1:
            out[str(k)] = share(able, k, _both(is_correct, admits))
    return out


def fast_at(
    tasks: Tasks, baselines: Sequence[str], admits: Success | None = None
) -> dict[str, dict[str, Any]]:
    """Fast@p by baseline and p. ``admits``: what an attempt has to be beside fast."""
    return {
        name: {f"{p:.1f}": _fast(tasks, name, p, admits) for p in THRESHOLDS} for name in baselines
    }


def fast_curve(tasks: Tasks, baseline: str, ps: Sequence[float]) -> list[dict[str, Any]]:
    """Fast@p over a baseline at any ``ps``, each as in `fast_at` but for the medians."""
    able = [a for a in tasks.values() if has_baseline(a, baseline)]
    lows = [np.array([speedups(r).get(baseline, (0.0, 0.0))[1] for r in a]) for a in able]
    several = any(low.size > 1 for low in lows)
    return [
        _cell(
            np.array([(low >= p).mean() for low in lows]),
            sum(bool((low >= p).any()) for low in lows),
            several,
        )
        for p in ps
    ]


def _fast(tasks: Tasks, baseline: str, p: float, admits: Success | None) -> dict[str, Any]:
    """Tasks on which the baseline does not exist leave the denominator, and are counted."""
    able = {t: a for t, a in tasks.items() if has_baseline(a, baseline)}

    def reaches(bound: int) -> Success:
        return _both(lambda r: speedups(r).get(baseline, (0.0, 0.0))[bound] >= p, admits)

    out = share(able, 1, reaches(1))
    median = share(able, 1, reaches(0))
    out["by_median"] = {"value": median["value"], "count": median["count"], "n": median["n"]}
    out["without_baseline"] = len(tasks) - len(able)
    return out


def _both(success: Success, admits: Success | None) -> Success:
    return success if admits is None else lambda r: success(r) and admits(r)


def without(tasks: Tasks, leaves: Success) -> Tasks:
    """The tasks of which no attempt ``leaves``."""
    return {t: a for t, a in tasks.items() if not any(map(leaves, a))}
