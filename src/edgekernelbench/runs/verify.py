"""Whether a run's records are true, as far as a sample that is judged again can tell.

Status must agree. Inputs are drawn anew, so a kernel that was right by luck is found as well. On
the same kind of device the speed-ups over each baseline must agree, too: they hardly depend on
what else a machine does, times do.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from edgekernelbench.evaluator.model import (
    OUTSIDE_DENOMINATOR,
    BaselineResult,
    Evaluation,
    EvaluationStatus,
)
from edgekernelbench.records.schema import Record
from edgekernelbench.runs.submission import Finding, Submission

TOLERANCE = 1.5
"""Factor within which a speed-up must be found again, beside both intervals."""

TRIES = 2
"""Evaluations before a disagreement counts: a busy machine is not the submitter's fault."""

Judge = Callable[[Record], Evaluation]
Verdict = Literal["verified", "refuted", "open"]


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Again(_Stored):
    """An attempt of the sample.

    Attributes:
        claimed: the record's status.
        found: of each evaluation here.
        agrees: None where no evaluation here came to a verdict.
        worst: the record's speed-up over what was found here, where they differ most; None where
            they were not compared.
        reasons: why it does not agree.
    """

    attempt: str
    claimed: EvaluationStatus
    found: tuple[EvaluationStatus, ...]
    agrees: bool | None
    worst: float | None = None
    reasons: tuple[str, ...] = ()


class Verification(_Stored):
    """What came of it.

    Attributes:
        digest: of what was verified; see `submission.digest_of`.
        package: version of edgekernelbench.
        seed: that drew the sample.
        attempts: records of the run.
        judged: of these, those with a kernel that was judged; the sample is drawn of them.
        again: the sample.
        times: empty where speed-ups were compared, else why not.
        verdict: ``verified``: everything agrees. ``refuted``: something does not. ``open``: parts
            of the sample came to no verdict here, or there was nothing to judge.
        signature: of whoever verified; see `seal`.
    """

    version: Literal[1] = 1
    run: str
    digest: str
    package: str
    date: str
    seed: int
    tolerance: float
    attempts: int
    judged: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    again: tuple[Again, ...]
    times: str
    verdict: Verdict
    signature: str = ""

    @property
    def agreed(self) -> int:
        return sum(one.agrees is True for one in self.again)


@dataclass(frozen=True, slots=True)
class Place:
    """Where records are judged again. ``device``: as the target describes itself there."""

    cpu: str
    device: str
    threads: int


def verify(
    submission: Submission,
    judge: Judge,
    place: Place,
    sample: int,
    seed: int,
    progress: Callable[[int, int, Again], None] = lambda _number, _total, _again: None,
) -> Verification:
    """Judges a sample of the attempts again.

    Args:
        submission: what was read.
        judge: evaluates a record's kernel on inputs drawn anew.
        place: where that is.
        sample: how many; all if there are no more.
        seed: decides which.
        progress: told of each.
    """
    able = [r for r in submission.records if _can_be_judged(r)]
    chosen = random.Random(seed).sample(able, min(sample, len(able)))
    times = _why_no_times(submission, place)
    again: list[Again] = []
    for record in chosen:
        again.append(_again(record, judge, not times))
        progress(len(again), len(chosen), again[-1])
    first = submission.records[0]
    return Verification(
        run=first.run,
        digest=submission.digest,
        package=_package(),
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seed=seed,
        tolerance=TOLERANCE,
        attempts=len(submission.records),
        judged=len(able),
        findings=submission.findings,
        notes=submission.notes,
        again=tuple(again),
        times=times,
        verdict=_verdict(submission.findings, again),
    )


def least_found(of: int, sample: int) -> int:
    """The least number of changed ones among ``of`` of which a sample holds one with a chance of
    95 %; more than ``of`` where there is none."""
    for changed in range(1, of + 1):
        if math.comb(of - changed, sample) <= 0.05 * math.comb(of, sample):
            return changed
    return of + 1


_PASSING = frozenset((EvaluationStatus.INFRA_ERROR, EvaluationStatus.PROVIDER_ERROR))
"""What may have been there and be gone here."""


def _can_be_judged(record: Record) -> bool:
    """What a device or a task cannot do leaves the denominator, and is found again, too."""
    return (
        record.kernel is not None
        and record.evaluation is not None
        and record.status not in _PASSING
    )


def _verdict(findings: Sequence[Finding], again: Sequence[Again]) -> Verdict:
    if findings or any(one.agrees is False for one in again):
        return "refuted"
    return "verified" if again and all(one.agrees for one in again) else "open"


