"""How far the times of a run can be relied on: under what conditions they came about."""

from __future__ import annotations

from collections.abc import Sequence

from edgekernelbench.evaluator.model import TOO_BUSY, EvaluationStatus
from edgekernelbench.records.schema import Record
from edgekernelbench.scores.attempts import is_correct


def timing(records: Sequence[Record]) -> dict[str, int]:
    """Counts attempts.

    Returns:
        ``correct``: those with a time. Of them ``noisy``: other work disturbed the measurement, and
        its intervals were stretched; ``wide``: the interval of the median is wider than was asked
        for. ``none``: the machine was too busy for a time to be believed; an ``infra_error``.
    """
    timed = [
        record.evaluation.performance
        for record in records
        if is_correct(record) and record.evaluation is not None and record.evaluation.performance
    ]
    return {
        "correct": len(timed),
        "noisy": sum(one.noise is not None and one.noise.disturbed for one in timed),
        "wide": sum(not one.interval_reached for one in timed),
        "none": sum(map(_too_busy, records)),
    }


def _too_busy(record: Record) -> bool:
    evaluation = record.evaluation
    if evaluation is None or evaluation.status is not EvaluationStatus.INFRA_ERROR:
        return False
    return evaluation.message.startswith(TOO_BUSY)
