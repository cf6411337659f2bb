"""Behaviours that other projects lacked and no other test shows; see docs/lessons.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edgekernelbench.evaluator.canary import Overhead
from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.machinery import cuda_environment
from edgekernelbench.evaluator.match import Match
from edgekernelbench.records.store import RunStore
from edgekernelbench.suite.tolerance import TOLERANCE_VERSION
from tests.evaluator.fakes import FakeTask, make_evaluator


@pytest.fixture(scope="module")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with make_evaluator(tmp_path_factory.mktemp("cache")) as made:
        yield made


def test_precision_is_pinned_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    assert cuda_environment()["NVIDIA_TF32_OVERRIDE"] == "0"


def test_a_verdict_names_its_tolerance_and_the_version(fakes: Evaluator) -> None:
    for text in ("correct", "wrong"):
        correctness = fakes.evaluate(text, FakeTask()).correctness
        assert correctness is not None
        assert correctness.tolerance == "f32_elementwise"
        assert correctness.tolerance_version == TOLERANCE_VERSION


@pytest.mark.parametrize("dominated", [True, False])
def test_results_that_a_launch_dominates_are_marked(
    fakes: Evaluator, dominated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Overhead.of([1e3 if dominated else 1e-3] * 6)
    monkeypatch.setattr(Match, "_overhead_now", lambda _: found)
    result = fakes.evaluate("correct", FakeTask())
    performance = result.performance or result.quarantined
    assert performance is not None and performance.overhead_dominated is dominated


def test_texts_of_attempts_do_not_overwrite_each_other(tmp_path: Path) -> None:
    with RunStore.open(tmp_path, {"agent": "direct"}, resume=False) as store:
        keys = [store.keep_text(text) for text in ("first", "second", "first")]
    assert keys[0] == keys[2] != keys[1]
    kept = sorted(path.read_text() for path in (tmp_path / "texts").iterdir())
    assert kept == ["first", "second"]
