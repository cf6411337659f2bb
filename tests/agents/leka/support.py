"""A task, a device whose times depend on the text alone, and models that follow a script."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from edgekernelbench.agents.base import Budget, Device, Task
from edgekernelbench.agents.model import Message, Scripted
from edgekernelbench.evaluator.attempt import Check
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.ir.check import check_text
from edgekernelbench.records.schema import Spent
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.model import Target
from tests.agents.test_tuner import TARGET
from tests.factories import correct, performance

SOFTMAX = """compute {
  mx[m: M] = max[c: C](x[m, c])
  e[m: M, c: C] = exp(x[m, c] - mx[m])
  s[m: M] = sum[c: C](e[m, c])
  y[m, c] = e[m, c] / s[m]
}"""


def task(workload: str = "softmax_last__02", target: Target = TARGET) -> Task:
    return Task(load_suite().workloads[workload], target)


def pretended_us(text: str) -> float:
    """A time that depends on the text alone."""
    return 100.0 + int.from_bytes(hashlib.sha256(text.encode()).digest()[:2], "big") / 100


@dataclass
class Bench:
    """What is seen on the device. ``time``: of a text; None where it is not correct."""

    evaluations: int
    time: Callable[[str], float | None] = pretended_us
    measured: list[str] = field(default_factory=list)
    checked: int = 0

    def device(self) -> Device:
        return Device(
            self._evaluate, Budget(Spent(evaluations=self.evaluations)), check_kernel=self._check
        )

    def _evaluate(self, text: str) -> Evaluation:
        self.measured.append(text)
        us = self.time(text)
        if us is None:
            return Evaluation(
                status=EvaluationStatus.CRASHED, workload="w", target="llvm", message="no"
            )
        return correct("w", {}, None).model_copy(update={"performance": performance(us)})

    def _check(self, text: str) -> Check:
        self.checked += 1
        program = check_text(text).program
        status = None if program is not None else EvaluationStatus.INVALID_IR
        return Check("ab" * 32, status, "" if program else "invalid", ())


def scripted(answers: Sequence[str]) -> Scripted:
    """One answer after the other, then an empty one again and again."""
    left = list(answers)

    def answer(_messages: Sequence[Message]) -> str:
        return left.pop(0) if left else ""

    return Scripted(answer)


def block(text: str, why: str = "") -> str:
    return f"why: {why}\n```ekir\n{text}\n```\n"