def _package() -> str:
    from edgekernelbench.evaluator.environment import versions

    return versions().get("edgekernelbench", "")


# ---------------------------------------------------------------- an attempt
def _again(record: Record, judge: Judge, timed: bool) -> Again:
    found: list[Evaluation] = []
    reasons: list[str] = []
    for _ in range(TRIES):
        found.append(judge(record))
        reasons = list(_disagreements(record, found[-1], timed))
        if not reasons and found[-1].status is record.status:
            break
    statuses = tuple(one.status for one in found)
    if _wrong_once(record, statuses):
        reasons = ["a kernel that is called correct gave a wrong result", *reasons]
    without_verdict = OUTSIDE_DENOMINATOR - {record.status}
    silent = all(status in without_verdict for status in statuses)
    return Again(
        attempt=record.id,
        claimed=record.status,
        found=statuses,
        agrees=None if silent else not reasons,
        worst=_worst(record, found[-1]) if timed else None,
        reasons=(found[-1].message,) if silent else tuple(dict.fromkeys(reasons)),
    )


def _wrong_once(record: Record, statuses: Sequence[EvaluationStatus]) -> bool:
    """No load of the machine makes a result wrong."""
    wrong = (EvaluationStatus.WRONG_RESULT, EvaluationStatus.WRONG_SHAPE_OR_DTYPE)
    return record.status is EvaluationStatus.CORRECT and any(s in wrong for s in statuses)


def _disagreements(record: Record, found: Evaluation, timed: bool) -> Iterator[str]:
    if found.kernel_hash != record.kernel_hash:
        yield "its kernel has another hash here"
    if found.status is not record.status:
        told = f" ({found.message})" if found.message else ""
        yield f"{record.status.value} in the record, {found.status.value} here{told}"
    elif timed:
        yield from _times_differ(record, found)


def _times_differ(record: Record, found: Evaluation) -> Iterator[str]:
    assert record.evaluation is not None
    for name, here in found.baselines.items():
        there = record.evaluation.baselines.get(name)
        if not here.scored or here.status != "measured":
            continue
        if there is None or there.status != "measured" or not there.scored:
            told = "absent" if there is None else "unscored" if there.scored else there.status
            yield f"baseline {name} is measured here, and {told} in the record"
        elif there.speedup is not None and here.speedup is not None:
            apart = abs(math.log(there.speedup / here.speedup))
            if apart > _allowed(there, here) + math.log(TOLERANCE):
                told = f"{there.speedup:.3g}x in the record, {here.speedup:.3g}x here"
                yield f"speed-up over {name}: {told}"


def _allowed(there: BaselineResult, here: BaselineResult) -> float:
    """How far apart two speed-ups may be by their intervals, in logarithms. Only the halves that
    face each other count: a bound far above, say, would excuse a lower bound that is too high."""
    if (there.speedup or 0.0) > (here.speedup or 0.0):
        return math.hypot(_below(there), _above(here))
    return math.hypot(_above(there), _below(here))


def _below(result: BaselineResult) -> float:
    assert result.speedup is not None and result.speedup_low is not None
    return max(0.0, math.log(result.speedup / result.speedup_low))


def _above(result: BaselineResult) -> float:
    assert result.speedup is not None and result.speedup_high is not None
    return max(0.0, math.log(result.speedup_high / result.speedup))


def _worst(record: Record, found: Evaluation) -> float | None:
    assert record.evaluation is not None
    ratios = [
        there.speedup / here.speedup
        for name, there in record.evaluation.baselines.items()
        if there.scored and there.speedup is not None
        and (here := found.baselines.get(name)) is not None and here.speedup is not None
    ]  # fmt: skip
    return max(ratios, key=lambda ratio: abs(math.log(ratio)), default=None)


# ---------------------------------------------------------------- the device
def _why_no_times(submission: Submission, place: Place) -> str:
    """Empty where the records were measured on the same kind of device as here."""
    for record in submission.records:
        evaluation = record.evaluation
        figures = None if evaluation is None else evaluation.performance or evaluation.quarantined
        if evaluation is None or figures is None:
            continue
        where = evaluation.environment
        if where is None:
            return "a record does not tell its processor"
        if where.cpu != place.cpu:
            return f"measured on {where.cpu}, this is {place.cpu}"
        if figures.threads != place.threads:
            return f"measured with {figures.threads} threads, here there are {place.threads}"
    target = (submission.settings or {}).get("target")
    described = target.get("description") if isinstance(target, dict) else None
    if isinstance(described, str) and described and place.device and described != place.device:
        return f"measured on {described}, this is {place.device}"
    return ""
