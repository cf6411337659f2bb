"""Scores of a run over several targets: correct on all, fast on all, fast on at least one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from edgekernelbench.evaluator.model import OUTSIDE_DENOMINATOR, EvaluationStatus
from edgekernelbench.records.schema import Record
from edgekernelbench.scores.statistics import wilson

Verdicts = Mapping[str, Record]
"""By target."""

MISSING = "missing"


def portability(
    records: Sequence[Record],
    is_fast: Callable[[Record], bool],
    has_baseline: Callable[[Record], bool],
) -> dict[str, Any] | None:
    """What kernels are worth over all targets of a run; None where there is only one target.

    A kernel counts when it has a verdict on every target. One that a device does not support
    (``unsupported``: it lacks a dtype) has none there: such kernels are left out, and counted by
    their reasons; ``where_supported`` counts them on the targets that do support them. The first
    attempt at a task stands for it.

    Args:
        is_fast: whether a correct record reaches its best baseline.
        has_baseline: whether a correct record has a baseline to be held against.
    """
    targets = sorted({record.task.target for record in records})
    if len(targets) < 2:
        return None
    kernels = _by_workload(records)
    everywhere, left_out = [], Counter[str]()
    for verdicts in kernels.values():
        reason = _reason(verdicts, targets)
        if reason:
            left_out[reason] += 1
        else:
            everywhere.append(verdicts)
    supported = [kept for v in kernels.values() if (kept := _supported(v, targets))]
    return {
        "targets": targets,
        "kernels": len(kernels),
        "left_out": dict(sorted(left_out.items())),
        **_shares(everywhere, is_fast, has_baseline),
        "where_supported": _shares(supported, is_fast, has_baseline),
    }


def _by_workload(records: Sequence[Record]) -> dict[str, dict[str, Record]]:
    found: dict[str, dict[str, Record]] = defaultdict(dict)
    for record in sorted(records, key=lambda r: r.epoch):
        found[record.task.workload].setdefault(record.task.target, record)
    return found


def _reason(verdicts: Verdicts, targets: Sequence[str]) -> str:
    """Why a kernel has no verdict on every target; empty when it has."""
    outside = {r.status.value for r in verdicts.values() if r.status in OUTSIDE_DENOMINATOR}
    unsupported = EvaluationStatus.UNSUPPORTED.value
    if outside - {unsupported}:
        return min(outside - {unsupported})
    if len(verdicts) < len(targets):
        return MISSING
    return unsupported if outside else ""


def _supported(verdicts: Verdicts, targets: Sequence[str]) -> Verdicts:
    """The verdicts where the kernel is supported, if there is one and no other is wanting."""
    if _reason(verdicts, targets) not in ("", EvaluationStatus.UNSUPPORTED.value):
        return {}
    return {t: r for t, r in verdicts.items() if r.status not in OUTSIDE_DENOMINATOR}


def _shares(
    kernels: Sequence[Verdicts],
    is_fast: Callable[[Record], bool],
    has_baseline: Callable[[Record], bool],
) -> dict[str, Any]:
    comparable = [v for v in kernels if all(_comparable(r, has_baseline) for r in v.values())]
    fast = [[is_fast(record) for record in v.values()] for v in comparable]
    return {
        "correct_on_all": _share(
            [all(r.status is EvaluationStatus.CORRECT for r in v.values()) for v in kernels]
        ),
        "fast_on_all": _share([all(each) for each in fast]),
        "fast_on_one": _share([any(each) for each in fast]),
        "without_baseline": len(kernels) - len(comparable),
    }


def _comparable(record: Record, has_baseline: Callable[[Record], bool]) -> bool:
    """A kernel that is not correct is not fast, whatever there is to beat."""
    return record.status is not EvaluationStatus.CORRECT or has_baseline(record)


def _share(hits: Sequence[bool]) -> dict[str, Any]:
    n, count = len(hits), sum(hits)
    value = count / n if n else None
    low, high = wilson(value or 0.0, n)
    return {"value": value, "count": count, "n": n, "low": low, "high": high}
