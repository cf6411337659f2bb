"""What an agent is: it turns a task into a kernel, and reaches the device only through a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

from edgekernelbench.analysis.report import Reported, ReportOptions
from edgekernelbench.evaluator.attempt import Check
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.evaluator.room import NoRoom
from edgekernelbench.evaluator.stages import NoProfile, StageProfile
from edgekernelbench.records.read import text_key
from edgekernelbench.records.schema import Spent, Step
from edgekernelbench.suite.model import Workload
from edgekernelbench.targets.model import Target


@dataclass(frozen=True, slots=True)
class Task:
    """A workload to be made fast on a target."""

    workload: Workload
    target: Target


@dataclass(frozen=True, slots=True)
class Refused:
    """An evaluation that did not happen because the budget is spent. Says what to do instead."""

    message: str


class Budget:
    """Counts what one attempt uses. The same object serves every agent.

    Args:
        limits: None in a field means "not limited".
        clock: seconds, monotonic; the attempt begins now.
    """

    def __init__(self, limits: Spent, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._clock = clock
        self._began = clock()
        self._waited = 0.0
        self._evaluations = 0
        self._tokens = 0
        self._cost: float | None = None
        self._cost_unknown = False

    @property
    def seconds(self) -> float:
        """Since the attempt began, without the time spent waiting for the device."""
        return self._clock() - self._began - self._waited

    @property
    def spent(self) -> Spent:
        return Spent(
            evaluations=self._evaluations,
            tokens=self._tokens,
            seconds=round(self.seconds, 3),
            cost=self._cost,
        )

    @property
    def evaluations_left(self) -> int | None:
        if self.limits.evaluations is None:
            return None
        return max(0, self.limits.evaluations - self._evaluations)

    def exhausted(self) -> str | None:
        """Which limit is reached, as a sentence, or None."""
        if self.evaluations_left == 0:
            return f"all {self.limits.evaluations} evaluations are used"
        return self.all_spent()

    def all_spent(self) -> str | None:
        """The same without the evaluations: at one of these limits nothing at all goes on."""
        limits = self.limits
        if limits.tokens is not None and self._tokens >= limits.tokens:
            return f"all {limits.tokens} tokens are used"
        if limits.cost is not None and (self._cost or 0.0) >= limits.cost:
            return f"the {limits.cost:g} dollars of this attempt are spent"
        if limits.cost is not None and self._cost_unknown:
            return f"what an answer costs is not told, so {limits.cost:g} dollars are no limit"
        if limits.seconds is not None and self.seconds >= limits.seconds:
            return f"the {limits.seconds:g} s of this attempt are over"
        return None

    def charge(self, evaluations: int = 0, tokens: int = 0, cost: float | None = None) -> None:
        """Adds to what is used; ``cost`` is in US dollars, None where nobody knows it."""
        self._evaluations += evaluations
        self._tokens += tokens
        if cost is not None:
            self._cost = (self._cost or 0.0) + cost
        elif tokens:
            self._cost_unknown = True

    def pardon_wait(self, seconds: float) -> None:
        """Takes time that passed waiting for the device off the clock."""
        self._waited += seconds


ReportKernels = Callable[[Sequence[str], ReportOptions, float | None], tuple[list[Reported], float]]
"""Reports on kernel texts, and the seconds spent waiting for the device."""


def _nobody_else() -> AbstractContextManager[float]:
    return nullcontext(0.0)


@dataclass(slots=True)
class Device:
    """An agent's only way to the hardware: evaluates kernels of one task and counts each one.

    The trajectory grows with every evaluation, so that it exists however an attempt ends.
    ``epoch``: the number of the attempt at its task, from 0 on. ``broken``: something of the
    harness raised, for which no agent can be blamed. ``refused``: it had no room on the
    disk, which an agent may have filled. ``best``: the fastest correct kernel of all that were
    evaluated, and its time in microseconds. ``hold``: keeps others from measuring, and
    says for how many seconds one had to wait for that.
    """

    evaluate_kernel: Callable[[str], Evaluation]
    budget: Budget
    keep_kernel: Callable[[str, str], None] = lambda _hash, _text: None
    check_kernel: Callable[[str], Check] | None = None
    report_kernels: ReportKernels | None = None
    profile_kernel: Callable[[str], StageProfile | NoProfile] | None = None
    hold: Callable[[], AbstractContextManager[float]] = _nobody_else
    keep_text: Callable[[str], str] = text_key
    trajectory: list[Step] = field(default_factory=list)
    on_step: Callable[[Step], None] = lambda _step: None
    epoch: int = 0
    broken: bool = False
    refused: bool = False
    best: tuple[str, float] | None = None

    @property
    def led(self) -> bool:
        """Whether a model has had the word: what happens from then on may be its doing."""
        return any(step.action == "ask" for step in self.trajectory)

    @contextmanager
    def _ours(self) -> Iterator[None]:
        try:
            yield
        except NoRoom:
            self.refused = True
            raise
        except BaseException:
            self.broken = True
            raise

    def evaluate(
        self,
        kernel: str,
        reason: str = "",
        layer: Any = None,
        patch: str | None = None,
        before_us: float | None = None,
    ) -> Evaluation | Refused:
        """Measures a kernel text; every call is charged, whatever its outcome.

        Args:
            reason, layer, patch, before_us: for the trajectory, see `Step`; ``patch`` is the text
                itself here.
        """
        spent = self.budget.exhausted()
        if spent is not None:
            return Refused(f"{spent}; answer with the best kernel so far")
        self.budget.charge(evaluations=1)
        with self._ours():
            evaluation = self.evaluate_kernel(kernel)
        self.budget.pardon_wait(evaluation.lock_wait_seconds)
        if evaluation.kernel_hash is not None:
            self.keep_kernel(evaluation.kernel_hash, kernel)
        performance = evaluation.performance
        if performance is not None and (self.best is None or performance.median_us < self.best[1]):
            self.best = kernel, performance.median_us
        self.note(
            Step(
                action="evaluate",
                seconds=round(self.budget.seconds, 3),
                layer=layer,
                reason=_with_message(reason, evaluation.message),
                status=evaluation.status,
                median_us=None if performance is None else performance.median_us,
                kernel_hash=evaluation.kernel_hash,
                patch=None if patch is None else self.keep_text(patch),
                before_us=before_us,
            )
        )
        return evaluation

    def check(self, kernel: str, layer: Any = None) -> Check:
        """What is wrong with a kernel without running it; no evaluation, but time, and a step of
        the trajectory."""
        assert self.check_kernel is not None, "this device does not check"
        with self._ours():
            check = self.check_kernel(kernel)
        self.budget.pardon_wait(check.lock_wait_seconds)
        step = Step(
            action="check",
            seconds=round(self.budget.seconds, 3),
            layer=layer,
            reason=check.message,
            status=check.status,
            kernel_hash=check.kernel_hash,
        )
        self.note(step)
        return check

    def reports(
        self, kernels: Sequence[str], options: ReportOptions, total: float | None = None
    ) -> list[Reported]:
        """What is known of kernels without compiling them; costs no evaluation. There are fewer
        reports where ``total`` seconds are over before."""
        assert self.report_kernels is not None, "this device does not report"
        with self._ours():
            found, waited = self.report_kernels(kernels, options, total)
        self.budget.pardon_wait(waited)
        return found

    @contextmanager
    def still(self) -> Iterator[None]:
        """While nobody measures: for what takes an agent's own process more than a moment of a
        processor, which would make the kernels of other attempts look slow. The wait is not its.
        Nothing else of the device may be asked for inside."""
        with ExitStack() as stack:
            with self._ours():
                waited = stack.enter_context(self.hold())
            self.budget.pardon_wait(waited)
            yield

    def profile(self, kernel: str) -> StageProfile | NoProfile | Refused:
        """Times a kernel's nests; charged as an evaluation, since it takes the device as long."""
        spent = self.budget.exhausted()
        if spent is not None:
            return Refused(f"{spent}; answer with the best kernel so far")
        assert self.profile_kernel is not None, "this device does not profile"
        self.budget.charge(evaluations=1)
        with self._ours():
            found = self.profile_kernel(kernel)
        self.budget.pardon_wait(found.lock_wait_seconds)
        self.note(
            Step(
                action="profile",
                seconds=round(self.budget.seconds, 3),
                reason=found.message if isinstance(found, NoProfile) else _shares(found),
                median_us=None if isinstance(found, NoProfile) else found.whole_us,
            )
        )
        return found

    def note(self, step: Step) -> None:
        """Adds a decision to the trajectory."""
        self.trajectory.append(step)
        self.on_step(step)


