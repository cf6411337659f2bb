"""The mixture for the screen: the same for a seed, of all kinds, and judged by the device alone."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from benchmarks.screen import SLOW, Kept, Seen, faults, judged, mixture, summary, table
from edgekernelbench.analysis.report import report
from edgekernelbench.evaluator.attempt import Check
from edgekernelbench.evaluator.model import Correctness, Evaluation, EvaluationStatus
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.lowering.lower import lower
from edgekernelbench.suite import Workload, load_suite
from tests.agents.test_tuner import TARGET
from tests.factories import correct, performance

TASKS = tuple(load_suite().workloads[name] for name in ("softmax_last__02", "matmul_nt__01"))
WORKLOAD = TASKS[0]
DRAW = 77
"""A seed that the screen does not use."""


class Bench:
    """Builds for real; judges by a draw of its own; takes a text without vectors for slow."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def check(self, _workload: Workload, text: str) -> Check:
        self.done.append("check")
        return self._built(text)

    def _built(self, text: str) -> Check:
        checked = check_text(text)
        found = checked.diagnostics
        if checked.program is not None and checked.kernel is not None:
            found += lower(checked.kernel, checked.program, TARGET).diagnostics
        errors = tuple(d.as_dict(text) for d in found if d.severity == "error")
        status = EvaluationStatus.INVALID_IR if errors else None
        return Check("ab" * 32, status, "no" if errors else "", errors)

    def hold(self) -> Any:
        return nullcontext(0.0)

    def reports(self, texts: Any, options: Any, _total: Any) -> Any:
        return [report(text, options) for text in texts], 0.0

    def evaluate(self, workload: Workload, text: str) -> Evaluation:
        self.done.append("evaluate")
        status = self._built(text).status
        if status is None and not self._right(workload.small(), text):
            wrong = Correctness(
                passed=False,
                checked_samples=1,
                checked_sets=1,
                tolerance=workload.tolerance,
                tolerance_version=1,
            )
            told = EvaluationStatus.WRONG_RESULT
            return Evaluation(
                status=told, workload="w", target="llvm", correctness=wrong, message="no"
            )
        if status is not None:
            return Evaluation(status=status, workload="w", target="llvm", message="no")
        us = 10.0 if "vectorize" in text else 10.0 * SLOW
        return correct("w", {}, None).model_copy(update={"performance": performance(us)})

    def _right(self, small: Workload, text: str) -> bool:
        program = check_text(text, small.bindings).program
        assert program is not None
        inputs = small.inputs(DRAW)
        outputs = interpret(program, inputs, "declared")
        return small.compare(outputs, small.truth(inputs, cache=False)).passed


def test_the_mixture_is_fixed_by_its_seed_and_has_all_kinds() -> None:
    first = mixture(WORKLOAD, TARGET, 3, 0)
    assert first == mixture(WORKLOAD, TARGET, 3, 0) != mixture(WORKLOAD, TARGET, 3, 1)
    counts = {kind: sum(one.meant == kind for one in first) for kind in ("good", "slow", "wrong")}
    assert counts == {"good": 3, "slow": 3, "wrong": 3} and len(first) == 12


@pytest.mark.parametrize("workload", TASKS, ids=lambda task: task.id)
def test_what_a_patch_is_the_device_decides_and_screening_leaves_it_alone(
    workload: Workload,
) -> None:
    bench: Any = Bench()
    seen = judged(workload, TARGET, bench, mixture(workload, TARGET, 3, 0))
    assert {row.kind for row in seen if row.meant == "illegal"} == {"illegal"}
    assert all(row.stopped for row in seen if row.kind == "illegal")
    assert all(row.stopped for row in seen if row.kind == "wrong")
    assert sum(row.kind == "wrong" for row in seen) >= 2
    assert {row.kind for row in seen if row.meant == "good"} <= {"good", "slow"}
    assert min(row.us for row in seen if row.us is not None) == 10.0
    # All are screened before the first is evaluated.
    assert "evaluate" not in bench.done[: bench.done.index("evaluate")]
    assert "check" not in bench.done[bench.done.index("evaluate") :]


def test_it_goes_on_with_the_tasks_that_are_left(tmp_path: Path) -> None:
    path, mixed = tmp_path / "new" / "screen.jsonl", {"seed": 0, "each": 1}
    rows = [Seen("wrong", "wrong", True, "no"), Seen("slow", "good", False, "", 3.0)]
    first = Kept(path, mixed)
    first.add("a", rows)
    first.add("b", rows[:1])
    whole = path.read_text()
    path.write_text(whole + whole[:20])  # ended while it wrote
    again = Kept(path, mixed)
    assert again.rows == {"a": rows, "b": rows[:1]} and path.read_text() == whole
    with pytest.raises(SystemExit, match="another mixture"):
        Kept(path, {"seed": 1, "each": 1})


@pytest.mark.parametrize(("stopped", "through"), [(True, "stopped"), (False, "through")])
def test_what_goes_through_is_told(stopped: bool, through: str) -> None:
    rows = [Seen("wrong", "wrong", stopped, "", what="x"), Seen("slow", "good", stopped, "", 3.0)]
    (found,) = faults({"w": rows})
    assert found.startswith(through)
    assert summary(rows)["wrong"] == {"patches": 1, "stopped": int(stopped)}
    share = "100.0%" if stopped else "0.0%"
    lines = [line.split() for line in table({"w": rows}).splitlines()]
    assert ["wrong", "1", str(int(stopped)), share] in lines
