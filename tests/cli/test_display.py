"""What is shown of a run: how many attempts have ended, and what is under way."""

from __future__ import annotations

import pytest
from rich.live import Live

from edgekernelbench.cli.display import Display
from edgekernelbench.records.schema import Step
from edgekernelbench.suite import load_suite
from tests.factories import correct, record

FIRST, SECOND = (load_suite().workloads[name] for name in ("relu__01", "softmax_last__02"))
MEASURED = Step(action="evaluate", seconds=1.0, median_us=12.5)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(Live, "update", lambda _self, line: lines.append(str(line)))
    return lines


def test_what_has_ended_is_counted_and_not_what_has_begun(shown: list[str]) -> None:
    display = Display()
    for workload in (FIRST, SECOND):
        display.attempt_begins(workload, 0, 3)
    assert shown[-1] == "[0/3 ended] 2 under way"
    display.step(MEASURED)
    assert shown[-1] == "[0/3 ended] 2 under way"
    display.attempt_ends(record(FIRST.id, correct(FIRST.id, {}, None)), False)
    assert shown[-1].startswith("[1/3 ended, about 0.") and shown[-1].endswith(SECOND.id)


def test_an_attempt_alone_tells_of_its_evaluations(shown: list[str]) -> None:
    display = Display()
    display.attempt_ends(record(FIRST.id), True)
    assert not shown and display.fresh == 0
    display.attempt_begins(SECOND, 1, 2)
    display.step(MEASURED)
    assert shown[-1] == f"[1/2 ended] {SECOND.id}: 1 evaluation, last 12.5 us"
