"""A task, a device whose times depend on the text alone, and models that follow a script."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from edgekernelbench.agents.base import Budget, Device, Task
from edgekernelbench.agents.model import Message, Scripted
from edgekernelbench.analysis.report import Reported, ReportOptions, report
from edgekernelbench.evaluator.attempt import Check
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.evaluator.stages import NoProfile, StageProfile
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
    profile: Callable[[str], StageProfile | NoProfile] = lambda _text: NoProfile(message="no")
    profiled: list[str] = field(default_factory=list)

    def device(self) -> Device:
        return Device(
            self._evaluate,
            Budget(Spent(evaluations=self.evaluations)),
            check_kernel=self._check,
            report_kernels=self._reports,
            profile_kernel=self._profile,
        )

    def _reports(
        self, kernels: Sequence[str], options: ReportOptions, total: float | None
    ) -> tuple[list[Reported], float]:
        in_time = kernels if total is None or total > 0 else ()
        return [report(text, options) for text in in_time], 0.0

    def _profile(self, text: str) -> StageProfile | NoProfile:
        self.profiled.append(text)
        return self.profile(text)

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
        checked = check_text(text)
        if checked.program is not None:
            return Check("ab" * 32, None, "", ())
        found = tuple(d.as_dict(text) for d in checked.diagnostics)
        return Check("ab" * 32, EvaluationStatus.INVALID_IR, "invalid", found)


def scripted(answers: Sequence[str]) -> Scripted:
    """One answer after the other, then an empty one again and again."""
    left = list(answers)

    def answer(_messages: Sequence[Message]) -> str:
        return left.pop(0) if left else ""

    return Scripted(answer)


def block(text: str, why: str = "") -> str:
    return f"why: {why}\n```ekir\n{text}\n```\n"
