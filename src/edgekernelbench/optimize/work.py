"""Measures the parts of a model and lets an agent loose on those that take the time."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import Evaluator
from edgekernelbench.evaluator.ahead import build_ahead
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.optimize.figures import PASSING, Figures, figures_of, gain
from edgekernelbench.optimize.journal import Found, Granted, Journal, Measured, Optimised
from edgekernelbench.optimize.request import Hands, Request, Watch
from edgekernelbench.optimize.shares import next_grant, shares_of
from edgekernelbench.optimize.tasks import Tasks
from edgekernelbench.records.read import kept_kernel
from edgekernelbench.records.schema import Record, Step
from edgekernelbench.suite.model import Workload


@dataclass
class Progress:
    """What is known of the parts, read from the journal and added to it.

    Attributes:
        before: figures of the canonical programs.
        budget: evaluations granted by part.
        after: how the agent's work on a part ended.
        found: its best kernel where it has not ended.
    """

    journal: Journal
    before: dict[str, Figures] = field(default_factory=dict)
    budget: dict[str, int] = field(default_factory=dict)
    after: dict[str, Optimised] = field(default_factory=dict)
    found: dict[str, Found] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for event in self.journal.events:
            match event:
                case Measured(part=part, figures=figures):
                    self.before[part] = figures
                case Granted(part=part, evaluations=evaluations):
                    self.budget[part] = evaluations
                case Optimised(part=part):
                    self.after[part] = event
                case Found():
                    self.note(event)

    def note(self, found: Found) -> bool:
        """Takes a kernel for its part's best so far if it is; says whether."""
        known = self.found.get(found.part)
        if known is not None and known.median_us <= found.median_us:
            return False
        self.found[found.part] = found
        return True

    def times(self, tasks: Tasks) -> dict[str, float]:
        """Measured microseconds of a part, times how often the model has it."""
        return {
            part: (figures.median_us or 0.0) * tasks.counts[part]
            for part, figures in self.before.items()
        }

    def times_now(self, tasks: Tasks) -> dict[str, float]:
        """The same with what was gained."""
        times = self.times(tasks)
        for part, done in self.after.items():
            if done.figures is not None and done.figures.correct:
                times[part] /= max(1.0, gain(self.before[part], done.figures))
        return times

    def kernels(self, request: Request, tasks: Tasks) -> dict[str, str]:
        """The best kernel of each part that has a better one than its canonical program."""
        chosen: dict[str, str] = {}
        for part in tasks.parts:
            best = self._best_hash(part)
            text = kept_kernel(request.folder / "runs" / part, best) if best else None
            if text is not None:
                chosen[part] = text
        return chosen

    def _best_hash(self, part: str) -> str | None:
        before = self.before.get(part)
        done, found = self.after.get(part), self.found.get(part)
        if before is None:
            return None
        if done is not None:
            figures = done.figures
            if figures is None or not figures.correct or gain(before, figures) <= 1:
                return None
            return figures.kernel_hash
        if found is None or before.median_us is None or found.median_us >= before.median_us:
            return None
        return found.kernel_hash


# ---------------------------------------------------------------- measuring
def rank(tasks: Tasks, progress: Progress, evaluator: Evaluator, watch: Watch) -> None:
    """Measures every part's canonical program that has not been.

    Raises:
        UsageError: one is not right on the target, so there is nothing to put in its place.
    """
    left = [tasks.parts[part] for part in tasks.parts if part not in progress.before]
    for number, _ in enumerate(build_ahead(evaluator, [as_task(w) for w in left]), 1):
        watch.prepared(number, len(left))
    for number, workload in enumerate(left, 1):
        figures = _measured(workload, evaluator)
        if figures.median_us is None:
            raise UsageError(
                f"{workload.id} ({_nodes(tasks, workload)}): its canonical program is "
                f"{figures.status.value}: {figures.message}",
                "cut the model before and behind it with `onnx.utils.extract_model`, or choose "
                "another target",
            )
        event = Measured(part=workload.id, figures=figures)
        progress.journal.add(event)
        progress.before[workload.id] = figures
        watch.say(f"[{number}/{len(left)}] {workload.id}: {figures.median_us:.1f} us")


def _measured(workload: Workload, evaluator: Evaluator) -> Figures:
    """A canonical program's figures. One that is quarantined for being too fast is right, and what
    it was measured at is good enough to divide a budget by."""
    with evaluator.session(as_task(workload)) as session:
        evaluation = session.evaluate(workload.canonical())
        if evaluation.status in PASSING:
            evaluation = session.evaluate(workload.canonical())
    return figures_of(evaluation)


def _nodes(tasks: Tasks, workload: Workload) -> str:
    part = next(part for part in tasks.dissection.parts if part.id == workload.id)
    return ", ".join(part.nodes[:3])


# ---------------------------------------------------------------- optimising
def optimise_parts(
    request: Request,
    tasks: Tasks,
    progress: Progress,
    evaluator: Evaluator,
    hands: Hands,
    watch: Watch,
) -> None:
    """The agent works on one part after the other until the budget is used."""
    shares = shares_of(progress.times(tasks))
    while (part := _next_part(request, tasks, progress)) is not None:
        count = f"{tasks.counts[part]} x " if tasks.counts[part] > 1 else ""
        watch.say(
            f"{part}: {count}{progress.before[part].median_us:.1f} us, {shares[part]:.1%} of the "
            f"time, {progress.budget[part]} evaluations"
        )
        order = request.order(tasks.parts[part], progress.budget[part])
        records = hands(order, evaluator, _Finds(part, progress, watch))
        event = _ended(part, records[-1])
        progress.journal.add(event)
        progress.after[part] = event


def _next_part(request: Request, tasks: Tasks, progress: Progress) -> str | None:
    """The part that is under way, else the next one with its evaluations granted; None at the
    end."""
    for part in progress.budget:
        if part not in progress.after:
            return part
    now = progress.times_now(tasks)
    waiting = {part: now.pop(part) for part in list(now) if part not in progress.after}
    used = sum(done.evaluations for done in progress.after.values())
    granted = next_grant(request.budget - used, waiting, sum(now.values()))
    if granted is None:
        return None
    part, evaluations = granted
    progress.budget[part] = evaluations
    progress.journal.add(Granted(part=part, evaluations=evaluations))
    return part


def _ended(part: str, record: Record) -> Optimised:
    figures = None if record.evaluation is None else figures_of(record.evaluation)
    message = record.message if figures is None or not figures.correct else ""
    lines = [line for line in message.strip().splitlines() if line.strip()]
    return Optimised(
        part=part,
        evaluations=record.spent.evaluations or 0,
        figures=figures,
        message=lines[-1] if lines else "",
    )


@dataclass
class _Finds:
    """Watches an agent at work on one part and notes each kernel that is its best so far, so that
    an end at any time loses none."""

    part: str
    progress: Progress
    watch: Watch

    def prepared(self, number: int, total: int) -> None:
        """They were built when the parts were measured."""

    def attempt_begins(self, workload: Workload, ended: int, total: int) -> None:
        self.watch.attempt_begins(workload, ended, total)

    def attempt_ends(self, record: Record, resumed: bool) -> None:
        self.watch.attempt_ends(record, resumed)

    def step(self, step: Step) -> None:
        self.watch.step(step)
        right = step.action == "evaluate" and step.status is EvaluationStatus.CORRECT
        if not right or step.kernel_hash is None or step.median_us is None:
            return
        event = Found(part=self.part, kernel_hash=step.kernel_hash, median_us=step.median_us)
        if self.progress.note(event):
            self.progress.journal.add(event)
