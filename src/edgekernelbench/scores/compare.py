"""Two runs held against each other, task by task."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from edgekernelbench.errors import UsageError
from edgekernelbench.records.schema import Record
from edgekernelbench.scores import paired
from edgekernelbench.scores.attempts import (
    Success,
    has_baseline,
    is_correct,
    is_fast,
    rivals,
    speedups,
)
from edgekernelbench.scores.changes import changes
from edgekernelbench.scores.likeness import refuse_mixtures, refuse_unlike
from edgekernelbench.scores.pairs import (
    Pairs,
    baseline_medians_of,
    log_ratio,
    medians_of,
    pair_up,
    share,
)
from edgekernelbench.scores.shares import THRESHOLDS
from edgekernelbench.scores.statistics import LEAST_FOR_BOOTSTRAP, mean_interval

MCNEMAR = "McNemar, exact"
SIGN_FLIP = "sign flips over tasks"


def compare(a: Sequence[Record], b: Sequence[Record]) -> dict[str, Any]:
    """Compares two runs on the tasks that both judged; several attempts at a task are averaged.

    Args:
        a: records of one run.
        b: of the other. They may differ in agent, model and budget, which is then told.

    Returns:
        The JSON object of ``ekb compare --json``. Differences are A less B, ratios of times are
        B over A, so above zero and above one A is ahead. ``changes``: a `changes.Change` a task.
        ``a_count``: tasks with a success in A; likewise ``b_count``.

    Raises:
        UsageError: a run mixes agents, models, budgets or tolerance versions, the two were not
            measured alike (see `refuse_unlike`), or no task is in both.
    """
    for side in (a, b):
        refuse_mixtures(side)
    refuse_unlike(a, b)
    pairs, unpaired = pair_up(a, b)
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
        "by_level": _by(pairs, lambda r: str(r.task.level)),
        "by_family": _by(pairs, lambda r: r.task.family),
        "changes": [change.as_dict() for change in changes(pairs)],
    }


def _by(pairs: Pairs, key: Callable[[Record], str]) -> dict[str, dict[str, Any]]:
    """The figures that decide, for the tasks of each group."""
    groups: dict[str, dict[str, tuple[Sequence[Record], Sequence[Record]]]] = {}
    for task, pair in pairs.items():
        groups.setdefault(key(pair[0][0]), {})[task] = pair
    return {
        name: {
            "n": len(groups[name]),
            "correct_at": {"1": _shares(groups[name], is_correct)},
            "fast_at": {"best": {"1.0": _fast(groups[name], "best", 1.0)}},
            "time": _times(groups[name]),
        }
        for name in sorted(groups)
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
    others = sum(rivals(x) != rivals(y) for x, y in pairs.values() if rivals(x) and rivals(y))
    if others:
        notes.append(f"{others} tasks had other scored baselines to beat, so other a `best`")
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
    shares = np.array([[share(side, success) for side in pair] for pair in pairs.values()])
    n = len(pairs)
    a, b = shares.reshape(n, 2).T
    out: dict[str, Any] = {
        "n": n,
        "a": float(a.mean()) if n else None,
        "b": float(b.mean()) if n else None,
        "difference": float((a - b).mean()) if n else None,
        "a_count": int((a > 0).sum()),
        "b_count": int((b > 0).sum()),
        "a_ahead": int((a > b).sum()),
        "b_ahead": int((b > a).sum()),
    }
    if all(len(side) == 1 for pair in pairs.values() for side in pair):
        return out | _mcnemar(out["a_ahead"], out["b_ahead"], n)
    return out | _over_tasks(a - b)


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
        if (ratio := log_ratio(a, b, medians_of)) is None:
            continue
        raw.append(ratio)
        drift.append(log_ratio(a, b, baseline_medians_of))
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
