"""Measured figures of a kernel, from the records of a run."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from edgekernelbench.errors import UsageError
from edgekernelbench.records.read import find_records
from edgekernelbench.records.schema import Record


class Measured(BaseModel):
    """Time of one call, as an evaluation measured it on ``target``.

    Attributes:
        low_us, high_us: 95 % interval of the median.
        speedup: over each baseline, by name.
        best: the baseline that counts.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: str
    median_us: float
    low_us: float
    high_us: float
    threads: int
    timer: str
    cache_state: str
    speedup: dict[str, float]
    best: str | None
    record: str
    started: str


def measured_in(place: Path, kernel_hash: str, target: str) -> Measured:
    """The newest correct evaluation of a kernel on a target.

    Raises:
        UsageError: there is none in these records.
    """
    records = find_records(place).records
    fitting = [r for r in records if r.kernel_hash == kernel_hash and _figures(r) is not None]
    found = [r for r in fitting if r.task.target == target]
    if not found:
        elsewhere = sorted({r.task.target for r in fitting})
        there = f"only on {', '.join(elsewhere)}" if elsewhere else "not at all"
        raise UsageError(
            f"{place}: this kernel was not measured on {target!r} ({there})",
            "give the folder of a run in which it was, or leave the figures out",
        )
    made = _figures(max(found, key=lambda record: record.started))
    assert made is not None
    return made


def _figures(record: Record) -> Measured | None:
    evaluation = record.evaluation
    if evaluation is None or evaluation.performance is None:
        return None
    time = evaluation.performance
    return Measured(
        target=record.task.target,
        median_us=time.median_us,
        low_us=time.low_us,
        high_us=time.high_us,
        threads=time.threads,
        timer=time.timer,
        cache_state=time.cache_state,
        speedup={n: b.speedup for n, b in evaluation.baselines.items() if b.speedup is not None},
        best=evaluation.best,
        record=record.id,
        started=record.started,
    )
