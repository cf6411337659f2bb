"""The device of a run, shared by attempts that go on at the same time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from edgekernelbench.analysis.report import Reported, Reporter, ReportOptions
from edgekernelbench.evaluator import Evaluator, TaskSession
from edgekernelbench.evaluator.attempt import Check
from edgekernelbench.evaluator.model import Evaluation
from edgekernelbench.evaluator.stages import NoProfile, StageProfile
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.runs.turns import Turns
from edgekernelbench.suite.model import Workload


class Stopped(BaseException):
    """The run ends. Whatever is under way ends with it and leaves no record; so this is no error
    that an agent could catch as one."""


class Bench:
    """Evaluates kernels of many tasks, one at a time, in whatever thread it is asked.

    Its methods raise `Stopped` once it is closed.

    Args:
        kept: tasks whose inputs and baseline processes stay warm between calls.
    """

    def __init__(self, evaluator: Evaluator, kept: int = 4) -> None:
        self.evaluator = evaluator
        self._kept = kept
        self._turns = Turns()
        self._closed = False
        self._sessions: OrderedDict[str, TaskSession] = OrderedDict()

    def evaluate(self, workload: Workload, kernel: str) -> Evaluation:
        """See `TaskSession.evaluate`; the wait for other attempts is part of the wait told."""
        asked = time.perf_counter()
        with self._session(workload) as session:
            waited = time.perf_counter() - asked
            result = session.evaluate(kernel)
        waited += result.lock_wait_seconds
        return result.model_copy(update={"lock_wait_seconds": round(waited, 6)})

    def verdict(self, workload: Workload, kernel: str) -> Evaluation:
        """An evaluation on inputs that no evaluation before it saw."""
        with self._session(workload) as session:
            session.redraw()
            return session.evaluate(kernel)

    def check(self, workload: Workload, kernel: str) -> Check:
        """See `TaskSession.check`; the wait is told as by `evaluate`."""
        asked = time.perf_counter()
        with self._session(workload) as session:
            waited = time.perf_counter() - asked
            found = session.check(kernel)
        return replace(found, lock_wait_seconds=round(waited + found.lock_wait_seconds, 6))

    def reports(
        self, kernels: Sequence[str], options: ReportOptions, total: float | None = None
    ) -> tuple[list[Reported], float]:
        """See `Reporter.reports`; and the seconds spent waiting."""
        with self.hold() as waited:
            return Reporter(self.evaluator.builder).reports(kernels, options, total), waited

    @contextmanager
    def hold(self) -> Iterator[float]:
        """Nothing is measured meanwhile, by no attempt and by no other process; yields the seconds
        spent waiting for that."""
        asked = time.perf_counter()
        with self._turns.turn(None, self._sessions):
            if self._closed:
                raise Stopped
            with self.evaluator.device_lock():
                yield time.perf_counter() - asked

    def profile(self, workload: Workload, kernel: str) -> StageProfile | NoProfile:
        """See `TaskSession.profile`; the wait for other attempts is part of the wait told."""
        asked = time.perf_counter()
        with self._session(workload) as session:
            waited = time.perf_counter() - asked
            result = session.profile(kernel)
        waited += result.lock_wait_seconds
        return result.model_copy(update={"lock_wait_seconds": round(waited, 6)})

    @contextmanager
    def _session(self, workload: Workload) -> Iterator[TaskSession]:
        with self._turns.turn(workload.id, self._sessions):
            if self._closed:
                raise Stopped
            session = self._sessions.pop(workload.id, None)
            if session is None:
                while len(self._sessions) >= self._kept:
                    self._sessions.popitem(last=False)[1].close()
                session = self.evaluator.session(as_task(workload))
            self._sessions[workload.id] = session
            yield session

    def close(self) -> None:
        """Ends all baseline processes; whoever waits for the device is turned away. May be called
        again."""
        self._closed = True
        with self._turns.turn(None, self._sessions):
            while self._sessions:
                self._sessions.popitem()[1].close()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
