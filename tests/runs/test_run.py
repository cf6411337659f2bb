"""What a run refuses before it begins, and what it tells of attempts without a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from edgekernelbench.agents.base import Answer, Device, Task
from edgekernelbench.agents.canonical import CanonicalAgent
from edgekernelbench.cli.display import why_no_verdict
from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import EvalSettings
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.records.schema import Spent
from edgekernelbench.runs.order import RunConfig
from edgekernelbench.runs.run import Silent, run
from edgekernelbench.suite import Workload, load_suite
from edgekernelbench.targets.host import host_target
from tests.factories import correct, performance, record

FIRST, SECOND = (load_suite().workloads[name] for name in ("gelu_erf__02", "softmax_last__02"))


class Session:
    """Finds every kernel right."""

    def __init__(self, workload: str) -> None:
        self.workload = workload

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None: ...

    def renew(self) -> None: ...

    def close(self) -> None: ...

    def evaluate(self, _: str) -> Evaluation:
        return correct(self.workload, {}, None)


class Evaluator:
    def session(self, task: Any) -> Session:
        return Session(task.id)


def config(*workloads: Workload) -> RunConfig:
    limits = Spent(evaluations=2)
    return RunConfig(
        CanonicalAgent(), None, host_target(), workloads, "named", limits, 1, 0, EvalSettings()
    )


def without_program(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    right = Workload.canonical

    def canonical(workload: Workload) -> str:
        if workload.id in names:
            raise FileNotFoundError(f"{workload.id}: no canonical program: why\nand more")
        return right(workload)

    monkeypatch.setattr(Workload, "canonical", canonical)


def test_tasks_that_all_lack_a_canonical_program_are_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_program(monkeypatch, FIRST.id, SECOND.id)
    folder = tmp_path / "out"
    evaluator: Any = Evaluator()
    for chosen, told in (((FIRST,), f"{FIRST.id} has none"), ((FIRST, SECOND), "of the 2 tasks")):
        with pytest.raises(UsageError, match="canonical needs a canonical program") as caught:
            run(config(*chosen), folder, False, evaluator, Silent())
        assert told in caught.value.message and "why" in caught.value.help
        assert not folder.exists()


def test_one_task_without_a_canonical_program_is_no_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_program(monkeypatch, FIRST.id)
    monkeypatch.setattr("edgekernelbench.runs.run.build_ahead", lambda *_: ())
    monkeypatch.setattr("edgekernelbench.runs.run.as_task", lambda workload: Named(workload.id))
    evaluator: Any = Evaluator()
    first, second = run(config(FIRST, SECOND), tmp_path / "out", False, evaluator, Silent())
    assert first.status is EvaluationStatus.NO_KERNEL and first.kernel is None
    assert first.message == why_no_verdict(first) == f"{FIRST.id}: no canonical program: why"
    assert second.status is EvaluationStatus.CORRECT and why_no_verdict(second) == ""


class Breaks:
    """Measures some kernels, then fails."""

    name = "breaks"
    needs_canonical = False
    options: Mapping[str, Any] = {}

    def __init__(self, *times: float | None) -> None:
        self._times = times

    def attempt(self, task: Task, device: Device, seed: int) -> Answer:
        for number, us in enumerate(self._times):
            text = f"kernel {number}"
            told = Evaluation(
                status=EvaluationStatus.CRASHED, workload="w", target="llvm", message="no"
            )
            if us is not None:
                found = correct(task.workload.id, {}, None)
                told = found.model_copy(update={"performance": performance(us)})
            device.evaluate_kernel = lambda _, told=told: told
            device.evaluate(text)
        raise KeyError("x")


@pytest.mark.parametrize(
    ("times", "kernel"),
    [((3.0, 1.0, 2.0), "kernel 1"), ((None, 5.0), "kernel 1"), ((None,), None), ((), None)],
)
def test_of_an_agent_that_breaks_the_best_kernel_counts(
    times: tuple[float | None, ...], kernel: str | None, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("edgekernelbench.runs.run.build_ahead", lambda *_: ())
    monkeypatch.setattr("edgekernelbench.runs.run.as_task", lambda workload: Named(workload.id))
    evaluator: Any = Evaluator()
    agent: Any = Breaks(*times)
    given = replace(config(FIRST), agent=agent, limits=Spent(evaluations=9))
    (ended,) = run(given, tmp_path / "out", False, evaluator, Silent())
    assert ended.kernel == kernel and "the agent failed" in ended.message
    assert (ended.status is EvaluationStatus.CORRECT) == (kernel is not None)


class Named:
    def __init__(self, name: str) -> None:
        self.name = name


def test_of_an_agent_that_broke_the_last_line_is_told() -> None:
    message = "the agent failed: Traceback (most recent call last):\n  File ...\nKeyError: 'x'\n"
    broken = record(status=EvaluationStatus.INFRA_ERROR).model_copy(update={"message": message})
    assert why_no_verdict(broken) == "KeyError: 'x'"


@pytest.mark.parametrize(("status", "code"), [("infra_error", 1), ("no_kernel", 0)])
def test_a_run_without_any_verdict_exits_with_1(
    status: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Nothing:
        def __init__(self, *_: object, **__: object) -> None: ...
        def __enter__(self) -> Nothing:
            return self

        def __exit__(self, *_: object) -> None: ...

    ended = record(FIRST.id, status=EvaluationStatus(status))
    monkeypatch.setattr("edgekernelbench.evaluator.Evaluator", Nothing)
    monkeypatch.setattr("edgekernelbench.runs.run.run", lambda *_: [ended])
    result = CliRunner().invoke(app, ["run", "--workload", FIRST.id, "--out", str(tmp_path)])
    assert result.exit_code == code, result.output
