"""What a score asks of attempts: which count, which task they are at, how fast they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from edgekernelbench.evaluator.model import OUTSIDE_DENOMINATOR, EvaluationStatus
from edgekernelbench.records.schema import Record

Tasks = Mapping[str, Sequence[Record]]
"""Attempts by task: a workload on a target."""

Success = Callable[[Record], bool]


BASELINES = ("best", "tvm", "ort", "tvm-tuned", "torch", "tvm-raw")
"""In the order in which a reader asks for them."""


def baseline_order(names: Iterable[str]) -> tuple[str, ...]:
    """Known ones first, in the reader's order."""
    there = set(names)
    return (*(n for n in BASELINES if n in there), *sorted(there - set(BASELINES)))


def task_of(record: Record) -> str:
    """Names a workload on a target."""
    return f"{record.task.workload}|{record.task.target}"


def counted(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Attempts inside the denominator, by task; a task without any is left out."""
    tasks: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record.status not in OUTSIDE_DENOMINATOR:
            tasks[task_of(record)].append(record)
    return dict(tasks)


def uncounted(records: Iterable[Record]) -> int:
    """How many tasks have attempts, but none inside the denominator."""
    records = list(records)
    return len({task_of(record) for record in records} - counted(records).keys())


def is_correct(record: Record) -> bool:
    return record.status is EvaluationStatus.CORRECT


def speedups(record: Record) -> dict[str, tuple[float, float]]:
    """Median and lower bound of the speed-up over each baseline, for a correct attempt.

    The key ``best`` stands for the fastest scored baseline of the record.
    """
    evaluation = record.evaluation
    if not is_correct(record) or evaluation is None:
        return {}
    out = {
        name: (result.speedup, result.speedup_low)
        for name, result in evaluation.baselines.items()
        if result.speedup is not None and result.speedup_low is not None
    }
    if evaluation.best is not None and evaluation.best in out:
        out["best"] = out[evaluation.best]
    return out


def is_fast(record: Record, baseline: str, p: float) -> bool:
    """Whether an attempt counts as fast at ``p``: the lower bound of its speed-up reaches it."""
    return speedups(record).get(baseline, (0.0, 0.0))[1] >= p


def has_baseline(attempts: Sequence[Record], baseline: str) -> bool:
    """A failed attempt says nothing of the baselines, so it counts for each of them."""
    correct = [r for r in attempts if is_correct(r)]
    return not correct or any(baseline in speedups(r) for r in correct)


def rivals(attempts: Iterable[Record]) -> set[str]:
    """Names of the scored baselines that were measured beside correct attempts."""
    return {
        name
        for record in attempts
        if is_correct(record) and record.evaluation is not None
        for name, result in record.evaluation.baselines.items()
        if result.scored and result.status == "measured"
    }
