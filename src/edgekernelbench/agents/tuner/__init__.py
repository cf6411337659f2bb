"""The agent without a model: searches schedule and memory layers for the canonical program."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from edgekernelbench.agents.base import Answer, Device, Refused, Task
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.records.schema import Step
from edgekernelbench.targets.model import Target

if TYPE_CHECKING:
    from edgekernelbench.agents.tuner.choices import Choice


class Tuner:
    """Guesses by rules, screens by lowering (free), measures under the budget, keeps the best.

    The compute layer is the canonical one and never changes.
    """

    name = "tuner"
    needs_canonical = True

    @property
    def options(self) -> dict[str, Any]:
        return {"version": 1}

    def attempt(self, task: Task, device: Device, seed: int) -> Answer:
        from edgekernelbench.ir.check import check_text

        text = task.workload.canonical()
        if check_text(text).program is None:
            return Answer(None, "the canonical program does not verify")
        tuning = Tuning(text, task.target, seed)
        for reason, result in tuning.run(device):
            if tuning.improved:
                time = None if result.performance is None else result.performance.median_us
                device.note(_kept(device, reason, time, result.kernel_hash))
        return Answer(tuning.best, tuning.message)


class Moves:
    """Kernels to be measured one after the other; which comes next depends on how those before it
    did, so `tell` is called after each.

    Args:
        text: a kernel that verifies; its compute layer stays as it is.
    """

    def __init__(self, text: str, target: Target, seed: int) -> None:
        from edgekernelbench.agents.tuner.search import Search
        from edgekernelbench.agents.tuner.space import build_space
        from edgekernelbench.ir.check import check_text
        from edgekernelbench.lowering.lower import lower

        checked = check_text(text)
        assert checked.kernel is not None and checked.program is not None
        program = checked.program
        self._space = space = build_space(checked.kernel, program, target)

        def legal(state: dict[str, Choice]) -> bool:
            return lower(space.kernel_of(state), program, target).module is not None

        self._search = Search(space, random.Random(seed), legal, self._text)
        self._state: dict[str, Choice] = {}

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yields why a kernel is tried, and its text."""
        for reason, state in self._search.proposals():
            self._state = state
            yield reason, self._text(state)

    def tell(self, us: float | None) -> bool:
        """Hears how the last one did (None: not correct); says whether it is the best so far."""
        return self._search.tell(self._state, us)

    def _text(self, state: dict[str, Choice]) -> str:
        from edgekernelbench.ir.printer import print_kernel

        return print_kernel(self._space.kernel_of(state))


class Tuning:
    """One search over the layers of a kernel text that verifies.

    Attributes:
        best: the fastest correct text so far; where the target supports none, one that says so.
        improved: whether the last evaluation was the best so far.
        message: why the search ended.
    """

    def __init__(self, text: str, target: Target, seed: int) -> None:
        self._moves = Moves(text, target, seed)
        self.best: str | None = None
        self.improved = False
        self.message = ""

    def run(self, device: Device) -> Iterator[tuple[str, Evaluation]]:
        """Yields why each candidate was tried and how it did, until the budget is spent."""
        for reason, text in self._moves:
            result = device.evaluate(text, reason, layer="schedule")
            if isinstance(result, Refused):
                self.message = "the budget is spent"
                return
            time = None if result.performance is None else result.performance.median_us
            correct = result.status is EvaluationStatus.CORRECT
            self.improved = self._moves.tell(time if correct else None)
            if self.improved:
                self.best = text
            yield reason, result
            if result.status is EvaluationStatus.UNSUPPORTED:
                self.best, self.message = text, result.message
                return
        self.message = "nothing new is left to try"


def _kept(device: Device, reason: str, time: float | None, kernel_hash: str | None) -> Step:
    return Step(
        action="keep",
        seconds=round(device.budget.seconds, 3),
        layer="schedule",
        reason=reason,
        median_us=time,
        kernel_hash=kernel_hash,
    )
