"""Of the kernels of a whole model the fastest right one is chosen, and it is said what was not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.ir.check import check_text
from edgekernelbench.optimize import whole
from edgekernelbench.optimize.figures import Figures, gain
from edgekernelbench.optimize.parts import dissect, make_tasks
from edgekernelbench.optimize.tasks import Tasks
from edgekernelbench.optimize.whole import Verdict, _Bench, _judged
from edgekernelbench.suite.own import store
from edgekernelbench.suite.own.add import add
from edgekernelbench.targets.host import host_target
from tests.optimize.graphs import Net
from tests.suite.own.models import save

Judge = Callable[[str], Figures]

_FIRST, _SECOND = "parts__matmul_01", "parts__softmax_02"


def _figures(us: float, right: bool = True) -> Figures:
    if not right:
        return Figures(status=EvaluationStatus.WRONG_RESULT, message="it is off")
    speedups = {"tvm": 100.0 / us}
    intervals = {"tvm": (90.0 / us, 110.0 / us)}
    return Figures(
        status=EvaluationStatus.CORRECT,
        median_us=us,
        low_us=us,
        high_us=us,
        speedups=speedups,
        intervals=intervals,
    )


@pytest.fixture
def tasks(own_tasks: Path) -> Tasks:
    net = Net()
    x = net("Relu", net("MatMul", "x", net.weight(8, 8)))
    file = save(net.model([4, 8], net("Softmax", x)), own_tasks / "net.onnx")
    task = add(file, "net").manifest.tasks[0]
    cut = dissect(task, onnx.load(store.folder_of("net") / task.file))
    parts = {t.workload.id: t.workload for t in make_tasks(cut.parts, file)}
    assert list(parts) == [_FIRST, _SECOND]
    return Tasks(task, parts, cut)


def _marked(tasks: Tasks, part: str) -> str:
    """A kernel of a part that can be told from its canonical program when it is joined."""
    return tasks.parts[part].canonical().replace("kernel ", f"def {part[7:]}_(a) = a\nkernel ")


def _run(tasks: Tasks, monkeypatch: pytest.MonkeyPatch, judge: Judge) -> Verdict:
    monkeypatch.setattr(whole, "figures_of", lambda figures: figures)
    kernels = {part: _marked(tasks, part) for part in (_FIRST, _SECOND)}
    times = {_FIRST: 50.0, _SECOND: 20.0}

    def evaluate(text: str) -> Any:
        assert check_text(text).program is not None
        return judge(text)

    bench = _Bench(tasks, kernels, times, host_target(), evaluate, lambda line: None)
    return _judged(bench)


def _costs(first: float, second: float) -> Judge:
    def judge(text: str) -> Figures:
        us = 100.0
        us += first if "matmul_01_" in text else 0
        return _figures(us + (second if "softmax_02_" in text else 0))

    return judge


def test_all_of_the_agents_kernels_are_taken_when_they_help(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = _run(tasks, monkeypatch, _costs(-40, -10))
    assert set(verdict.chosen.used) == {_FIRST, _SECOND}
    assert verdict.before.kind == "canonical"
    assert gain(verdict.before.figures, verdict.chosen.figures) == pytest.approx(2.0)
    assert not verdict.dropped and not verdict.notes


def test_a_wrong_kernel_is_left_out_and_named(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(text: str) -> Figures:
        if "softmax_02_" in text:
            return _figures(1, right=False)
        return _costs(-40, 0)(text)

    verdict = _run(tasks, monkeypatch, judge)
    assert verdict.chosen.used == (_FIRST,)
    assert verdict.dropped == {_SECOND: "wrong_result (it is off)"}
    assert "wrong_result" in verdict.notes[0]


def test_a_kernel_that_makes_the_whole_slower_is_left_out(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = _run(tasks, monkeypatch, _costs(+60, -20))
    assert verdict.chosen.used == (_SECOND,)
    assert "slower" in verdict.dropped[_FIRST]


def test_the_canonical_program_stays_when_nothing_beats_it(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(text: str) -> Figures:
        return _figures(100 if "g0_" not in text else 150)

    verdict = _run(tasks, monkeypatch, judge)
    assert verdict.chosen.kind == "canonical" and not verdict.chosen.used
    assert set(verdict.dropped) == {_FIRST, _SECOND}


def test_without_a_right_program_nothing_is_shipped(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="no program of the whole model is right"):
        _run(tasks, monkeypatch, lambda text: _figures(1, right=False))


def test_open_borders_are_taken_when_they_are_faster(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(text: str) -> Figures:
        us = _costs(-20, -20)(text).median_us or 0
        return _figures(us if "layout g0_" in text or "g0_" not in text else us - 30)

    verdict = _run(tasks, monkeypatch, judge)
    assert verdict.chosen.kind == "joined, borders open"


def test_gain_counts_what_both_are_beside_the_same_baselines() -> None:
    before = _figures(100)
    slow_day = Figures(
        status=EvaluationStatus.CORRECT,
        median_us=80.0,
        speedups={"tvm": 2.0, "ort": 9.0},
        intervals={"tvm": (1.9, 2.1), "ort": (1, 80)},
    )
    assert gain(before, slow_day) == pytest.approx(2.0)
    alone = Figures(status=EvaluationStatus.CORRECT, median_us=50.0)
    assert gain(before, alone) == pytest.approx(2.0)
    assert gain(before, _figures(1, right=False)) == 0
