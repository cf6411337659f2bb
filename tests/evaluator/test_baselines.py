"""Baselines run beside the candidate; what is wrong with one hurts nobody else."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from edgekernelbench.evaluator.buildchild import BaselineReply
from edgekernelbench.evaluator.building import _store as store
from edgekernelbench.evaluator.match import flush_bytes
from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.static import Interface
from edgekernelbench.evaluator.sustained import sustained
from edgekernelbench.evaluator.sweep import Sweep
from edgekernelbench.evaluator.task import Pool
from edgekernelbench.evaluator.worker import ChildLost
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


def test_a_baseline_that_was_given_up_is_back_for_the_verdict(tmp_path: Path) -> None:
    """What an agent does to the machine while it measures is no way to a weaker rival."""
    with (
        make_evaluator(tmp_path, baselines=("good",)) as evaluator,
        evaluator.session(FakeTask()) as session,
    ):
        (rival,) = session.rivals.all
        rival.fails("failed", "it did not start", lasting=True)
        assert session.evaluate("correct").best is None
        session.redraw()
        assert session.evaluate("correct").best is None
        session.renew()
        assert session.evaluate("correct").best == "good"


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


def test_a_cold_call_is_slower_for_its_caches_alone(tmp_path: Path) -> None:
    """Single calls with and without other memory written first, in turns."""
    task = FakeTask()
    with make_evaluator(tmp_path) as evaluator:
        folder = tmp_path / "kernel"
        folder.mkdir()
        evaluator.builder.kernel("correct", Interface.of(task), folder)
        pool = Pool(task, 3)
        contestant = evaluator.kernel_contestant("kernel", folder, task)
        try:
            contestant.bind(pool, 0, 10.0)
            size = flush_bytes(evaluator.target)
            plans = [
                [Sample(set=0, poison=0, lead=0, calls=1, flush_bytes=n)] * 15 for n in (0, size)
            ]
            warm, cold = (min(contestant.run(plan)[1:]) for plan in plans)
        finally:
            contestant.close()
            pool.close()
    assert cold > 1.5 * warm


def test_a_sweep_visits_every_other_core_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    visited: list[tuple[int, ...]] = []
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {7})
    monkeypatch.setattr("os.sched_setaffinity", lambda _, cores: visited.append(tuple(cores)))
    Sweep((2, 3))()
    assert visited == [(2,), (3,), (7,)]


def test_cold_measurements_sweep_before_each_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[int] = []
    monkeypatch.setattr(Sweep, "__call__", lambda _: swept.append(1))
    with make_evaluator(tmp_path, cache_state="cold") as evaluator:
        evaluator.cores = (evaluator.cores[0],) * 2
        cold = evaluator.evaluate("correct", FakeTask()).performance
    while_cold = len(swept)
    assert cold is not None and while_cold > len(cold.samples_us)
    with make_evaluator(tmp_path) as evaluator:
        evaluator.evaluate("correct", FakeTask())
    assert len(swept) == while_cold


def test_sustained(tmp_path: Path) -> None:
    with (
        make_evaluator(tmp_path) as evaluator,
        evaluator.session(FakeTask()) as session,
    ):
        evaluation = sustained(session, "correct", seconds=4.0, window_s=0.4)
        wrong = sustained(session, "wrong", seconds=4.0)
    found = evaluation.sustained
    assert evaluation.status == "correct" and found is not None
    assert found.seconds >= 4.0 and 4 <= len(found.windows) <= 11
    assert found.checked_samples == len(found.windows) + 1
    assert 0.2 < found.steady_us / found.burst_us < 5
    assert wrong.status == "wrong_result" and wrong.sustained is None


@pytest.mark.parametrize("name", ["recipe.json", "unavailable.txt"])
def test_a_build_s_link_does_not_lead_to_a_file_of_the_user_s(tmp_path: Path, name: str) -> None:
    """A model or schedules from a stranger may break what builds baselines, too."""
    scratch, mine = tmp_path / "scratch", tmp_path / "mine"
    scratch.mkdir()
    mine.write_text("precious")
    (scratch / name).symlink_to(mine)
    for reply in (BaselineReply(recipe="{}"), BaselineReply(unavailable="broken")):
        with pytest.raises(ChildLost, match="of its own"):
            store(scratch, tmp_path / "cached", reply)
    assert mine.read_text() == "precious" and not (tmp_path / "cached").exists()
