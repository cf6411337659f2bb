"""Correct@k, Fast@p and their company, computed from records alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from edgekernelbench.evaluator.model import OUTSIDE_DENOMINATOR, EvaluationStatus
from edgekernelbench.records.schema import Record, Spent
from edgekernelbench.scores import resources
from edgekernelbench.scores.attempts import counted, is_fast, lost_rivals, speedups, uncounted
from edgekernelbench.scores.likeness import refuse_mixtures
from edgekernelbench.scores.portability import portability
from edgekernelbench.scores.shares import correct_at, fast_at, without
from edgekernelbench.scores.statistics import LEAST_FOR_BOOTSTRAP, geometric_mean
from edgekernelbench.scores.timing import timing

GROUPINGS: dict[str, Callable[[Record], str]] = {
    "by_level": lambda r: str(r.task.level),
    "by_family": lambda r: r.task.family,
    "by_domain": lambda r: r.task.domain,
    "by_dtype": lambda r: r.task.dtype,
    "by_backend": lambda r: r.task.backend or r.task.target,
    "by_target": lambda r: r.task.target,
}


def score(
    records: Sequence[Record], ks: Iterable[int] = (1,), memory_cap: int | None = None
) -> dict[str, Any]:
    """Scores one agent's attempts; a task is a workload on a target.

    A task counts when it has at least ``k`` attempts whose status is inside the denominator.
    A kernel counts as fast at p when the lower bound of the 95 % interval of its speed-up
    reaches p; ``by_median`` beside it counts medians, for comparison with published figures.

    Args:
        records: attempts; several per task are epochs.
        ks: the k of Correct@k. ``too_few_attempts`` in its cell counts the tasks that it leaves
            out: those with fewer than k attempts inside the denominator.
        memory_cap: bytes; adds ``memory_cap``, scores in which a kernel counts only if its bill
            of memory is within them.

    Returns:
        The JSON object of ``ekb score --json``; with ``portability`` where there are several
        targets. ``without_overhead`` has Fast@p without the tasks at which a correct kernel was
        dominated by launch overhead; of tasks without a correct one that is not known, and they
        stay.

    Raises:
        UsageError: if the records mix agents, models, budgets or tolerance versions.
    """
    refuse_mixtures(records)
    ks = tuple(ks)
    result = _section(records, ks)
    result["without_overhead"] = _without_overhead(records)
    result["timing"] = timing(records)
    result["lost_baselines"] = lost_rivals(records)
    result["resources"] = resources.summary(records)
    if memory_cap is not None:
        baselines = list(result["fast_at"])
        result["memory_cap"] = resources.under_cap(records, ks, baselines, memory_cap)
    result["spent"] = {field: _total(records, field) for field in Spent.model_fields}
    for name, key in GROUPINGS.items():
        groups: dict[str, list[Record]] = defaultdict(list)
        for record in records:
            groups[key(record)].append(record)
        result[name] = {g: _section(groups[g], (1,)) for g in sorted(groups)}
    over_targets = portability(
        records, lambda r: is_fast(r, "best", 1.0), lambda r: "best" in speedups(r)
    )
    if over_targets is not None:
        result["portability"] = over_targets
    return result


def _without_overhead(records: Sequence[Record]) -> dict[str, Any]:
    tasks = counted(records)
    kept = without(tasks, _overhead_dominated)
    return {
        "n": len(kept),
        "left_out": len(tasks) - len(kept),
        "fast_at": fast_at(kept, _baselines(records)),
    }


def _overhead_dominated(record: Record) -> bool:
    performance = None if record.evaluation is None else record.evaluation.performance
    return performance is not None and performance.overhead_dominated


def _baselines(records: Sequence[Record]) -> list[str]:
    return sorted({b for r in records for b in speedups(r)} | {"best"})


def _total(records: Sequence[Record], field: str) -> float | None:
    """What all attempts spent together; None where no record tells."""
    known = [getattr(record.spent, field) for record in records]
    told = [value for value in known if value is not None]
    return round(sum(told), 6) if told else None


def _section(records: Sequence[Record], ks: tuple[int, ...]) -> dict[str, Any]:
    tasks = counted(records)
    baselines = _baselines(records)
    statuses = Counter(record.status.value for record in records)
    means = {b: _geomean(tasks, b) for b in baselines}
    return {
        "n": len(tasks),
        "attempts": len(records),
        "outside_denominator": sum(r.status in OUTSIDE_DENOMINATOR for r in records),
        "statuses": {s.value: statuses[s.value] for s in EvaluationStatus if statuses[s.value]},
        "correct_at": correct_at(tasks, ks, uncounted(records)),
        "fast_at": fast_at(tasks, baselines),
        "geomean_speedup": {b: mean[0] for b, mean in means.items()},
        "geomean_interval": {b: mean[1:] for b, mean in means.items()},
    }


def _geomean(
    tasks: Mapping[str, list[Record]], baseline: str
) -> tuple[float | None, float | None, float | None]:
    values = []
    for attempts in tasks.values():
        own = [found[baseline][0] for r in attempts if baseline in (found := speedups(r))]
        if own:
            values.append(float(np.exp(np.log(own).mean())))
    if not values:
        return None, None, None
    mean, low, high = geometric_mean(values)
    return (mean, low, high) if len(values) >= LEAST_FOR_BOOTSTRAP else (mean, None, None)
