"""Two runs held against each other, task by task."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from edgekernelbench.errors import UsageError
from edgekernelbench.records.schema import Record
from edgekernelbench.scores import paired
from edgekernelbench.scores.attempts import (
    Success,
    counted,
    has_baseline,
    is_correct,
    is_fast,
    speedups,
    task_of,
)
from edgekernelbench.scores.likeness import refuse_mixtures, refuse_unlike
from edgekernelbench.scores.shares import THRESHOLDS
from edgekernelbench.scores.statistics import LEAST_FOR_BOOTSTRAP, mean_interval

Pairs = Mapping[str, tuple[Sequence[Record], Sequence[Record]]]
"""Attempts of both runs inside the denominator, by task."""

MCNEMAR = "McNemar, exact"
SIGN_FLIP = "sign flips over tasks"


def compare(a: Sequence[Record], b: Sequence[Record]) -> dict[str, Any]:
    """Compares two runs on the tasks that both judged; several attempts at a task are averaged.

    Args:
        a: records of one run.
        b: of the other. They may differ in agent, model and budget, which is then told.

    Returns:
        The JSON object of ``ekb compare --json``. Differences are A less B, ratios of times are
        B over A, so above zero and above one A is ahead.

    Raises:
        UsageError: a run mixes agents, models, budgets or tolerance versions, the two were not
            measured alike (see `refuse_unlike`), or no task is in both.
    """
    for side in (a, b):
        refuse_mixtures(side)
    refuse_unlike(a, b)
    pairs, unpaired = _paired(a, b)
    if not pairs:
        told = ", ".join(f"{len(tasks)} {name}" for name, tasks in unpaired.items())
        raise UsageError(
            f"no task was judged in both runs ({told})", "compare runs over the same workloads"
        )
    baselines = _common_baselines(pairs)
    return {
        "a": _identity(a),
        "b": _identity(b),
        "n": len(pairs),
        "not_paired": unpaired,
        "notes": _notes(a, b, pairs),
        "correct_at": {"1": _shares(pairs, is_correct)},
        "fast_at": {
            baseline: {f"{p:.1f}": _fast(pairs, baseline, p) for p in THRESHOLDS}
            for baseline in baselines
        },
        "time": _times(pairs),
    }


def _paired(a: Sequence[Record], b: Sequence[Record]) -> tuple[Pairs, dict[str, list[str]]]:
    judged_a, judged_b = counted(a), counted(b)
    seen_a, seen_b = ({task_of(r) for r in side} for side in (a, b))
    pairs = {t: (judged_a[t], judged_b[t]) for t in sorted(judged_a.keys() & judged_b.keys())}
    return pairs, {
        "only_in_a": sorted(seen_a - seen_b),
        "only_in_b": sorted(seen_b - seen_a),
        "outside_denominator": sorted((seen_a & seen_b) - pairs.keys()),
    }


def _identity(records: Sequence[Record]) -> dict[str, Any]:
    first = records[0]
    return {
        "run": first.run,
        "agent": first.agent,
        "model": first.model,
        "attempts": len(records),
        "limits": first.limits.model_dump(mode="json"),
    }


def _notes(a: Sequence[Record], b: Sequence[Record], pairs: Pairs) -> list[str]:
    """What differs beside the thing that is compared, a line each."""
    notes = []
    if a[0].limits != b[0].limits:
        notes.append(f"budgets differ: {_limits(a[0])} and {_limits(b[0])}")
    if a[0].isolated != b[0].isolated:
        notes.append("the agent of one run was not isolated")
    for package in sorted(_versions(a).keys() | _versions(b).keys()):
        here, there = (_versions(side).get(package, set()) for side in (a, b))
        if here != there:
            told = [", ".join(sorted(v)) or "none" for v in (here, there)]
            notes.append(f"{package} differs: {told[0]} and {told[1]}")
    rivals = sum(_rivals(x) != _rivals(y) for x, y in pairs.values() if _rivals(x) and _rivals(y))
    if rivals:
        notes.append(f"{rivals} tasks had other scored baselines to beat, so other a `best`")
    return notes


def _limits(record: Record) -> str:
    known = record.limits.model_dump(exclude_none=True)
    return ", ".join(f"{value} {name}" for name, value in known.items()) or "no limits"


def _versions(records: Sequence[Record]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for record in records:
        for package, version in record.versions.items():
            found.setdefault(package, set()).add(version)
    return found


def _rivals(attempts: Sequence[Record]) -> set[str]:
    return {
        name
        for record in attempts
        if is_correct(record) and record.evaluation is not None
        for name, result in record.evaluation.baselines.items()
        if result.scored and result.status == "measured"
    }


# ---------------------------------------------------------------- shares
def _common_baselines(pairs: Pairs) -> list[str]:
    sides = [
        {name for pair in pairs.values() for record in pair[side] for name in speedups(record)}
        for side in (0, 1)
    ]
    return sorted((sides[0] & sides[1]) | {"best"})


def _fast(pairs: Pairs, baseline: str, p: float) -> dict[str, Any]:
    able = {t: pair for t, pair in pairs.items() if all(has_baseline(s, baseline) for s in pair)}
    out = _shares(able, lambda r: is_fast(r, baseline, p))
    return out | {"without_baseline": len(pairs) - len(able)}


def _shares(pairs: Pairs, success: Success) -> dict[str, Any]:
    """Both shares, their difference, its test, and the least difference that it would find."""
    shares = np.array([[_share(side, success) for side in pair] for pair in pairs.values()])
    n = len(pairs)
    a, b = shares.reshape(n, 2).T
    out: dict[str, Any] = {
        "n": n,
        "a": float(a.mean()) if n else None,
        "b": float(b.mean()) if n else None,
        "difference": float((a - b).mean()) if n else None,
        "a_ahead": int((a > b).sum()),
        "b_ahead": int((b > a).sum()),
    }
    if all(len(side) == 1 for pair in pairs.values() for side in pair):
        return out | _mcnemar(out["a_ahead"], out["b_ahead"], n)
    return out | _over_tasks(a - b)


def _share(attempts: Sequence[Record], success: Success) -> float:
    return sum(map(success, attempts)) / len(attempts)


def _mcnemar(only_a: int, only_b: int, n: int) -> dict[str, Any]:
    low, high = paired.mcnemar_interval(only_a, only_b, n)
    return {
        "low": low,
        "high": high,
        "test": MCNEMAR,
        "p_value": paired.mcnemar(only_a, only_b),
        "detectable": paired.mcnemar_detectable(only_a, only_b, n),
    }


def _over_tasks(differences: paired.Differences) -> dict[str, Any]:
    low, high = _interval(differences)
    return {
        "low": low,
        "high": high,
        "test": SIGN_FLIP,
        "p_value": paired.sign_flip(differences),
        "detectable": paired.mean_detectable(differences),
    }


def _interval(values: paired.Differences) -> tuple[float | None, float | None]:
    return mean_interval(values) if values.size >= LEAST_FOR_BOOTSTRAP else (None, None)


# ---------------------------------------------------------------- times
def _times(pairs: Pairs) -> dict[str, Any]:
    """Times where both runs have a correct kernel.

    The runs were not measured in turns, so the machine may have changed between them. The
    baselines, which each run measured beside its kernels, tell by how much: ``ratio`` has that
    taken out, ``ratio_unadjusted`` has not, ``drift`` is what was taken out.
    """
    raw, drift = [], []
    for a, b in pairs.values():
        if (ratio := _log_ratio(a, b, _medians)) is None:
            continue
        raw.append(ratio)
        drift.append(_log_ratio(a, b, _baseline_medians))
    known = [(r, d) for r, d in zip(raw, drift, strict=True) if d is not None]
    adjusted = np.array([r - d for r, d in known], np.float64)
    out = _factor(adjusted)
    detectable = paired.mean_detectable(adjusted)
    return {
        "n": len(known),
        "without_common_baseline": len(raw) - len(known),
        **out,
        "a_faster": int((adjusted > 0).sum()),
        "b_faster": int((adjusted < 0).sum()),
        "test": SIGN_FLIP,
        "p_value": paired.sign_flip(adjusted),
        "wilcoxon_p_value": paired.wilcoxon(adjusted),
        "detectable": None if detectable is None else math.exp(detectable),
        "ratio_unadjusted": _factor(np.array(raw, np.float64))["ratio"],
        "drift": _factor(np.array([d for _, d in known], np.float64))["ratio"],
    }


def _factor(logs: paired.Differences) -> dict[str, float | None]:
    low, high = _interval(logs)
    return {
        "ratio": math.exp(logs.mean()) if logs.size else None,
        "low": None if low is None else math.exp(low),
        "high": None if high is None else math.exp(high),
    }


Medians = Mapping[str, float]


def _log_ratio(
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


def _medians(record: Record) -> Medians:
    performance = None if record.evaluation is None else record.evaluation.performance
    return {} if performance is None else {"kernel": performance.median_us}


def _baseline_medians(record: Record) -> Medians:
    evaluation = record.evaluation
    results = {} if evaluation is None else evaluation.baselines
    return {
        name: result.median_us
        for name, result in results.items()
        if result.median_us is not None and result.scored
    }
