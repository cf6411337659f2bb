"""One kernel on all targets: the same file judged on each, a run of its own for every target."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from edgekernelbench.agents.base import Agent
from edgekernelbench.agents.given import GivenAgent
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import EvalSettings, Evaluator
from edgekernelbench.evaluator.evaluator import require_here
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.records.schema import Record, Spent
from edgekernelbench.runs.order import RunConfig
from edgekernelbench.runs.run import Observer, run
from edgekernelbench.suite import Workload
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.registry import find_target, list_targets

KERNEL_SUFFIX = ".ekir"


class Row(BaseModel):
    """A kernel on a target. Ratios are medians of a baseline over the kernel's: above 1 it wins.

    Attributes:
        ratios: by baseline; ``best`` is the fastest scored one.
        registers: of a thread of the kernel that takes most, where an assembler said so.
        shared_bytes: of a block, likewise.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    workload: str
    target: str
    status: EvaluationStatus
    message: str = ""
    median_us: float | None = None
    ratios: dict[str, float] = {}
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
        UsageError: one is unknown, cannot be run from here, or is named twice.
    """
    found = tuple(map(find_target, names)) if names else list_targets().targets
    for target in found:
        require_here(target)
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
    """Judges every kernel on every target, a target after the other.

    Raises:
        UsageError: see `runs.run.run`.
    """
    records: list[Record] = []
    for target in order.targets:
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


def rows(records: Sequence[Record]) -> tuple[Row, ...]:
    """A row a record, workload by workload."""
    return tuple(map(_row, sorted(records, key=lambda r: r.task.workload)))


def _row(record: Record) -> Row:
    evaluation = record.evaluation
    figures: dict[str, object] = {"message": record.message if evaluation is None else ""}
    if evaluation is not None:
        figures["message"] = evaluation.message
        ratios = {n: b.speedup for n, b in evaluation.baselines.items() if b.speedup is not None}
        if evaluation.best is not None:
            ratios["best"] = ratios[evaluation.best]
        figures["ratios"] = ratios
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
