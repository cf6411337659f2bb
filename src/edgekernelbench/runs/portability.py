"""One kernel on all targets: the same file judged on each, a run of its own for every target."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from edgekernelbench.agents.base import Agent
from edgekernelbench.agents.given import GivenAgent
from edgekernelbench.analysis.code import DeviceCode, device_code
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import EvalSettings, Evaluator
from edgekernelbench.evaluator.buildchild import refusal
from edgekernelbench.evaluator.evaluator import is_here, require_here
from edgekernelbench.evaluator.model import BaselineResult, EvaluationStatus
from edgekernelbench.evaluator.static import StaticResult, lacking_dtypes, static_check
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.records.schema import Record, Spent
from edgekernelbench.runs.order import RunConfig
from edgekernelbench.runs.run import Observer, run
from edgekernelbench.suite import Workload
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.registry import find_target, list_targets

KERNEL_SUFFIX = ".ekir"


Status = EvaluationStatus | Literal["code_only"]


class Row(BaseModel):
    """A kernel on a target. Ratios are medians of a baseline over the kernel's: above 1 it wins.

    Attributes:
        status: ``code_only`` where the target is not here: its code keeps within all limits.
        ratios: by baseline; ``best`` is the fastest scored one.
        unsure: baselines of which the interval of the ratio holds 1.
        registers: of a thread of the kernel that takes most, where an assembler said so.
        shared_bytes: of a block, likewise.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    workload: str
    target: str
    status: Status
    message: str = ""
    median_us: float | None = None
    ratios: dict[str, float] = {}
    unsure: tuple[str, ...] = ()
    registers: int | None = None
    shared_bytes: int | None = None
    workspace_bytes: int | None = None
    code_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Portability:
    """What is to be judged where. ``folder`` gets a run for each target."""

    agent: Agent
    subset: str
    workloads: tuple[Workload, ...]
    targets: tuple[Target, ...]
    folder: Path
    resume: bool = False
    settings: EvalSettings = EvalSettings()


def targets_of(names: Sequence[str]) -> tuple[Target, ...]:
    """The targets of these names, or all that are on this machine.

    Raises:
        UsageError: one is unknown or named twice, or none of them can be run from here.
    """
    found = tuple(map(find_target, names)) if names else list_targets().targets
    if not any(map(is_here, found)):
        require_here(found[0])
    folders = [_folder(target) for target in found]
    twice = next((name for name in folders if folders.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"target {twice!r} is named twice", "name each target once")
    return found


def kernels_in(folder: Path) -> dict[str, Path]:
    """The kernel files of a folder, by the workloads that they are named after.

    Raises:
        UsageError: there are none.
    """
    found = {file.stem: file for file in sorted(folder.glob(f"*{KERNEL_SUFFIX}"))}
    if not found:
        raise UsageError(
            f"{folder}: holds no kernel", f"kernels are called WORKLOAD{KERNEL_SUFFIX} in a folder"
        )
    return found


def given(texts: dict[str, str]) -> Agent:
    """Hands in these kernels."""
    return GivenAgent(texts)


def run_portability(order: Portability, observer: Observer) -> list[Record]:
    """Judges every kernel on every target that is here, a target after the other.

    Raises:
        UsageError: see `runs.run.run`.
    """
    records: list[Record] = []
    for target in filter(is_here, order.targets):
        config = RunConfig(
            agent=order.agent,
            model=None,
            target=target,
            workloads=order.workloads,
            subset=order.subset,
            limits=Spent(evaluations=1),
            epochs=1,
            seed=0,
            settings=order.settings,
        )
        folder = order.folder / _folder(target)
        resume = order.resume and folder.exists()
        with Evaluator(target, settings=order.settings) as evaluator:
            records += run(config, folder, resume, evaluator, observer)
    return records


def _folder(target: Target) -> str:
    return re.sub(r"[^\w.-]+", "-", target.name)


def rows(records: Sequence[Record], more: Sequence[Row] = ()) -> tuple[Row, ...]:
    """A row a record, and those of targets that are not here, workload by workload."""
    return tuple(sorted((*map(_row, records), *more), key=lambda row: row.workload))


def code_rows(
    texts: Mapping[str, str], workloads: Sequence[Workload], targets: Sequence[Target]
) -> Iterator[Row]:
    """Of the targets that are not here, what their code takes; a row for each kernel, which is the
    canonical program where no other is given."""
    for target in targets:
        if not is_here(target):
            for workload in workloads:
                try:
                    text = texts.get(workload.id) or workload.canonical()
                except FileNotFoundError:
                    continue  # an own task without program; its records say so
                yield _code_row(text, workload, target)


def _code_row(text: str, workload: Workload, target: Target) -> Row:
    checked = static_check(text, as_task(workload), target)
    status, message, code = _coded(checked, target)
    registers = [k.registers for k in code.kernels if k.registers is not None]
    return Row(
        workload=workload.id,
        target=target.name,
        status=status,
        message=message,
        registers=max(registers, default=None),
        shared_bytes=max((k.shared_bytes for k in code.kernels), default=None),
        code_bytes=code.code_bytes,
    )


def _coded(checked: StaticResult, target: Target) -> tuple[Status, str, DeviceCode]:
    """How far the code of a kernel comes, why no further, and what it takes."""
    errors = [d for d in checked.diagnostics if d.severity == "error"]
    told = errors[0].message if errors else ""
    program, module = checked.program, checked.module
    if program is None:
        return EvaluationStatus.INVALID_IR, told, DeviceCode()
    if lacking := lacking_dtypes(program, target):
        return EvaluationStatus.UNSUPPORTED, lacking, DeviceCode()
    if module is None or not checked.ok:
        return EvaluationStatus(refusal(checked.diagnostics)), told, DeviceCode()
    code = device_code(program, module, target)
    if code.diagnostics:
        return EvaluationStatus(refusal(code.diagnostics)), code.diagnostics[0].message, code
    if code.over_budget:
        return EvaluationStatus.OVER_BUDGET, code.over_budget, code
    return "code_only", code.not_compiled, code


def _holds_one(found: BaselineResult) -> bool:
    low, high = found.speedup_low, found.speedup_high
    return low is not None and high is not None and low < 1 < high


def _row(record: Record) -> Row:
    evaluation = record.evaluation
    figures: dict[str, object] = {"message": record.message if evaluation is None else ""}
    if evaluation is not None:
        figures["message"] = evaluation.message
        ratios = {n: b.speedup for n, b in evaluation.baselines.items() if b.speedup is not None}
        unsure = {n for n in ratios if _holds_one(evaluation.baselines[n])}
        if evaluation.best is not None:
            ratios["best"] = ratios[evaluation.best]
            unsure |= {"best"} if evaluation.best in unsure else set()
        figures |= {"ratios": ratios, "unsure": tuple(sorted(unsure))}
        if evaluation.performance is not None:
            figures["median_us"] = evaluation.performance.median_us
        facts = None if evaluation.resources is None else evaluation.resources.facts
        if facts is not None:
            registers = [k.registers for k in facts.kernels if k.registers is not None]
            figures |= {
                "registers": max(registers, default=None),
                "shared_bytes": max((k.shared_bytes for k in facts.kernels), default=None),
                "workspace_bytes": facts.workspace_bytes,
                "code_bytes": facts.code_bytes,
            }
    return Row.model_validate(
        {
            "workload": record.task.workload,
            "target": record.task.target,
            "status": record.status,
            **figures,
        }
    )
