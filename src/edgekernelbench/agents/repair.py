"""A model that sees what came of its kernels and writes them anew, as long as the budget lasts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from edgekernelbench.agents.answers import extract_kernel
from edgekernelbench.agents.base import Answer, Device, Refused, Task
from edgekernelbench.agents.direct import kernel_name, no_kernel_in
from edgekernelbench.agents.model import Message, Model, Reply
from edgekernelbench.agents.prompts import budget_text, first_prompt, prompt_version, render
from edgekernelbench.agents.talk import Talk
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.records.schema import Step

_KEPT_TURNS = 4
"""Exchanges that a prompt repeats, the last ones; the best kernel is told beside them."""


@dataclass(frozen=True, slots=True)
class _Best:
    kernel: str
    us: float
    asked: int


class RepairAgent:
    """Diagnostics and measured results go back to the model.

    A kernel that cannot even be built costs a question and no evaluation.

    Args:
        model: answers.
        turns: questions at most; None leaves the end to the budget.
    """

    name = "repair"
    needs_canonical = False

    def __init__(self, model: Model, turns: int | None = 16) -> None:
        self._model = model
        self._turns = turns

    @property
    def options(self) -> dict[str, Any]:
        return {"prompt": prompt_version(), "turns": self._turns}

    def attempt(self, task: Task, device: Device, seed: int) -> Answer:
        """See `Agent.attempt`."""
        return _Attempt(self._model, task, device).run(self._turns)


class _Attempt:
    def __init__(self, model: Model, task: Task, device: Device) -> None:
        self._task = task
        self._device = device
        self._talk = Talk(model, device)
        self._best: _Best | None = None
        self._last: tuple[str | None, str] = (None, "")
        self._history: list[Message] = []
        self._asked = 0

    def run(self, turns: int | None) -> Answer:
        beginning = first_prompt(self._task, self._device.budget)
        while turns is None or self._asked < turns:
            reason = f"question {self._asked + 1}"
            reply = self._talk.ask([*beginning, *self._history[-2 * _KEPT_TURNS :]], reason)
            if isinstance(reply, Refused):
                return self._answer(reply.message)
            self._asked += 1
            feedback = self._judge(reply)
            spent = self._device.budget.exhausted()
            if spent is not None:
                return self._answer(spent)
            self._history += [Message("assistant", reply.text), Message("user", feedback)]
        return self._answer(f"all {turns} questions are asked")

    def _answer(self, why: str) -> Answer:
        self._note("stop", f"{why}; {self._asked} questions")
        if self._best is not None:
            return Answer(self._best.kernel, why)
        kernel, fault = self._last
        if kernel is None and fault:
            return Answer(None, fault, EvaluationStatus.UNPARSEABLE)
        return Answer(kernel, why)

    def _judge(self, reply: Reply) -> str:
        """What is said of an answer."""
        found = extract_kernel(reply.text, kernel_name(self._task))
        if found is None:
            self._last = (self._last[0], no_kernel_in(reply))
            self._note("check", self._last[1], status=EvaluationStatus.UNPARSEABLE)
            return self._feedback(extracted=False)
        self._last = (found.text, "")
        check = self._device.check(found.text)
        if check.status is not None:
            told = diagnostics_text(check.diagnostics) or check.message
            return self._feedback(diagnostics=told)
        before = None if self._best is None else self._best.us
        reason = f"answer {self._asked}"
        result = self._device.evaluate(found.text, reason, before_us=before)
        if isinstance(result, Refused):
            return result.message
        if result.performance is None:
            return self._feedback(status=result.status.value, message=result.message)
        us = result.performance.median_us
        if self._best is None or us < self._best.us:
            self._best = _Best(found.text, us, self._asked)
            self._note("keep", reason, median_us=us, kernel_hash=result.kernel_hash)
        return self._measured(result)

    def _note(self, action: str, reason: str, **facts: Any) -> None:
        seconds = round(self._device.budget.seconds, 3)
        self._device.note(Step(action=action, seconds=seconds, reason=reason, **facts))

    def _measured(self, result: Evaluation) -> str:
        performance = result.performance
        assert performance is not None
        return self._feedback(
            correct=True,
            median_us=f"{performance.median_us:.4g}",
            low_us=f"{performance.low_us:.4g}",
            high_us=f"{performance.high_us:.4g}",
            speedups=tuple(speedup_lines(result)),
        )

    def _feedback(self, **values: Any) -> str:
        budget, best = budget_text(self._device.budget), self._best
        given = {
            "extracted": True,
            "diagnostics": "",
            "correct": False,
            "status": "",
            "message": "",
        }
        forgotten = best is not None and best.asked <= self._asked - _KEPT_TURNS
        return render(
            "feedback.md.j2",
            best_us=None if best is None else f"{best.us:.4g}",
            best_kernel=best.kernel if best is not None and forgotten else "",
            left=f"Left: {budget}" if budget else "Go on",
            **{**given, **values},
        )


def speedup_lines(result: Evaluation) -> Iterable[str]:
    """How a correct kernel compares with each baseline, as a model reads it."""
    for name, baseline in result.baselines.items():
        if baseline.speedup is not None:
            mark = ", the one to beat" if name == result.best else ""
            yield f"- {baseline.speedup:.2f} times as fast as {name}{mark}."


def diagnostics_text(diagnostics: Iterable[Mapping[str, Any]], most: int = 12) -> str:
    """Errors as a model reads them: place, excerpt, rule and way out of each."""
    found = [str(d["rendered"]) for d in diagnostics if d.get("severity") == "error"]
    rest = [f"... and {len(found) - most} more"] if len(found) > most else []
    return "\n\n".join([*found[:most], *rest])
