"""What a person should look at before a run's figures are believed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import Evaluator
from edgekernelbench.evaluator.environment import observe
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus, Performance
from edgekernelbench.evaluator.plausible import least_seconds
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.records.read import RECORDS
from edgekernelbench.records.schema import Record
from edgekernelbench.scores.attempts import is_correct, speedups
from edgekernelbench.suite.find import find_workload
from edgekernelbench.targets.peaks import load_peaks
from edgekernelbench.targets.registry import find_target

NEAR_ROOF = 1.1
"""Times below this many times the least possible one are looked at."""

FAR_AHEAD = 10.0
"""Speed-ups over the best baseline above this are looked at."""

WIDE = 0.1
"""Half widths of the interval, relative to the median, above this are looked at."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One attempt to look at.

    Attributes:
        id: of the attempt, for `rerun`.
        verdict: ``quarantined``: kept out of the scores; ``suspicious``: counted as correct.
        reasons: a line each.
        figures: of the kernel: times in microseconds, speed-up over the best baseline.
        kernel: the file of its text; None where the folder does not have it.
        seeds: that drew its inputs and constants, to reproduce it.
    """

    id: str
    verdict: Literal["quarantined", "suspicious"]
    reasons: tuple[str, ...]
    figures: dict[str, float | None]
    kernel: str | None
    seeds: dict[str, Any] | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def audit(records: Sequence[Record], folder: Path) -> list[Finding]:
    """Everything in quarantine, then what is correct and too good, or too uncertain, to pass by.

    The distance to the roofline is looked at where this host is the one that measured.

    Args:
        folder: the records are from.
    """
    quarantined = [
        _finding(r, "quarantined", [r.evaluation.message], r.evaluation.quarantined, folder)
        for r in records
        if r.status is EvaluationStatus.IMPLAUSIBLE and r.evaluation is not None
    ]
    suspicious = [
        _finding(r, "suspicious", reasons, r.evaluation.performance, folder)
        for r in records
        if is_correct(r) and r.evaluation is not None and (reasons := list(_suspicions(r)))
    ]
    return [*quarantined, *suspicious]


def _finding(
    record: Record,
    verdict: Literal["quarantined", "suspicious"],
    reasons: Sequence[str],
    figures: Performance | None,
    folder: Path,
) -> Finding:
    assert record.evaluation is not None and figures is not None
    best = record.evaluation.best
    seed = record.evaluation.seed
    return Finding(
        id=record.id,
        verdict=verdict,
        reasons=tuple(reasons),
        figures={
            "median_us": figures.median_us,
            "low_us": figures.low_us,
            "high_us": figures.high_us,
            "launch_overhead_us": figures.launch_overhead_us,
            "speedup": record.evaluation.baselines[best].speedup if best else None,
        },
        kernel=_kernel(record, folder),
        seeds=None if seed is None else seed.model_dump(mode="json"),
    )


def _kernel(record: Record, folder: Path) -> str | None:
    """Beside the records, which may lie deeper than the folder that was named."""
    name = f"kernels/{record.kernel_hash}.ekir"
    runs = [folder] if folder.is_dir() else [folder.parent]
    runs += sorted(path.parent for path in folder.rglob(RECORDS)) if folder.is_dir() else []
    return next((str(run / name) for run in runs if (run / name).is_file()), None)


def _suspicions(record: Record) -> Iterator[str]:
    assert record.evaluation is not None and record.evaluation.performance is not None
    performance = record.evaluation.performance
    roof = _least_us(record)
    if roof is not None and performance.median_us < NEAR_ROOF * roof[0]:
        yield f"near the roofline: no less than {roof[0]:.3g} us is possible ({roof[1]})"
    ahead = speedups(record).get("best", (0.0, 0.0))[0]
    if ahead > FAR_AHEAD:
        yield f"{ahead:.1f} times as fast as {record.evaluation.best}"
    if performance.overhead_dominated:
        yield f"mostly the call itself, which costs {performance.launch_overhead_us:.3g} us"
    width = (performance.high_us - performance.low_us) / 2 / performance.median_us
    if width > WIDE:
        yield f"its interval is {100 * width:.0f} % to either side"


def _least_us(record: Record) -> tuple[float, str] | None:
    """The least possible time and which roof gives it; None where it is not known here."""
    where = None if record.evaluation is None else record.evaluation.environment
    if where is None or record.task.backend not in (None, "llvm", "c") or where.cpu != _this_cpu():
        return None
    try:
        peaks = load_peaks(find_target(record.task.target))
        task = as_task(find_workload(record.task.workload))
    except UsageError:  # of another host's suite or profiles
        return None
    if peaks is None:
        return None
    seconds, roof = least_seconds(task, peaks)
    return seconds * 1e6, roof


@cache
def _this_cpu() -> str:
    return observe(1).cpu


def rerun(records: Sequence[Record], identity: str) -> tuple[Record, Evaluation]:
    """Evaluates an attempt's kernel again, on inputs drawn anew; the record stays as it is.

    Raises:
        UsageError: there is no such attempt, it has no kernel, or its target is not here.
    """
    record = next((record for record in records if record.id == identity), None)
    if record is None:
        raise UsageError(
            f"no attempt {identity!r} among {len(records)} records", "`ekb audit RUN` lists ids"
        )
    if record.kernel is None:
        raise UsageError(f"attempt {identity} has no kernel", "choose one that was judged")
    with Evaluator(find_target(record.task.target)) as evaluator:
        return record, evaluator.evaluate(
            record.kernel, as_task(find_workload(record.task.workload))
        )
