"""One run: an agent, a target, a set of workloads, one budget, records as they come."""

from __future__ import annotations

import datetime
import hashlib
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from edgekernelbench.agents.base import Agent, Answer, Budget, Device, Task
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import EvalSettings, Evaluator, TaskSession
from edgekernelbench.evaluator.ahead import build_ahead
from edgekernelbench.evaluator.environment import versions
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.records.schema import Record, Spent, Step, TaskFacts, record_id
from edgekernelbench.records.store import RunStore
from edgekernelbench.suite import TOLERANCE_VERSION, Workload
from edgekernelbench.targets.model import Target


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Everything that decides a run's results. ``isolated``: agents saw only their task."""

    agent: Agent
    model: str | None
    target: Target
    workloads: tuple[Workload, ...]
    subset: str
    limits: Spent
    epochs: int
    seed: int
    settings: EvalSettings
    isolated: bool = True

    def as_dict(self) -> dict[str, Any]:
        """The form that is stored, and compared when a run is resumed."""
        return {
            "version": 1,
            "agent": self.agent.name,
            "agent_options": self.agent.options,
            "model": self.model,
            "target": self.target.model_dump(mode="json"),
            "subset": self.subset,
            "workloads": [w.id for w in self.workloads],
            "limits": self.limits.model_dump(mode="json"),
            "epochs": self.epochs,
            "seed": self.seed,
            "settings": self.settings.model_dump(mode="json"),
        }


class Observer(Protocol):
    """Who watches a run (a progress display); all calls come from the run's thread."""

    def prepared(self, number: int, total: int) -> None: ...
    def attempt_begins(self, workload: Workload, number: int, total: int) -> None: ...
    def step(self, step: Step) -> None: ...
    def attempt_ends(self, record: Record, resumed: bool) -> None: ...


class Silent:
    """An observer that shows nothing."""

    def prepared(self, number: int, total: int) -> None: ...
    def attempt_begins(self, workload: Workload, number: int, total: int) -> None: ...
    def step(self, step: Step) -> None: ...
    def attempt_ends(self, record: Record, resumed: bool) -> None: ...


def run(
    config: RunConfig, folder: Path, resume: bool, evaluator: Evaluator, observer: Observer
) -> list[Record]:
    """Runs every attempt that ``folder`` does not hold yet; returns all records of the run.

    Raises:
        UsageError: no task has what the agent needs; see `RunStore.open` and `RunStore.append` too.
    """
    from edgekernelbench.records.store import RECORDS, read_records

    _refuse_if_nothing_can_be_done(config)
    with RunStore.open(folder, config.as_dict(), resume) as store:
        plan = list(_attempts(config))
        earlier = store.done
        if (folder / RECORDS).exists():
            for record in read_records(folder / RECORDS).records:
                observer.attempt_ends(record, True)
        todo = [(w, e) for w, e in plan if _id(config, w, e) not in earlier]
        ahead = {w.id: as_task(w) for w, _ in todo}.values()
        for number, _ in enumerate(build_ahead(evaluator, list(ahead)), 1):
            observer.prepared(number, len(ahead))
        for number, (workload, epoch) in enumerate(todo, len(plan) - len(todo) + 1):
            observer.attempt_begins(workload, number, len(plan))
            with evaluator.session(as_task(workload)) as session:
                record = _attempt(config, store, session, workload, epoch, observer)
            store.append(record)
            observer.attempt_ends(record, False)
        return list(read_records(folder / RECORDS).records)


def _refuse_if_nothing_can_be_done(config: RunConfig) -> None:
    reason = ""
    for workload in config.workloads:
        reason = _lack(config.agent, workload)
        if not reason:
            return
    if reason:
        ids = [workload.id for workload in config.workloads]
        which = f"{ids[0]} has none" if len(ids) == 1 else f"none of the {len(ids)} tasks has one"
        raise UsageError(
            f"{config.agent.name} needs a canonical program; {which}",
            f"choose other tasks or another agent ({reason})",
        )


def _lack(agent: Agent, workload: Workload) -> str:
    """What the agent would need and the task does not have, in one line; empty if nothing."""
    if not agent.needs_canonical:
        return ""
    try:
        workload.canonical()
    except FileNotFoundError as error:
        return str(error).partition("\n")[0]
    return ""


def _attempts(config: RunConfig) -> Iterator[tuple[Workload, int]]:
    for epoch in range(config.epochs):
        for workload in config.workloads:
            yield workload, epoch


def _id(config: RunConfig, workload: Workload, epoch: int) -> str:
    return record_id(workload.id, config.target.name, config.agent.name, epoch)


def attempt_seed(seed: int, identity: str) -> int:
    """A 63-bit seed that depends on the run's seed and the attempt, and on nothing else."""
    digest = hashlib.sha256(f"{seed}|{identity}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _attempt(
    config: RunConfig,
    store: RunStore,
    session: TaskSession,
    workload: Workload,
    epoch: int,
    observer: Observer,
) -> Record:
    identity = _id(config, workload, epoch)
    seed = attempt_seed(config.seed, identity)
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    clock = time.monotonic()
    budget = Budget(config.limits)
    device = Device(session.evaluate, budget, store.keep_kernel, on_step=observer.step)
    answer, broken = _work(config.agent, Task(workload, config.target), device, seed)
    spent = budget.spent
    session.redraw()  # the verdict stands on inputs that the agent's own evaluations never saw
    evaluation = None if answer.kernel is None else session.evaluate(answer.kernel)
    if evaluation is not None and evaluation.kernel_hash is not None and answer.kernel is not None:
        store.keep_kernel(evaluation.kernel_hash, answer.kernel)
    return Record(
        id=identity,
        run=store.folder.name,
        task=task_facts(workload, config.target),
        agent=config.agent.name,
        agent_options=config.agent.options,
        model=config.model,
        epoch=epoch,
        seed=seed,
        status=_status(evaluation, broken),
        kernel=answer.kernel,
        kernel_hash=None if evaluation is None else evaluation.kernel_hash,
        evaluation=evaluation,
        limits=config.limits,
        spent=spent,
        trajectory=tuple(device.trajectory),
        isolated=config.isolated,
        message=answer.message,
        started=started,
        seconds=round(time.monotonic() - clock, 3),
        versions=versions(),
    )


def _work(agent: Agent, task: Task, device: Device, seed: int) -> tuple[Answer, bool]:
    """The agent's answer; an agent that breaks loses its attempt, not the run."""
    lack = _lack(agent, task.workload)
    if lack:
        return Answer(None, lack), False
    try:
        return agent.attempt(task, device, seed), False
    except UsageError:
        raise
    except Exception:
        return Answer(None, f"the agent failed: {traceback.format_exc(limit=-6)}"), True


def _status(evaluation: Evaluation | None, broken: bool) -> EvaluationStatus:
    if evaluation is not None:
        return evaluation.status
    return EvaluationStatus.INFRA_ERROR if broken else EvaluationStatus.NO_KERNEL


def task_facts(workload: Workload, target: Target) -> TaskFacts:
    """What a record says of its task."""
    return TaskFacts(
        workload=workload.id,
        pattern=workload.definition.id,
        level=workload.level,
        family=workload.family,
        domain=workload.domain,
        dtype=workload.dtype,
        tolerance=workload.tolerance,
        tolerance_version=TOLERANCE_VERSION,
        target=target.name,
    )
