"""One evaluation, step by step, from a text to a verdict.

Each step either goes on or raises `_Verdict`; there is one place where statuses are decided for
each way of failing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgekernelbench.compilers.budget import bill_of, over
from edgekernelbench.evaluator import environment
from edgekernelbench.evaluator.buildchild import text_hash
from edgekernelbench.evaluator.building import BuiltKernel
from edgekernelbench.evaluator.contestant import Contestant, Failure
from edgekernelbench.evaluator.judge import Judge, WrongResult
from edgekernelbench.evaluator.match import Match
from edgekernelbench.evaluator.model import (
    TOO_BUSY,
    Evaluation,
    EvaluationStatus,
    Resources,
    SeedInfo,
)
from edgekernelbench.evaluator.replicas import Replicas
from edgekernelbench.evaluator.task import InvalidReference, Pool
from edgekernelbench.evaluator.worker import ChildLost

if TYPE_CHECKING:
    from edgekernelbench.evaluator.session import TaskSession

_BUILD_STATUS = {
    "invalid_ir": EvaluationStatus.INVALID_IR,
    "wrong_shape_or_dtype": EvaluationStatus.WRONG_SHAPE_OR_DTYPE,
    "unsupported": EvaluationStatus.UNSUPPORTED,
    "compile_error": EvaluationStatus.COMPILE_ERROR,
    "over_budget": EvaluationStatus.OVER_BUDGET,
}


class _Verdict(Exception):
    """The evaluation ends here, with this status and reason."""

    def __init__(self, status: EvaluationStatus, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.status = status
        self.message = message[:2000] or status.value
        self.fields = fields


@dataclass(frozen=True, slots=True)
class Check:
    """A kernel that was built and not run.

    Attributes:
        status: how an evaluation would end that cannot even run it; None if it could.
        message: the reason, in one line.
        diagnostics: JSON form of `ir.diagnostics.Diagnostic`.
        lock_wait_seconds: until the device was free.
    """

    kernel_hash: str
    status: EvaluationStatus | None
    message: str
    diagnostics: tuple[dict[str, Any], ...]
    lock_wait_seconds: float = 0.0


class Attempt:
    """The evaluation of one text. Single use."""

    def __init__(self, session: TaskSession, text: str, folder: Path) -> None:
        self._session = session
        self._evaluator = session.evaluator
        self._settings = session.evaluator.settings
        self._text = text
        self._folder = folder
        self._candidate: Replicas | None = None
        self._fields: dict[str, Any] = {"kernel_hash": text_hash(text)}
        self._isolation: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self.launches = 0  # of device kernels, by one call

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Adds the wall time of a block to ``timings``."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    # ------------------------------------------------------------ the course of it
    def run(self) -> Evaluation:
        began = time.perf_counter()
        target = self._evaluator.target
        built_by = environment.toolchain(target)
        environment_before = environment.observe(target.threads, more=built_by)
        try:
            self._course()
            raise AssertionError("an attempt ends with a verdict")
        except _Verdict as verdict:
            status, message = verdict.status, verdict.message
            self._fields |= verdict.fields
        finally:
            if self._candidate is not None:
                self._candidate.close()
        self.seconds["total"] = time.perf_counter() - began
        return Evaluation(
            status=status,
            message="" if status is EvaluationStatus.CORRECT else message,
            workload=self._session.task.id,
            target=self._evaluator.target.name,
            timings={name: round(value, 6) for name, value in self.seconds.items()},
            environment=environment_before.model_copy(update=self._isolation),
            **self._fields,
        )

    def check(self) -> Check:
        """What can be known without running the kernel: it is built, and its bill looked at."""
        try:
            self._check_bill(self._build())
        except _Verdict as verdict:
            message, status = verdict.message, verdict.status
        else:
            message, status = "", None
        found = self._fields.get("diagnostics", ())
        return Check(self._fields["kernel_hash"], status, message, found)

    def _course(self) -> None:
        built = self._build()
        self._check_bill(built)
        pool = self._pool()
        seed, source = self._session.random_source()
        self._fields["seed"] = SeedInfo(
            input_seeds=pool.input_seeds,
            const_seed=pool.const_seed,
            order_seed=seed,
            pool_age=pool.age,
        )
        task = self._session.task
        candidate = Replicas(
            lambda: self._evaluator.kernel_contestant("the kernel", self._folder, task)
        )
        self._candidate = candidate
        judge = Judge(task, pool, candidate)
        match = Match(self, self._session, pool, candidate, judge, source)
        try:
            with self.step("start"):
                candidate.first.deadline = time.monotonic() + self._settings.total_run_s
                candidate.bind(pool, source, self._evaluator.bind_seconds)
                closed = candidate.first.isolation
                self._isolation = {"network": closed.of_network(), "files": closed.of_files()}
            match.first_call()
            with self._canary_must_live():
                match.enter_canary()
            match.play()
        except WrongResult as wrong:
            raise self._wrong(judge, wrong) from wrong
        except Failure as failure:
            raise self._failed(failure) from failure
        self._bill_of_run(match, candidate.first)
        with self._canary_must_live():
            verdict = self._right(match, judge)
        raise verdict

    def _build(self) -> BuiltKernel:
        try:
            with self.step("build"):
                built = self._evaluator.builder.kernel(
                    self._text, self._session.interface, self._folder
                )
        except ChildLost as lost:
            raise self._build_lost(lost) from lost
        reply = built.reply
        self.seconds = reply.seconds | self.seconds
        self._fields["diagnostics"] = reply.diagnostics
        if reply.kernel_hash is not None:
            self._fields["kernel_hash"] = reply.kernel_hash
        if reply.outcome != "built":
            message = reply.message or _headline(reply.diagnostics)
            raise _Verdict(_BUILD_STATUS[reply.outcome], message)
        if built.misfit:
            raise _Verdict(EvaluationStatus.WRONG_SHAPE_OR_DTYPE, built.misfit)
        return built

    def _pool(self) -> Pool:
        try:
            with self.step("inputs"):
                return self._session.pool()
        except InvalidReference as error:
            raise _Verdict(EvaluationStatus.INVALID_REFERENCE, str(error)) from error

    @contextmanager
    def _canary_must_live(self) -> Iterator[None]:
        """A block that needs the canary: where it fails, so does the device."""
        try:
            yield
        except (ChildLost, Failure, WrongResult) as error:
            message = f"a kernel known to be good fails: {error}"
            raise _Verdict(EvaluationStatus.INFRA_ERROR, message) from error

    # ------------------------------------------------------------ verdicts
    def _build_lost(self, lost: ChildLost) -> _Verdict:
        match lost.kind:
            case "server":
                return _Verdict(EvaluationStatus.INFRA_ERROR, lost.detail)
            case "timeout":
                limit = f"not compiled within {self._settings.compile_s:g} s"
                return self._unless_broken(EvaluationStatus.COMPILE_TIMEOUT, limit, rebuild=True)
            case _:
                tail = lost.log.strip().splitlines()[-1:]
                detail = f"the compiler failed: {'; '.join([lost.detail, *tail])}"
                if "MemoryError" in lost.log or "bad_alloc" in lost.log:
                    limit = self._settings.compile_memory_bytes
                    detail = f"compiling takes more than {limit >> 20} MiB of memory"
                return self._unless_broken(EvaluationStatus.COMPILE_ERROR, detail, rebuild=True)

    def _unless_broken(self, status: EvaluationStatus, message: str, rebuild: bool) -> _Verdict:
        """The verdict, unless a kernel known to be good fails in the same way."""
        with self.step("canary"):
            complaint = self._evaluator.canary.complaint(rebuild)
        if complaint is None:
            return _Verdict(status, message)
        return _Verdict(EvaluationStatus.INFRA_ERROR, f"{complaint} (after: {message})")

    def _check_bill(self, built: BuiltKernel) -> None:
        """Over budget before anything runs, where the sum is known."""
        assert built.manifest is not None
        self.launches = built.launches
        items = bill_of(built.manifest, self._evaluator.target)
        memory = next(item for item in items if item.what == "memory")
        self._fields["resources"] = Resources(
            facts=built.manifest.facts,
            memory_bytes=memory.needed,
            memory_limit_bytes=memory.allowed,
            build_seconds=self.seconds["build"],
            budget=items,
        )
        if said := over(items):
            raise _Verdict(EvaluationStatus.OVER_BUDGET, said)

    def _bill_of_run(self, match: Match, candidate: Contestant) -> None:
        """Raises the verdict when more memory was used than is allowed."""
        resources: Resources = self._fields["resources"]
        used = candidate.rss_growth()
        first_us = match.candidate.series.first_call_us
        started = candidate.load_seconds + candidate.bind_seconds
        self._fields["resources"] = resources.model_copy(
            update={
                "peak_rss_bytes": used,
                "first_call_us": first_us,
                "prepack_seconds": candidate.bind_seconds,
                "load_seconds": candidate.load_seconds,
                "first_run_seconds": started + first_us * 1e-6,
            }
        )
        limit = self._evaluator.target.memory_bytes
        if used is not None and used > limit:
            message = f"{used} bytes used at run time, {limit} allowed"
            raise _Verdict(EvaluationStatus.OVER_BUDGET, message)

    def _failed(self, failure: Failure) -> _Verdict:
        match failure.kind:
            case "server":
                return _Verdict(EvaluationStatus.INFRA_ERROR, failure.detail)
            case "memory":
                limit = self._evaluator.target.memory_bytes
                message = f"memory ran out at run time ({limit} bytes allowed): {failure.detail}"
                return _Verdict(EvaluationStatus.OVER_BUDGET, message)
            case "timeout":
                status, message = EvaluationStatus.RUN_TIMEOUT, failure.detail
            case _:
                status, message = EvaluationStatus.CRASHED, failure.detail
        return self._unless_broken(status, message, rebuild=False)

    def _wrong(self, judge: Judge, wrong: WrongResult) -> _Verdict:
        status = EvaluationStatus.WRONG_RESULT
        return _Verdict(status, str(wrong), correctness=judge.correctness())

    def _right(self, match: Match, judge: Judge) -> _Verdict:
        performance = match.performance()
        baselines = match.baseline_results()
        fields: dict[str, Any] = {
            "correctness": judge.correctness(),
            "baselines": baselines,
            "best": match.best(baselines),
        }
        suspicion = match.suspicion(performance)
        if suspicion and (doubt := match.doubt()):
            message = f"{TOO_BUSY}: {suspicion} ({doubt})"
            return _Verdict(EvaluationStatus.INFRA_ERROR, message)
        if suspicion:
            fields["quarantined"] = performance
            return _Verdict(EvaluationStatus.IMPLAUSIBLE, suspicion, **fields)
        fields["performance"] = performance
        return _Verdict(EvaluationStatus.CORRECT, "", **fields)


def _headline(diagnostics: tuple[dict[str, Any], ...]) -> str:
    errors = [d for d in diagnostics if d.get("severity") == "error"]
    if not errors:
        return "refused without a diagnostic"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{errors[0].get('code')}: {errors[0].get('message')}{more}"
