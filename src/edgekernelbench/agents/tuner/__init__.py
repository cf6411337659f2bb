"""The agent without a model: searches schedule and memory layers for the canonical program."""

from __future__ import annotations

import random
from typing import Any

from edgekernelbench.agents.base import Answer, Device, Refused, Task
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.records.schema import Step


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
        from edgekernelbench.agents.tuner.choices import Choice
        from edgekernelbench.agents.tuner.search import Search
        from edgekernelbench.agents.tuner.space import build_space
        from edgekernelbench.ir.check import check_text
        from edgekernelbench.ir.printer import print_kernel
        from edgekernelbench.lowering.lower import lower

        checked = check_text(task.workload.canonical())
        if checked.kernel is None or checked.program is None:
            return Answer(None, "the canonical program does not verify")
        program = checked.program
        space = build_space(checked.kernel, program, task.target)

        def legal(state: dict[str, Choice]) -> bool:
            return lower(space.kernel_of(state), program, task.target).module is not None

        def text_of(state: dict[str, Choice]) -> str:
            return print_kernel(space.kernel_of(state))

        search = Search(space, random.Random(seed), legal, text_of)
        best: str | None = None
        message = "the budget is spent"
        for reason, state in search.proposals():
            text = text_of(state)
            result = device.evaluate(text, reason, layer="schedule")
            if isinstance(result, Refused):
                break
            time = None if result.performance is None else result.performance.median_us
            if result.status is EvaluationStatus.CORRECT and search.tell(state, time):
                best = text
                device.note(_kept(device, reason, time, result.kernel_hash))
        else:
            message = "nothing new is left to try"
        return Answer(best, message)


def _kept(device: Device, reason: str, time: float | None, kernel_hash: str | None) -> Step:
    return Step(
        action="keep",
        seconds=round(device.budget.seconds, 3),
        layer="schedule",
        reason=reason,
        median_us=time,
        kernel_hash=kernel_hash,
    )