def _with_message(reason: str, message: str) -> str:
    """What is recorded of an evaluation that failed: the agent's reason, then the verdict's."""
    short = message if len(message) <= _MESSAGE else f"{message[:_MESSAGE]}..."
    return ": ".join(filter(None, (reason, short)))


_MESSAGE = 300


def _shares(profile: StageProfile) -> str:
    ordered = sorted(profile.parts, key=lambda part: -part.share)
    shares = ", ".join(f"{part.label} {part.share:.0%}" for part in ordered[:_PARTS])
    return f"{shares}; the instrumented build takes {profile.overhead:.2f} times as long"


_PARTS = 6


@dataclass(frozen=True, slots=True)
class Answer:
    """How an attempt ended: the kept kernel's text, or None and why there is none.

    Attributes:
        status: why there is none, where that has a status of its own (`UNPARSEABLE`,
            `PROVIDER_ERROR`); ``no_kernel`` else.
    """

    kernel: str | None
    message: str = ""
    status: EvaluationStatus = EvaluationStatus.NO_KERNEL


class Agent(Protocol):
    """One way to find a kernel. ``options`` are all that decides its behaviour beside the seed.

    ``needs_canonical``: it starts from the canonical program; tasks without one are not given to
    it, and end as ``no_kernel``.
    """

    name: str
    needs_canonical: bool

    @property
    def options(self) -> dict[str, Any]: ...

    def attempt(self, task: Task, device: Device, seed: int) -> Answer:
        """Works on a task until it is content or the budget is spent. Never raises for a kernel
        that fails, for a model's bad answer, or for a spent budget."""
        ...
