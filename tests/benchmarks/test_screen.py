"""The mixture for the screen: the same for a seed, of all kinds, and judged by the device alone."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.screen import SLOW, Seen, judged, mixture, summary, told
from edgekernelbench.analysis.report import report
from edgekernelbench.evaluator.attempt import Check
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.ir.check import check_text
from edgekernelbench.lowering.lower import lower
from edgekernelbench.suite import load_suite
from tests.agents.test_tuner import TARGET
from tests.factories import correct, performance

WORKLOAD = load_suite().workloads["softmax_last__02"]


class Bench:
    """Builds for real; takes a text without vectors for slow, another compute layer for wrong."""

    def check(self, _workload: Any, text: str) -> Check:
        checked = check_text(text)
        found = checked.diagnostics
        if checked.program is not None and checked.kernel is not None:
            found += lower(checked.kernel, checked.program, TARGET).diagnostics
        errors = tuple(d.as_dict(text) for d in found if d.severity == "error")
        status = EvaluationStatus.INVALID_IR if errors else None
        return Check("ab" * 32, status, "no" if errors else "", errors)

    def reports(self, texts: Any, options: Any, _total: Any) -> Any:
        return [report(text, options) for text in texts], 0.0

    def evaluate(self, workload: Any, text: str) -> Evaluation:
        status = self.check(workload, text).status
        if status is None and WORKLOAD.canonical().partition("{")[2].split("}")[0] not in text:
            status = EvaluationStatus.CRASHED
        if status is not None:
            return Evaluation(status=status, workload="w", target="llvm", message="no")
        us = 10.0 if "vectorize" in text else 10.0 * SLOW
        return correct("w", {}, None).model_copy(update={"performance": performance(us)})


def test_the_mixture_is_fixed_by_its_seed_and_has_all_kinds() -> None:
    first = mixture(WORKLOAD, TARGET, 3, 0)
    assert first == mixture(WORKLOAD, TARGET, 3, 0) != mixture(WORKLOAD, TARGET, 3, 1)
    counts = {kind: sum(one.meant == kind for one in first) for kind in ("good", "slow", "wrong")}
    assert counts == {"good": 3, "slow": 3, "wrong": 3} and len(first) == 12


def test_what_a_patch_is_the_device_decides() -> None:
    bench: Any = Bench()
    seen = judged(WORKLOAD, TARGET, bench, mixture(WORKLOAD, TARGET, 3, 0))
    assert {row.kind for row in seen if row.meant == "illegal"} == {"illegal"}
    assert all(row.stopped for row in seen if row.kind == "illegal")
    assert all(row.stopped for row in seen if row.meant == "wrong")
    assert {row.kind for row in seen if row.meant == "good"} <= {"good", "slow"}
    assert min(row.us for row in seen if row.us is not None) == 10.0


@pytest.mark.parametrize(("stopped", "through"), [(True, 0), (False, 1)])
def test_what_goes_through_is_told(stopped: bool, through: int) -> None:
    rows = [Seen("wrong", "wrong", stopped, ""), Seen("slow", "good", stopped, "", 3.0)]
    result = told({"w": rows})
    assert len(result["through"]) == through and len(result["good_ones_stopped"]) == 1 - through
    assert summary(rows)["wrong"] == {"patches": 1, "stopped": int(stopped)}
