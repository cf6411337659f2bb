"""Baselines run beside the candidate; what is wrong with one hurts nobody else."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from edgekernelbench.evaluator.model import Evaluation
from edgekernelbench.evaluator.sustained import Sustained, sustained
from tests.evaluator.fakes import FakeTask, make_evaluator


def test_speedups_and_best(tmp_path: Path) -> None:
    names = ("slow", "good", "raw")
    settings = {"measure_s": 0.3, "interval": 0.02, "replicas": 3}
    with make_evaluator(tmp_path, baselines=names, **settings) as evaluator:
        result = evaluator.evaluate("correct", FakeTask())
    assert result.status == "correct", result.message
    assert result.performance is not None and result.performance.replicas == 3
    assert result.performance.rounds % 3 == 0
    assert [result.baselines[n].replicas for n in names] == [3, 3, 1]
    assert list(result.baselines) == list(names)
    for name in names:
        baseline = result.baselines[name]
        assert baseline.status == "measured", baseline.message
        assert baseline.route == "C" and baseline.notes == ("a fake",)
        assert baseline.speedup is not None and baseline.speedup_low is not None
        assert baseline.speedup_high is not None
        assert baseline.speedup_low <= baseline.speedup <= baseline.speedup_high
    slow, good = result.baselines["slow"].speedup, result.baselines["good"].speedup
    assert slow is not None and good is not None
    assert 1.3 < slow < 4 and 0.6 < good < 1.6
    assert result.best == "good"


def test_what_is_wrong_with_one_hurts_nobody(tmp_path: Path) -> None:
    names = ("wrong", "dying", "none", "late", "broken", "good")
    with (
        make_evaluator(tmp_path, baselines=names) as evaluator,
        evaluator.session(FakeTask()) as session,
    ):
        first = session.evaluate("correct")
        second = session.evaluate("correct")
    for result in (first, second):
        assert result.status == "correct", result.message
        status = {name: b.status for name, b in result.baselines.items()}
        assert status == {
            "wrong": "wrong_result",
            "dying": "failed",
            "none": "unavailable",
            "late": "unavailable",
            "broken": "failed",
            "good": "measured",
        }
        assert result.best == "good"
    message = {name: b.message for name, b in second.baselines.items()}
    assert "SIGABRT" in message["dying"]
    assert message["none"] == "never there" and message["late"] == "found out late"
    assert "baseline build is broken" in message["broken"]
    assert message["good"] == ""


def test_another_build_takes_over_from_a_wrong_one(tmp_path: Path) -> None:
    with (
        make_evaluator(tmp_path, baselines=("two",)) as evaluator,
        evaluator.session(FakeTask()) as session,
    ):
        results = [session.evaluate("correct") for _ in range(2)]
    for result in results:
        baseline = result.baselines["two"]
        assert baseline.status == "measured", baseline.message
        assert result.best == "two"
        assert baseline.route == "another C"
        (note,) = baseline.notes
        assert note.startswith("not C: ") and "y" in note


def test_baseline_killed_between_evaluations_comes_back(tmp_path: Path) -> None:
    with (
        make_evaluator(tmp_path, baselines=("good",)) as evaluator,
        evaluator.session(FakeTask()) as session,
    ):
        session.evaluate("correct")
        contestant = session.rivals.all[0].contestant
        assert contestant is not None and contestant.first.pid is not None
        before = contestant.first.pid
        os.kill(before, signal.SIGKILL)
        result = session.evaluate("correct")
        assert result.baselines["good"].status == "measured"
        assert contestant.first.pid != before
        again = session.evaluate("correct")
        assert again.baselines["good"].status == "measured"


def test_baseline_processes_live_on_and_see_new_draws(tmp_path: Path) -> None:
    with (
        make_evaluator(tmp_path, baselines=("good",), pool_evaluations=2) as evaluator,
        evaluator.session(FakeTask()) as session,
    ):
        results = [session.evaluate("correct") for _ in range(4)]
        contestant = session.rivals.all[0].contestant
        assert contestant is not None
        pid = contestant.first.pid
        session.evaluate("correct")
        assert contestant.first.pid == pid
    assert {r.baselines["good"].status for r in results} == {"measured"}
    assert len({r.seed.const_seed for r in results if r.seed is not None}) == 2


def test_builds_are_cached_and_timings_are_not(tmp_path: Path) -> None:
    with make_evaluator(tmp_path, baselines=("good",)) as evaluator:
        first = evaluator.evaluate("correct", FakeTask())
        builds = list((tmp_path / "baselines").iterdir())
        assert len(builds) == 1
        second = evaluator.evaluate("correct", FakeTask())
    assert list((tmp_path / "baselines").iterdir()) == builds
    assert first.baselines["good"].samples_us != second.baselines["good"].samples_us
    damaged = builds[0] / "recipe.json"
    damaged.write_text("{")
    with make_evaluator(tmp_path, baselines=("good",)) as evaluator:
        third = evaluator.evaluate("correct", FakeTask())
    assert third.baselines["good"].status == "measured"


def test_no_baseline_is_measured_beside_a_wrong_kernel(tmp_path: Path) -> None:
    with make_evaluator(tmp_path, baselines=("good",)) as evaluator:
        result = evaluator.evaluate("wrong", FakeTask())
        assert result.baselines == {}
        assert not (tmp_path / "baselines").exists()


def test_cold_calls_are_slower(tmp_path: Path) -> None:
    """Each sample is one call that finds nothing in the caches."""
    with make_evaluator(tmp_path, cache_state="cold") as evaluator:
        cold = evaluator.evaluate("correct", FakeTask()).performance
    with make_evaluator(tmp_path) as evaluator:
        warm = evaluator.evaluate("correct", FakeTask()).performance
    assert cold is not None and warm is not None
    assert (cold.cache_state, warm.cache_state) == ("cold", "warm")
    assert cold.calls_per_sample == 1
    assert cold.median_us > 1.5 * warm.median_us


def test_sustained(tmp_path: Path) -> None:
    with (
        make_evaluator(tmp_path) as evaluator,
        evaluator.session(FakeTask()) as session,
    ):
        found = sustained(session, "correct", seconds=1.5, window_s=0.2)
        wrong = sustained(session, "wrong", seconds=1.5)
    assert isinstance(found, Sustained)
    assert found.seconds >= 1.5 and 4 <= len(found.windows) <= 9
    assert found.checked_samples == len(found.windows) + 1
    assert 0.2 < found.steady_us / found.burst_us < 5
    assert isinstance(wrong, Evaluation) and wrong.status == "wrong_result"
