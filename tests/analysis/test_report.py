"""Static reports from a limited process: what comes back, and that nothing keeps the parent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from edgekernelbench.analysis.report import (
    NoReport,
    Reporter,
    ReportOptions,
    StaticReport,
    report,
)
from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.evaluator.worker import ChildLost
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.host import host_target

WORKLOAD = load_suite().workloads["softmax_last__02"]
TEXT = WORKLOAD.canonical()
OPTIONS = ReportOptions(target=host_target(), also_at=dict(WORKLOAD.small().bindings))


@pytest.fixture(scope="module")
def reporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reporter]:
    settings = EvalSettings(roofline=False, baselines=())
    cache = tmp_path_factory.mktemp("cache")
    with Evaluator(host_target(), settings=settings, cache_dir=cache) as evaluator:
        yield Reporter(evaluator.builder)


def test_a_child_says_what_this_process_would(reporter: Reporter) -> None:
    broken = TEXT.replace("max[", "mix[")
    found = reporter.reports([TEXT, broken, TEXT], OPTIONS)
    assert found == [report(text, OPTIONS) for text in (TEXT, broken, TEXT)]
    first, second, _ = found
    assert isinstance(first, StaticReport) and first.explanation is not None
    assert first.guess is not None and first.guess.parts
    assert isinstance(second, NoReport) and "mix" in second.told
    brief = reporter.reports([TEXT], OPTIONS.model_copy(update={"whole": False}))
    assert brief == [StaticReport(guess=first.guess)]


def test_what_takes_too_long_is_given_up(reporter: Reporter) -> None:
    began = time.monotonic()
    (found,) = replace(reporter, seconds=0.001).reports([TEXT], OPTIONS)
    assert isinstance(found, NoReport) and "more than 0.001 s" in found.told
    assert len(reporter.reports([TEXT] * 2000, OPTIONS, total=0.5)) < 2000
    assert time.monotonic() - began < 30
    assert isinstance(reporter.reports([TEXT], OPTIONS)[0], StaticReport)


class Losing:
    """A builder whose server is lost ``times`` times, each time behind the first text's report."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.asked: list[list[str]] = []

    def stream(self, _entry: str, job: dict[str, Any], form: Any, *_: Any) -> Iterator[Any]:
        self.asked.append(list(job["texts"]))
        for number, text in enumerate(job["texts"]):
            if number == 1 and len(self.asked) <= self.times:
                raise ChildLost("server", "it is gone")
            yield form(refused=NoReport(told=text))


def test_the_loss_of_the_server_is_no_fault_of_a_text() -> None:
    builder: Any = Losing(1)
    found = Reporter(builder).reports(["a", "b", "c"], OPTIONS)
    assert found == [NoReport(told=text) for text in "abc"]
    assert builder.asked == [["a", "b", "c"], ["b", "c"]]
    hopeless: Any = Losing(9)
    with pytest.raises(ChildLost):
        Reporter(hopeless).reports(["a", "b", "c"], OPTIONS)
    assert len(hopeless.asked) == 2
