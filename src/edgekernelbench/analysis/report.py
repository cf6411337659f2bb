"""The static report of a kernel text, made in a limited process: texts of others decide how long it
takes to check, lower and look at them.

The child checks each text, lowers it and puts together what is known of it; its answers come one
after another, so that those before a hopeless text are not lost.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from edgekernelbench.analysis.estimate import Estimate, estimate
from edgekernelbench.analysis.explain import Explanation, explain
from edgekernelbench.evaluator import wire
from edgekernelbench.evaluator.worker import ChildLost
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.diagnostics import Diagnostic, render
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.peaks import Peaks

if TYPE_CHECKING:
    from edgekernelbench.evaluator.building import Builder

SECONDS = 20.0
"""That the report of one text may take."""

_ENTRY = "edgekernelbench.analysis.report:serve"
_SHOWN = 6


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ReportOptions(_Message):
    """What is wanted of each text.

    Attributes:
        whole: the explanation, too, and not the estimate alone.
        also_at: sizes at which the text is checked as well, so that whoever does so afterwards
            knows that it takes no longer than that. What comes of it is not told.
    """

    target: Target
    peaks: Peaks | None = None
    whole: bool = True
    also_at: dict[str, int | float] | None = None


class StaticReport(_Message):
    """``guess`` is None for GPUs, ``explanation`` where it was not wanted."""

    guess: Estimate | None = None
    explanation: Explanation | None = None


class NoReport(_Message):
    """Why there is none, as the author of the text reads it."""

    told: str


Reported = StaticReport | NoReport


class _Job(_Message):
    options: ReportOptions
    texts: tuple[str, ...]


class _Reply(_Message):
    """One of the two is given."""

    report: StaticReport | None = None
    refused: NoReport | None = None


def report(text: str, options: ReportOptions) -> Reported:
    """Looks at a text, in this process; holes count as their first choices."""
    if options.also_at is not None:
        check_text(text, options.also_at)
    checked = check_text(text)
    if checked.program is None or checked.kernel is None:
        return NoReport(told=told(checked.diagnostics, text))
    target = options.target
    lowered = lower(checked.kernel, checked.program, target)
    if lowered.module is None:
        return NoReport(told=told(lowered.diagnostics, text))
    on_cpu = target.gpu is None
    guess = estimate(lowered.module, target, options.peaks) if on_cpu else None
    if not options.whole:
        return StaticReport(guess=guess)
    explanation = explain(checked.program, lowered.module, target, options.peaks)
    return StaticReport(guess=guess, explanation=explanation)


def told(diagnostics: Sequence[Diagnostic], text: str, most: int = _SHOWN) -> str:
    """Errors as an author reads them."""
    errors = [d for d in diagnostics if d.severity == "error"]
    shown = [render(d, text, "kernel") for d in errors[:most]]
    more = [f"... and {len(errors) - most} more"] if len(errors) > most else []
    return "\n\n".join([*shown, *more])


def serve(connection: socket.socket, payload: dict[str, Any], fds: list[int]) -> None:
    """The child's entry: payload is a job; a reply for each of its texts."""
    job = _Job.model_validate(payload)
    for text in job.texts:
        found = report(text, job.options)
        reply = _Reply(
            report=found if isinstance(found, StaticReport) else None,
            refused=found if isinstance(found, NoReport) else None,
        )
        wire.send(connection, reply.model_dump(mode="json"))


@dataclass(frozen=True, slots=True)
class Reporter:
    """Has reports made in limited children. ``seconds``: for one text."""

    builder: Builder
    seconds: float = SECONDS

    def reports(
        self, texts: Sequence[str], options: ReportOptions, total: float | None = None
    ) -> list[Reported]:
        """A report for each text; there are fewer where ``total`` seconds are over before.

        Raises:
            ChildLost: its server was lost twice, which says nothing of the texts.
        """
        found: list[Reported] = []
        try:
            self._add(found, texts, options, total)
        except ChildLost as lost:
            if not lost.with_server:
                raise
            self._add(found, texts[len(found) :], options, total)
        return found

    def _add(
        self,
        found: list[Reported],
        texts: Sequence[str],
        options: ReportOptions,
        total: float | None,
    ) -> None:
        """Reports on texts, one after another; what was found stays when the server is lost."""
        job = _Job(options=options, texts=tuple(texts)).model_dump(mode="json")
        replies = self.builder.stream(_ENTRY, job, _Reply, len(texts), self.seconds, total)
        try:
            for one in _reported(replies):
                found.append(one)
        except ChildLost as lost:
            if lost.with_server:
                raise
            if total is None or lost.kind != "timeout":
                found.append(NoReport(told=self._why(lost)))

    def _why(self, lost: ChildLost) -> str:
        if lost.kind == "timeout":
            limit = f"{self.seconds:g} s"
            return f"checking and lowering takes more than {limit}: write less, or unroll less"
        return f"checking and lowering fails: {lost.detail}"


def _reported(replies: Iterator[_Reply]) -> Iterator[Reported]:
    for reply in replies:
        found = reply.report or reply.refused
        if found is None:
            raise ChildLost("bad_reply", "an answer out of form")
        yield found
