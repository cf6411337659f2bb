"""The kernel of the whole model: joined, judged, and taken back part by part where it fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import Evaluator
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.ir import surface as s
from edgekernelbench.ir.parse import parse
from edgekernelbench.optimize.figures import PASSING, Figures, figures_of, gain
from edgekernelbench.optimize.join import CannotJoin, Piece, joined_text
from edgekernelbench.optimize.tasks import Tasks
from edgekernelbench.suite.model import Workload
from edgekernelbench.targets.model import Target

SLOWER = 0.98
"""Below this gain a kernel counts as slower than another one: less is noise."""


_AGAIN = PASSING | {EvaluationStatus.IMPLAUSIBLE}
"""What is judged a second time: a verdict for which a busy machine may be to blame would throw away
all work before it. (Peaks are measured again before a result is called implausible.)"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel for the whole.

    Attributes:
        kind: ``canonical``, the compiler's import of the whole model; ``parts``, joined of the
            parts' canonical programs; ``joined``, with the agent's kernels in it.
        used: parts whose kernels are the agent's.
        text: None where the pieces cannot be joined.
    """

    kind: str
    used: tuple[str, ...]
    text: str | None
    figures: Figures


@dataclass
class Verdict:
    """What came of the whole.

    Attributes:
        before: what the gain is counted from: the canonical program of the whole, or, where it has
            none, the parts' canonical programs joined.
        chosen: the kernel to be shipped.
        dropped: parts whose kernels are not in it, with the reason.
        notes: what else should be known.
        tried: everything that was judged.
    """

    before: Candidate
    chosen: Candidate
    dropped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    tried: list[Candidate] = field(default_factory=list)


def judge_whole(
    tasks: Tasks,
    kernels: Mapping[str, str],
    times: Mapping[str, float],
    target: Target,
    evaluator: Evaluator,
    say: Callable[[str], None],
) -> Verdict:
    """The fastest right kernel of the whole that the parts' kernels make.

    Args:
        kernels: the agent's kernels by part.
        times: measured time of each part in the model.

    Raises:
        UsageError: nothing that could be shipped is right.
    """
    workload = tasks.whole.workload
    with evaluator.session(as_task(workload)) as session:
        bench = _Bench(tasks, kernels, times, target, session.evaluate, say)
        return _judged(bench)


def _judged(bench: _Bench) -> Verdict:
    canonical = bench.canonical()
    joined = bench.joined(bench.improved) if bench.improved else None
    if canonical is None or not canonical.figures.correct:
        before = bench.joined(())
        if not before.figures.correct:
            raise UsageError(
                f"{bench.name}: no program of the whole model is right on {bench.target.name}: "
                f"{before.figures.status.value}: {before.figures.message}",
                "`ekb suite check` on the model may tell why",
            )
    else:
        before = canonical
    verdict = Verdict(before, before)
    if joined is None:
        parts = bench.joined(())
        verdict.chosen = _faster(before, parts)
    elif _beats(joined, before):
        verdict.chosen = _faster(joined, bench.joined(bench.improved, borders=False))
    else:
        _fall_back(bench, verdict, joined)
    verdict.tried = bench.tried
    return verdict


def _beats(one: Candidate, other: Candidate) -> bool:
    return one.figures.correct and gain(other.figures, one.figures) >= SLOWER


def _faster(one: Candidate, other: Candidate) -> Candidate:
    better = other.figures.correct and gain(one.figures, other.figures) > 1
    return other if better else one


def _fall_back(bench: _Bench, verdict: Verdict, joined: Candidate) -> None:
    """Puts the agent's kernels in one at a time, and leaves out what does harm."""
    told = _told(joined.figures, verdict.before.figures)
    verdict.notes.append(f"with all of the agent's kernels the whole was {told}: tried one by one")
    bench.say(verdict.notes[-1])
    best = bench.joined(())
    if not best.figures.correct:
        verdict.notes.append(
            f"the parts' canonical programs joined are {best.figures.status.value}: "
            f"{best.figures.message}"
        )
        verdict.dropped = dict.fromkeys(bench.improved, "the parts do not make up the whole")
        return
    for part in bench.improved:
        tried = bench.joined((*best.used, part))
        if _beats(tried, best):
            best = tried
        else:
            verdict.dropped[part] = _told(tried.figures, best.figures)
    if gain(verdict.before.figures, best.figures) > 1:
        verdict.chosen = best
    else:
        verdict.notes.append("the canonical program of the whole is faster than all parts joined")
        verdict.dropped |= dict.fromkeys(best.used, "see above")


