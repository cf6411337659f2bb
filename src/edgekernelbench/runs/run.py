"""One run: an agent, a target, a set of workloads, one budget, records as they come."""

from __future__ import annotations

import datetime
import functools
import hashlib
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from edgekernelbench.agents.base import Agent, Answer, Budget, Device, Task
from edgekernelbench.agents.model import ProviderError
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import Evaluator
from edgekernelbench.evaluator.ahead import build_ahead
from edgekernelbench.evaluator.environment import versions
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.evaluator.room import disk_refused
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.records.read import RECORDS, read_records
from edgekernelbench.records.schema import Record, Step, TaskFacts, record_id
from edgekernelbench.records.store import RunStore
from edgekernelbench.runs.bench import Bench, Stopped
from edgekernelbench.runs.order import RunConfig, completed
from edgekernelbench.suite import TOLERANCE_VERSION, Workload
from edgekernelbench.targets.model import Target

UNANSWERED = frozenset((EvaluationStatus.PROVIDER_ERROR,))
"""Statuses of attempts that may be made again: nothing was learnt of the model."""


class Observer(Protocol):
    """Who watches a run (a progress display); one call at a time, from the attempts' threads.

    Of ``total`` attempts ``ended`` have their record when another one begins.
    """

    def prepared(self, number: int, total: int) -> None: ...
    def attempt_begins(self, workload: Workload, ended: int, total: int) -> None: ...
    def step(self, step: Step) -> None: ...
    def attempt_ends(self, record: Record, resumed: bool) -> None: ...


class Silent:
    """An observer that shows nothing."""

    def prepared(self, number: int, total: int) -> None: ...
    def attempt_begins(self, workload: Workload, ended: int, total: int) -> None: ...
    def step(self, step: Step) -> None: ...
    def attempt_ends(self, record: Record, resumed: bool) -> None: ...


def run(
    config: RunConfig,
    folder: Path,
    resume: bool,
    evaluator: Evaluator,
    observer: Observer,
    retry: bool = False,
) -> list[Record]:
    """Runs every attempt that ``folder`` does not hold yet, one after another; returns all records.

    Args:
        retry: attempts that ended as ``provider_error`` are made again. Their records stay, and
            count no more once there is another.

    Raises:
        UsageError: no task has what the agent needs; see `RunStore.open` and `RunStore.append` too.
    """
    with Attempts.open(config, folder, resume, evaluator, observer, retry) as attempts:
        for workload, epoch in attempts.todo:
            attempts.work(workload, epoch)
        return attempts.records()


class Attempts:
    """The attempts of a run: which are left, and working on one. Made by `open`.

    `work` may be called by several threads at a time.

    Attributes:
        todo: attempts without a record, in their order.
    """

    def __init__(
        self, config: RunConfig, store: RunStore, evaluator: Evaluator, observer: Observer
    ) -> None:
        self.config = config
        self._store = store
        self._observer = observer
        self._bench = Bench(evaluator)
        self._lock = threading.Lock()
        plan = list(_attempts(config))
        self._total = len(plan)
        self.todo = [(w, e) for w, e in plan if _id(config, w, e) not in store.done]
        self._ended = self._total - len(self.todo)

    @classmethod
    def open(
        cls,
        config: RunConfig,
        folder: Path,
        resume: bool,
        evaluator: Evaluator,
        observer: Observer,
        retry: bool = False,
    ) -> Attempts:
        """Creates or takes up a run, see `run`; tells of what is there already and builds the
        baselines.

        Raises:
            UsageError: no task has what the agent needs; see `RunStore.open`.
        """
        _refuse_if_nothing_can_be_done(config)
        again = UNANSWERED if retry else frozenset()
        store = RunStore.open(folder, config.as_dict(), resume, completed, again)
        try:
            attempts = cls(config, store, evaluator, observer)
            for record in (r for r in attempts.records() if r.id in store.done):
                observer.attempt_ends(record, True)
            tasks = list({w.id: as_task(w) for w, _ in attempts.todo}.values())
            for number, _ in enumerate(build_ahead(evaluator, tasks), 1):
                observer.prepared(number, len(tasks))
        except BaseException:
            store.close()
            raise
        return attempts

    def work(
        self, workload: Workload, epoch: int, stopped: threading.Event | None = None
    ) -> Record:
        """One attempt, from the agent's first step to its record on the disk.

        Args:
            stopped: set when nobody wants the attempt any more. What an agent makes of a world
                that ends around it says nothing of the agent, and is not recorded.

        Raises:
            UsageError: see `RunStore.append`.
            Stopped: it was stopped.
        """
        with self._lock:
            _go_on(stopped)
            self._observer.attempt_begins(workload, self._ended, self._total)
        record = _attempt(self.config, self._store, self._bench, workload, epoch, self._step)
        with self._lock:
            _go_on(stopped)
            self._store.append(record)
            self._ended += 1
            self._observer.attempt_ends(record, False)
        return record

    def _step(self, step: Step) -> None:
        with self._lock:
            self._observer.step(step)

    def records(self) -> list[Record]:
        """All records there are."""
        path = self._store.folder / RECORDS
        return list(read_records(path).records) if path.exists() else []

    def close(self) -> None:
        """Ends the baselines' processes and gives the folder free."""
        self._bench.close()
        self._store.close()

    def __enter__(self) -> Attempts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _go_on(stopped: threading.Event | None) -> None:
    if stopped is not None and stopped.is_set():
        raise Stopped


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
    bench: Bench,
    workload: Workload,
    epoch: int,
    on_step: Callable[[Step], None],
) -> Record:
    identity = _id(config, workload, epoch)
    seed = attempt_seed(config.seed, identity)
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    clock = time.monotonic()
    budget = Budget(config.limits)
    device = Device(
        functools.partial(bench.evaluate, workload),
        budget,
        store.keep_kernel,
        functools.partial(bench.check, workload),
        bench.reports,
        functools.partial(bench.profile, workload),
        bench.hold,
        store.keep_text,
        on_step=on_step,
        epoch=epoch,
    )
    answer = _work(config.agent, Task(workload, config.target), device, seed)
    if device.refused:  # its sandbox is gone: room that is back now was its own doing
        bench.require_room()
    spent = budget.spent
    # The verdict stands on inputs that the agent's own evaluations never saw.
    evaluation = None if answer.kernel is None else bench.verdict(workload, answer.kernel)
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
        status=answer.status if evaluation is None else evaluation.status,
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


def _work(agent: Agent, task: Task, device: Device, seed: int) -> Answer:
    """The agent's answer; that of an agent that breaks is the best kernel it had measured.

    Whoever could end an attempt without a verdict would not be counted where he fails. So once a
    model has had the word, what breaks counts against it, unless it was the harness.

    Raises:
        UsageError: the disk is full or read-only.
    """
    lack = _lack(agent, task.workload)
    if lack:
        return Answer(None, lack)
    try:
        return agent.attempt(task, device, seed)
    except UsageError:
        raise
    except ProviderError as error:
        return Answer(None, str(error), EvaluationStatus.PROVIDER_ERROR)
    except Exception as error:
        refused = disk_refused(error) if isinstance(error, OSError) else None
        if refused is not None:  # a fault of the disk would count as the end of this attempt
            raise refused from error
        message = f"the agent failed: {traceback.format_exc(limit=-6)}"
        if device.best is not None and not device.broken:
            return Answer(device.best[0], message)
        counts = device.led and not device.broken
        status = EvaluationStatus.NO_KERNEL if counts else EvaluationStatus.INFRA_ERROR
        return Answer(None, message, status)


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
        backend=target.backend,
    )
