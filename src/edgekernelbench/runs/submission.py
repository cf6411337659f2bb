"""What must hold of a run's records before any kernel is run again.

A submission is a run's folder, and may be a stranger's. These rules find what was changed by hand
without care; what was changed with care is left to `verify`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.buildchild import text_hash
from edgekernelbench.evaluator.model import (
    ROUNDING,
    BaselineResult,
    Evaluation,
    EvaluationStatus,
    Performance,
)
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import kernel_hash
from edgekernelbench.records.read import RECORDS, SETTINGS, kept_kernel, missing, read_records
from edgekernelbench.records.schema import Record, TaskFacts
from edgekernelbench.runs.order import completed
from edgekernelbench.runs.run import attempt_seed
from edgekernelbench.scores.likeness import conditions
from edgekernelbench.suite import TOLERANCE_VERSION
from edgekernelbench.suite.find import find_workload

_WITHOUT_KERNEL = frozenset(
    (
        EvaluationStatus.NO_KERNEL,
        EvaluationStatus.UNPARSEABLE,
        EvaluationStatus.PROVIDER_ERROR,
        EvaluationStatus.INFRA_ERROR,
    )
)
"""How an attempt can end that left nothing to judge."""


class Finding(BaseModel):
    """Something that no run of this package leaves behind. ``attempt``: its id; empty where it is
    about the folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    attempt: str
    message: str


@dataclass(frozen=True, slots=True)
class Submission:
    """A run's folder as it was read.

    Attributes:
        digest: SHA-256 of records and settings, for whoever wants to know whether they changed.
        findings: of the whole folder and each record.
        notes: what is no fault but should be known.
    """

    folder: Path
    records: tuple[Record, ...]
    settings: dict[str, Any] | None
    digest: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


def read_submission(folder: Path) -> Submission:
    """Reads and checks the folder of one run.

    Raises:
        UsageError: it is none, holds no readable record, or was judged by another version of the
            tolerances.
    """
    path = folder / RECORDS
    if not path.is_file():
        raise UsageError(
            f"{folder}: holds no {RECORDS} of its own", "verify the --out folder of one `ekb run`"
        )
    loaded = read_records(path)
    if not loaded.records:
        told = f" ({loaded.problems[0]})" if loaded.problems else ""
        raise UsageError(f"{folder}: holds no readable record{told}", "give a finished run")
    _refuse_versions(loaded.records)
    settings = _settings(folder / SETTINGS)
    cut = not path.read_bytes().endswith(b"\n")
    problems = loaded.problems[:-1] if cut and loaded.problems else loaded.problems
    notes = [f"its last line is half-written: {loaded.problems[-1]}"] if cut else []
    if settings is not None and completed(settings).get("settings") != _usual_settings():
        notes.append("it was measured with other settings than this package's")
    findings = [Finding(attempt="", message=problem) for problem in problems]
    findings += _of_run(folder, loaded.records, settings)
    for record in loaded.records:
        findings += (Finding(attempt=record.id, message=m) for m in _of_record(record, folder))
        if settings is not None:
            told = _against_settings(record, settings)
            findings += (Finding(attempt=record.id, message=m) for m in told)
    return Submission(
        folder, loaded.records, settings, digest_of(folder), tuple(findings), tuple(notes)
    )


def digest_of(folder: Path) -> str:
    """Of a run's records and settings."""
    whole = hashlib.sha256()
    for name in (RECORDS, SETTINGS):
        path = folder / name
        data = path.read_bytes() if path.is_file() else b""
        whole.update(f"{name} {len(data)}\n".encode() + data)
    return whole.hexdigest()


def _refuse_versions(records: tuple[Record, ...]) -> None:
    others = sorted({r.task.tolerance_version for r in records} - {TOLERANCE_VERSION})
    if others:
        raise UsageError(
            f"records judged by version {others[0]} of the tolerances; this package has "
            f"{TOLERANCE_VERSION}",
            "verify with the package that made them, or run anew",
        )


def _usual_settings() -> dict[str, Any]:
    return EvalSettings().model_dump(mode="json")