def _told(figures: Figures, before: Figures) -> str:
    if not figures.correct:
        return f"{figures.status.value} ({figures.message})"
    return f"slower ({gain(before, figures):.2f} times as fast)"


@dataclass
class _Bench:
    """Makes and judges kernels of the whole, each once."""

    tasks: Tasks
    kernels: Mapping[str, str]
    times: Mapping[str, float]
    target: Target
    evaluate: Callable[[str], Evaluation]
    say: Callable[[str], None]
    tried: list[Candidate] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.tasks.whole.workload.id

    @property
    def improved(self) -> tuple[str, ...]:
        """Parts with a kernel of the agent's, those that take most time first."""
        return tuple(sorted(self.kernels, key=lambda part: -self.times.get(part, 0.0)))

    def canonical(self) -> Candidate | None:
        """The compiler's import of the whole; None where there is none."""
        if not self.tasks.whole.canonical:
            return None
        return self._judge("canonical", (), self.tasks.whole.workload.canonical())

    def joined(self, used: tuple[str, ...], borders: bool = True) -> Candidate:
        """The parts joined, with the agent's kernels for those in ``used``."""
        kind = "joined" if used else "parts"
        kind += "" if borders else ", borders open"
        for known in self.tried:
            if (known.kind, set(known.used)) == (kind, set(used)):
                return known
        try:
            text = joined_text(self._header(), self._pieces(used), self.target, borders)
        except CannotJoin as error:
            part = self.tasks.dissection.instances[error.piece].part
            return self._noted(Candidate(kind, used, None, _unjoined(part, error)))
        return self._judge(kind, used, text)

    def _judge(self, kind: str, used: tuple[str, ...], text: str) -> Candidate:
        figures = figures_of(self.evaluate(text))
        if figures.status in _AGAIN:
            figures = figures_of(self.evaluate(text))
        told = figures.status.value if figures.median_us is None else f"{figures.median_us:.1f} us"
        count = f", {len(used)} parts improved" if used else ""
        self.say(f"the whole, {kind}{count}: {told}")
        return self._noted(Candidate(kind, used, text, figures))

    def _noted(self, candidate: Candidate) -> Candidate:
        self.tried.append(candidate)
        return candidate

    def _header(self) -> s.Kernel:
        return header_of(self.tasks.whole.workload)

    def _pieces(self, used: tuple[str, ...]) -> list[Piece]:
        kernels = {part: self._kernel(part, used) for part in self.tasks.parts}
        counts = self.tasks.counts
        return [
            Piece(
                kernels[instance.part],
                instance.tensors,
                self.times.get(instance.part, 0.0) / counts[instance.part],
            )
            for instance in self.tasks.dissection.instances
        ]

    def _kernel(self, part: str, used: tuple[str, ...]) -> s.Kernel:
        text = self.kernels[part] if part in used else self.tasks.parts[part].canonical()
        kernel = parse(text).kernel
        assert kernel is not None, "it was evaluated before"
        return kernel


def _unjoined(part: str, error: CannotJoin) -> Figures:
    return Figures(status=EvaluationStatus.INVALID_IR, message=f"{part}: {error}")


def header_of(workload: Workload) -> s.Kernel:
    """A kernel with the workload's header; what it computes means nothing."""
    output = workload.output_specs[0].name
    kernel = parse(f"{workload.header()} {{ compute {{ {output} = 0 }} }}").kernel
    assert kernel is not None, "checked when the task was made"
    return kernel
