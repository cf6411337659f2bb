"""Where a run loses: what is surely slower is told from what nobody can tell, and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from edgekernelbench.evaluator.conditions import Noise
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.records.schema import Record
from edgekernelbench.report.entries import read_entries
from edgekernelbench.report.losses import losses
from edgekernelbench.report.page import report_page, why
from edgekernelbench.report.tasks import task_rows
from tests.factories import baseline, correct, performance, record
from tests.report.synthetic import write

Interval = tuple[float, float, float]
NOISE = Noise(seconds=1.0, causes=("other processes took 80% of the processors",), widening=1.7)


def attempt(name: str, family: str, interval: Interval | None, noisy: bool = False) -> Record:
    """Low, median and high of the speed-up over its only baseline; None: no kernel."""
    if interval is None:
        return record(name, family=family, status=EvaluationStatus.RUN_TIMEOUT)
    low, median, high = interval
    rival = baseline(median, low).model_copy(
        update={"speedup_high": high, "route": "ONNX twin, as it is"}
    )
    found = correct(name, {"ort": rival}, "ort")
    if noisy:
        timed = performance().model_copy(update={"noise": NOISE, "interval_reached": False})
        found = found.model_copy(update={"performance": timed})
    return record(name, found, family=family)


def families(attempts: Sequence[Record]) -> list[str]:
    return [loss.family for loss in losses(task_rows(attempts))]


@pytest.mark.parametrize(
    ("interval", "outcome"),
    [
        ((1.0, 1.1, 1.2), "fast"),
        ((0.9, 1.1, 1.2), "unsure"),
        ((0.8, 0.9, 1.0), "unsure"),
        ((0.7, 0.8, 0.99), "slow"),
    ],
)
def test_the_interval_decides(interval: Interval, outcome: str) -> None:
    (row,) = task_rows([attempt("a__01", "matmul", interval)])
    assert row.outcome == outcome


def test_what_is_surely_lost_comes_before_what_is_undecided_and_the_deepest_first() -> None:
    found = [
        *(attempt(f"u__0{n}", "undecided", (0.1, 0.9, 2.0)) for n in range(4)),
        attempt("a__01", "shallow", (0.7, 0.8, 0.9)),
        attempt("b__01", "deep", (0.1, 0.2, 0.3)),
        attempt("c__01", "two", None),
        attempt("c__02", "two", (0.7, 0.8, 0.9)),
        attempt("d__01", "won", (1.0, 1.1, 1.2)),
    ]
    assert families(found) == ["two", "deep", "shallow", "undecided"]


def test_the_reasons_are_told() -> None:
    found = [
        attempt("a__01", "matmul", (0.4, 0.5, 0.6)),
        attempt("a__02", "matmul", None),
        attempt("a__03", "matmul", (0.9, 1.1, 1.3), noisy=True),
        attempt("a__04", "matmul", (0.9, 0.95, 1.3)),
    ]
    (loss,) = losses(task_rows(found))
    assert (loss.lost, loss.unsure, loss.n) == (2, 2, 4)
    assert [row.shown.task.workload for row in loss.worst] == ["a__02", "a__01", "a__04"]
    assert why(loss) == (
        "1 run timeout; 1 correct but surely slower than the best baseline (median 0.50x; lost to "
        "ort (ONNX twin) 1); 2 undecided (1 ahead by median, 1 measured on a noisy machine)"
    )


def test_doubtful_times_are_told_before_any_figure(tmp_path: Path) -> None:
    quiet = write(tmp_path / "quiet", [attempt("a__01", "matmul", (0.4, 0.5, 0.6))])
    noisy = write(tmp_path / "noisy", [attempt("a__01", "matmul", (0.4, 1.5, 2.6), noisy=True)])
    assert "How far the times can be relied on" not in report_page(read_entries([quiet]))
    page = report_page(read_entries([noisy]))
    told = page.index("of 1 correct attempts 1 were measured on a noisy machine")
    assert told < page.index("Fast@1.0 over the best baseline")
    assert "No task is surely lost; 1 are undecided." in page