def _settings(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


# ---------------------------------------------------------------- of the run
def _of_run(
    folder: Path, records: tuple[Record, ...], settings: dict[str, Any] | None
) -> Iterator[Finding]:
    if settings is None:
        told = f"no readable {SETTINGS}: nobody can tell whether attempts are missing"
        yield Finding(attempt="", message=told)
    elif gone := missing(folder / RECORDS, records):
        yield Finding(attempt="", message=f"{gone} attempts of this run have no record")
    for what, told in conditions(records).items():
        if len(told) > 1:
            yield Finding(attempt="", message=f"more than one {what}: {', '.join(told)}"[:500])


def _against_settings(record: Record, settings: dict[str, Any]) -> Iterator[str]:
    target = settings.get("target")
    named = target.get("name") if isinstance(target, dict) else None
    for what, there, own in (
        ("agent", settings.get("agent"), record.agent),
        ("model", settings.get("model"), record.model),
        ("target", named, record.task.target),
    ):
        if there != own:
            yield f"its {what} is {own!r}, that of the run {there!r}"
    for what, own in (
        ("limits", record.limits.model_dump(mode="json")),
        ("agent_options", json.loads(json.dumps(record.agent_options))),
    ):
        there = completed(settings).get(what)
        if isinstance(there, dict) and there != own:
            yield f"its {what.replace('_', ' ')} are not those of the run"
    epochs = settings.get("epochs")
    if isinstance(epochs, int) and record.epoch >= epochs:
        yield f"the run has {epochs} attempts a task, this is number {record.epoch + 1}"
    workloads = settings.get("workloads")
    if isinstance(workloads, list) and record.task.workload not in workloads:
        yield f"the run has no workload {record.task.workload}"
    seed = settings.get("seed")
    if isinstance(seed, int) and record.seed != attempt_seed(seed, record.id):
        yield "its seed is not the one that the run's seed gives this attempt"


# ---------------------------------------------------------------- of a record
def _of_record(record: Record, folder: Path) -> Iterator[str]:
    task = record.task
    if record.isolated and record.agent_options.get("sandbox") == "local":
        yield "a local sandbox does not isolate an agent"
    allowed, used = record.limits.evaluations, record.spent.evaluations
    if allowed is not None and used is not None and used > allowed:
        yield f"{used} evaluations are spent, {allowed} were allowed"
    yield from _of_task(task)
    yield from _of_kernel(record, folder)
    if record.evaluation is not None:
        evaluation = record.evaluation
        if (evaluation.workload, evaluation.target) != (task.workload, task.target):
            yield f"its evaluation is of {evaluation.workload} on {evaluation.target}"
        yield from _of_figures(evaluation)


def _of_task(task: TaskFacts) -> Iterator[str]:
    try:
        workload = find_workload(task.workload)
    except UsageError as error:
        yield error.message
        return
    there = {
        "pattern": workload.definition.id, "level": workload.level, "family": workload.family,
        "domain": workload.domain, "dtype": str(workload.dtype),
        "tolerance": str(workload.tolerance),
    }  # fmt: skip
    for name, value in there.items():
        if getattr(task, name) != value:
            yield f"{name} {getattr(task, name)!r}, the suite has {value!r}"


def _of_kernel(record: Record, folder: Path) -> Iterator[str]:
    evaluation = record.evaluation
    if (record.kernel is None) != (evaluation is None):
        yield "a kernel and its evaluation come together"
    if evaluation is None and record.status not in _WITHOUT_KERNEL:
        yield f"{record.status.value} is a verdict on a kernel, and there is none"
    if evaluation is not None and evaluation.kernel_hash != record.kernel_hash:
        yield "its evaluation is of a kernel with another hash"
    if record.kernel is None or record.kernel_hash is None:
        return
    if hash_of(record.kernel) != record.kernel_hash:
        yield "its kernel's text does not have the hash that is recorded"
    kept = kept_kernel(folder, record.kernel_hash)
    if kept is not None and hash_of(kept) != record.kernel_hash:
        yield f"kernels/{record.kernel_hash}.ekir holds another text"


def hash_of(text: str) -> str:
    """The hash that an evaluation gives a kernel's text."""
    kernel = parse(text).kernel
    return text_hash(text) if kernel is None else kernel_hash(kernel)


def _of_figures(evaluation: Evaluation) -> Iterator[str]:
    own = evaluation.performance or evaluation.quarantined
    if own is None:
        return
    if evaluation.environment is None:
        yield "it does not tell its processor"
    if not _holds_together(own):
        yield "its time does not fit its samples and interval"
    medians = {
        name: result.median_us
        for name, result in evaluation.baselines.items()
        if result.scored and result.median_us is not None
    }
    fastest = min(medians.values(), default=None)
    if (evaluation.best is None) != (fastest is None) or (
        evaluation.best is not None and medians[evaluation.best] != fastest
    ):
        yield f"`best` is {evaluation.best}, which is not the fastest scored baseline"
    for name, result in evaluation.baselines.items():
        if not _speedup_fits(result, own):
            yield f"the speed-up over {name} is not the ratio of the two times"


def _holds_together(figures: Performance | BaselineResult) -> bool:
    median, samples = figures.median_us, figures.samples_us
    if median is None:
        return True
    slack = 1 + ROUNDING
    return bool(samples) and min(samples) / slack <= median <= max(samples) * slack


def _speedup_fits(result: BaselineResult, own: Performance) -> bool:
    """A baseline that was measured in fewer rounds is held against the kernel's times in these."""
    if result.speedup is None or result.median_us is None:
        return True
    if not _holds_together(result):
        return False
    slack = 1 + ROUNDING
    ratio = result.median_us / own.median_us
    if result.rounds != own.rounds:
        return True
    return ratio / slack <= result.speedup <= ratio * slack
