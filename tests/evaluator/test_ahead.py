"""Baselines of several tasks, built side by side into the cache."""

from __future__ import annotations

from pathlib import Path

from edgekernelbench.evaluator.ahead import build_ahead
from tests.evaluator.fakes import FakeTask, make_evaluator


def named(id: str) -> FakeTask:
    task = FakeTask()
    task.id = id
    return task


def test_sessions_find_everything_built(tmp_path: Path) -> None:
    tasks = [named(f"task{n}") for n in range(5)]
    with make_evaluator(tmp_path, baselines=("good", "slow")) as evaluator:
        done = list(build_ahead(evaluator, tasks, jobs=3))
        assert sorted(done) == [task.id for task in tasks]
        built = {f: f.stat().st_mtime_ns for f in (tmp_path / "baselines").rglob("recipe.json")}
        assert len(built) == 10
        result = evaluator.evaluate("correct", tasks[3])
        assert result.status == "correct" and result.baselines["slow"].status == "measured"
    after = {f: f.stat().st_mtime_ns for f in (tmp_path / "baselines").rglob("recipe.json")}
    assert after == built


def test_what_fails_ahead_is_told_by_the_session(tmp_path: Path) -> None:
    names = ("broken", "dying", "none", "late", "good")
    with make_evaluator(tmp_path, baselines=names) as evaluator:
        assert list(build_ahead(evaluator, [FakeTask()], jobs=2)) == ["fake"]
        result = evaluator.evaluate("correct", FakeTask())
    assert result.baselines["broken"].status == "failed"
    assert "broken" in result.baselines["broken"].message
    assert result.baselines["good"].status == "measured"
