"""Correct@k, Fast@p and their company, computed from records alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import OUTSIDE_DENOMINATOR, EvaluationStatus
from edgekernelbench.records.schema import Record, Spent
from edgekernelbench.scores.portability import portability
from edgekernelbench.scores.statistics import geometric_mean, pass_at_k, wilson

THRESHOLDS = (0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0)
_LEAST_FOR_INTERVAL = 6
"""A bootstrap over fewer tasks than this gives little more than their extremes."""

GROUPINGS: dict[str, Callable[[Record], str]] = {
    "by_level": lambda r: str(r.task.level),
    "by_family": lambda r: r.task.family,
    "by_domain": lambda r: r.task.domain,
    "by_dtype": lambda r: r.task.dtype,
    "by_backend": lambda r: r.task.backend or r.task.target,
    "by_target": lambda r: r.task.target,
}


def score(records: Sequence[Record], ks: Iterable[int] = (1,)) -> dict[str, Any]:
    """Scores one agent's attempts; a task is a workload on a target.

    A task counts when it has at least ``k`` attempts whose status is inside the denominator.
    A kernel counts as fast at p when the lower bound of the 95 % interval of its speed-up
    reaches p; ``by_median`` beside it counts medians, for comparison with published figures.

    Args:
        records: attempts; several per task are epochs.
        ks: the k of Correct@k. A k for which no task has enough attempts is left out.

    Returns:
        The JSON object of ``ekb score --json``; with ``portability`` where there are several
        targets.

    Raises:
        UsageError: if the records mix agents, models, budgets or tolerance versions.
    """
    _refuse_mixtures(records)
    result = _section(records, tuple(ks))
    result["spent"] = {field: _total(records, field) for field in Spent.model_fields}
    for name, key in GROUPINGS.items():
        groups: dict[str, list[Record]] = defaultdict(list)
        for record in records:
            groups[key(record)].append(record)
        result[name] = {g: _section(groups[g], (1,)) for g in sorted(groups)}
    over_targets = portability(
        records, lambda r: is_fast(r, "best", 1.0), lambda r: "best" in _speedups(r)
    )
    if over_targets is not None:
        result["portability"] = over_targets
    return result


def _total(records: Sequence[Record], field: str) -> float | None:
    """What all attempts spent together; None where no record tells."""
    known = [getattr(record.spent, field) for record in records]
    told = [value for value in known if value is not None]
    return round(sum(told), 6) if told else None


def _refuse_mixtures(records: Sequence[Record]) -> None:
    keys: dict[str, Callable[[Record], object]] = {
        "agent": lambda r: r.agent,
        "model": lambda r: r.model,
        "tolerance version": lambda r: r.task.tolerance_version,
        "budget": lambda r: r.limits.model_dump_json(),
        "isolation": lambda r: r.isolated,
    }
    for name, key in keys.items():
        values = sorted({str(key(record)) for record in records})
        if len(values) > 1:
            raise UsageError(
                f"records of more than one {name}: {', '.join(values)}",
                "score one run's folder at a time",
            )


def _section(records: Sequence[Record], ks: tuple[int, ...]) -> dict[str, Any]:
    tasks: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        tasks[f"{record.task.workload}|{record.task.target}"].append(record)
    counted = {
        task: kept
        for task, attempts in tasks.items()
        if (kept := [r for r in attempts if r.status not in OUTSIDE_DENOMINATOR])
    }
    baselines = sorted({b for r in records for b in _speedups(r)} | {"best"})
    statuses = Counter(record.status.value for record in records)
    return {
        "n": len(counted),
        "attempts": len(records),
        "outside_denominator": sum(r.status in OUTSIDE_DENOMINATOR for r in records),
        "statuses": {s.value: statuses[s.value] for s in EvaluationStatus if statuses[s.value]},
        "correct_at": _correct_at(counted, ks),
        "fast_at": {
            baseline: {f"{p:.1f}": _fast_at(counted, baseline, p) for p in THRESHOLDS}
            for baseline in baselines
        },
        "geomean_speedup": {b: _geomean(counted, b)[0] for b in baselines},
        "geomean_interval": {b: _geomean(counted, b)[1:] for b in baselines},
    }


def _correct_at(tasks: Mapping[str, list[Record]], ks: tuple[int, ...]) -> dict[str, Any]:
    out = {}
    for k in ks:
        able = {task: attempts for task, attempts in tasks.items() if len(attempts) >= k}
        if able or k == 1:
            out[str(k)] = _share(able, k, lambda r: r.status is EvaluationStatus.CORRECT)
    return out


def _fast_at(tasks: Mapping[str, list[Record]], baseline: str, p: float) -> dict[str, Any]:
    """Tasks on which the baseline does not exist leave the denominator, and are counted."""
    able = {t: a for t, a in tasks.items() if _has_baseline(a, baseline)}

    def reaches(bound: int) -> Callable[[Record], bool]:
        return lambda r: _speedups(r).get(baseline, (0.0, 0.0))[bound] >= p

    out = _share(able, 1, reaches(1))
    median = _share(able, 1, reaches(0))
    out["by_median"] = {"value": median["value"], "count": median["count"], "n": median["n"]}
    out["without_baseline"] = len(tasks) - len(able)
    return out


def _share(
    tasks: Mapping[str, list[Record]], k: int, success: Callable[[Record], bool]
) -> dict[str, Any]:
    per_task = [pass_at_k(len(a), sum(map(success, a)), k) for a in tasks.values()]
    n = len(per_task)
    value = sum(per_task) / n if n else None
    low, high = wilson(value or 0.0, n)
    return {
        "value": value,
        "count": sum(any(map(success, a)) for a in tasks.values()),
        "n": n,
        "low": low,
        "high": high,
    }


def _has_baseline(attempts: Sequence[Record], baseline: str) -> bool:
    """A failed attempt says nothing of the baselines, so it counts for each of them."""
    correct = [r for r in attempts if r.status is EvaluationStatus.CORRECT]
    return not correct or any(baseline in _speedups(r) for r in correct)


def _geomean(
    tasks: Mapping[str, list[Record]], baseline: str
) -> tuple[float | None, float | None, float | None]:
    values = []
    for attempts in tasks.values():
        own = [_speedups(r)[baseline][0] for r in attempts if baseline in _speedups(r)]
        if own:
            values.append(geometric_mean(own, draws=1)[0])
    if not values:
        return None, None, None
    mean, low, high = geometric_mean(values)
    return (mean, low, high) if len(values) >= _LEAST_FOR_INTERVAL else (mean, None, None)


def is_fast(record: Record, baseline: str, p: float) -> bool:
    """Whether an attempt counts as fast at ``p``: the lower bound of its speed-up reaches it."""
    return _speedups(record).get(baseline, (0.0, 0.0))[1] >= p


def _speedups(record: Record) -> dict[str, tuple[float, float]]:
    """Median and lower bound of the speed-up over each baseline, for a correct attempt.

    The key ``best`` stands for the fastest scored baseline of the record.
    """
    evaluation = record.evaluation
    if record.status is not EvaluationStatus.CORRECT or evaluation is None:
        return {}
    out = {
        name: (result.speedup, result.speedup_low)
        for name, result in evaluation.baselines.items()
        if result.speedup is not None and result.speedup_low is not None
    }
    if evaluation.best is not None and evaluation.best in out:
        out["best"] = out[evaluation.best]
    return out
