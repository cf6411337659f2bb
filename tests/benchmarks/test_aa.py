"""A/A trials: resumed from a file, dealt out evenly, counted right."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from benchmarks.aa import Line, Subject, busy, order, read, report, subjects
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.aa import Trial, aa_trial
from tests.evaluator.fakes import FakeTask, make_evaluator


def line(name: str, low: float = 0.9) -> Line:
    trial = Trial(speedup=low + 0.1, low=low, high=low + 0.2, median_us=9.0, rounds=12)
    return Line(subject=name, cpu="x", threads=2, load=False, trial=trial)


def test_a_line_that_was_cut_off_is_taken_away(tmp_path: Path) -> None:
    file = tmp_path / "aa.jsonl"
    assert read(file) == []
    whole = [line("a canonical"), line("b canonical")]
    file.write_text("".join(each.model_dump_json() + "\n" for each in whole) + '{"subject": "c')
    assert read(file) == whole
    assert read(file) == whole and file.read_text().endswith("\n")


def test_a_line_that_is_no_trial_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "aa.jsonl"
    file.write_text("{}\n" + line("a").model_dump_json() + "\n")
    with pytest.raises(UsageError, match=r"aa.jsonl:1: no trial"):
        read(file)


def test_trials_are_dealt_out_evenly() -> None:
    tasks = [FakeTask() for _ in "abc"]
    all_ = [Subject(task, name, "") for task, name in zip(tasks, "abc", strict=True)]
    done = [line("fake a"), line("fake a")]
    turns = [s.source for s in itertools.islice(order(all_, done), 7)]
    assert sorted(turns[:4]) == ["b", "b", "c", "c"] and sorted(turns[4:]) == ["a", "b", "c"]


def test_report_counts_claims() -> None:
    lines = [line("a canonical"), line("a gallery", 1.01), line("b canonical", 1.06)]
    lines.append(lines[0].model_copy(update={"trial": None, "failure": "b: died"}))
    found = report(lines)
    assert (found["trials"], found["tasks"], found["kernels"]) == (3, 2, 3)
    assert found["lower_bound_above_1"]["count"] == 2
    assert found["lower_bound_above_1.05"] == {"count": 1, "share": pytest.approx(1 / 3)}
    assert found["interval_holds_1"]["count"] == 1
    assert set(found["claims"]) == {"a gallery", "b canonical"} and found["failures"] == ["b: died"]


def test_there_are_enough_tasks() -> None:
    assert len({subject.workload.id for subject in subjects()}) >= 40


def test_a_trial_beside_a_busy_process(tmp_path: Path) -> None:
    with make_evaluator(tmp_path, measure_s=0.3) as evaluator:
        evaluator.warm()
        with busy(evaluator.cores[0]):
            trial = aa_trial(evaluator, FakeTask(), "correct")
    assert trial.disturbed and trial.noise is not None
    assert trial.low <= trial.speedup <= trial.high and trial.low <= 1.05


def test_a_kernel_that_does_not_compile_is_no_trial(tmp_path: Path) -> None:
    with make_evaluator(tmp_path) as evaluator, pytest.raises(ValueError, match="not compile"):
        aa_trial(evaluator, FakeTask(), "#syntax")
