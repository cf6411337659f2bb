"""The page of a comparison has the figures of `ekb compare --json`, and what changed task by task;
what cannot be compared is refused with the reason, in both forms."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import Environment, Evaluation, EvaluationStatus
from edgekernelbench.records.read import SETTINGS
from edgekernelbench.records.schema import Record
from edgekernelbench.report.comparison import Comparison, compare_runs, comparison_page
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.registry import find_target
from tests.factories import baseline, correct, performance, record
from tests.report.synthetic import records, write

FEW = load_suite().subset("quick")
WRONG = EvaluationStatus.WRONG_SHAPE_OR_DTYPE


def timed(task: int, time: float, low: float = 0.95) -> Record:
    """A correct attempt at ``time`` beside a baseline at 20 us, whose interval begins at ``low``
    times the speed-up."""
    speedup = 20.0 / time
    rival = baseline(speedup, low * speedup).model_copy(
        update={"median_us": 20.0, "low_us": 20.0, "high_us": 20.0, "speedup_high": speedup / low}
    )
    found = correct(f"k__{task:02}", {"tvm": rival}, "tvm")
    return record(
        f"k__{task:02}", found.model_copy(update={"performance": performance(time)})
    )  # fmt: skip


def failed(task: int) -> Record:
    return record(f"k__{task:02}", status=WRONG)


@pytest.fixture
def found(tmp_path: Path) -> Comparison:
    """Both alike; A correct only; B correct only; A fast only; A sooner; B sooner, perhaps."""
    a = [timed(0, 10), timed(1, 10), failed(2), timed(3, 18), timed(4, 5), timed(5, 10.4)]
    b = [timed(0, 10), failed(1), timed(2, 10), timed(3, 25), timed(4, 10), timed(5, 10)]
    return compare_runs(write(tmp_path / "a", a), write(tmp_path / "b", b))


def test_what_changed_and_for_whom(found: Comparison) -> None:
    told = {c["workload"]: (c["what"], c["ahead"]) for c in found.result["changes"]}
    assert told == {
        "k__00": ("none", ""), "k__01": ("correct", "a"), "k__02": ("correct", "b"),
        "k__03": ("fast", "a"), "k__04": ("time", "a"), "k__05": ("none", ""),
    }  # fmt: skip
    assert [c["workload"] for c in found.changed("a")] == ["k__01", "k__03", "k__04"]
    assert [c["workload"] for c in found.changed("b")] == ["k__02"]


def test_the_interval_of_a_task_s_ratio(found: Comparison) -> None:
    change = next(c for c in found.result["changes"] if c["workload"] == "k__04")
    half = -math.sqrt(2) * math.log(0.95)
    assert change["ratio"] == pytest.approx(2.0)
    assert change["low"] == pytest.approx(2.0 * math.exp(-half))
    assert change["high"] == pytest.approx(2.0 * math.exp(half))


def test_the_page_has_the_figures_of_the_command(tmp_path: Path) -> None:
    a = write(tmp_path / "a", records("tuner", FEW, epochs=2))
    b = write(tmp_path / "b", records("leka", FEW, epochs=2, skill=0.9))
    page = comparison_page(compare_runs(a, b))
    shown = CliRunner().invoke(app, ["compare", str(a), str(b), "--json"])
    told: dict[str, Any] = json.loads(shown.stdout)
    for cell in (
        told["correct_at"]["1"],
        told["fast_at"]["best"]["1.0"],
        told["by_family"]["conv2d"]["correct_at"]["1"],
    ):
        assert f"{100 * cell['difference']:+.1f} points" in page
        for side in "ab":
            assert f"{100 * cell[side]:.1f} % " in page
            assert f">{cell[side + '_count']}/{cell['n']}<" in page
    assert f"{told['time']['ratio']:.2f}x" in page
    for change in told["changes"]:
        assert (change["workload"] in page) or change["what"] == "none"


def test_every_share_has_its_count(tmp_path: Path) -> None:
    a = write(tmp_path / "a", records("tuner", FEW))
    page = comparison_page(compare_runs(a, write(tmp_path / "b", records("leka", FEW))))
    body = re.sub(r"<(style|script).*?</\1>", "", page, flags=re.S)
    shares = re.findall(r"\d+\.\d %(.{0,22})", body)
    assert len(shares) > 40 and all(s.startswith(' <span class="count">') for s in shares)


def test_the_page_asks_nothing_of_anybody_and_stays_text(tmp_path: Path) -> None:
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    a = [timed(0, 10).model_copy(update={"agent": hostile, "run": hostile})]
    page = comparison_page(
        compare_runs(write(tmp_path / "a", a), write(tmp_path / "b", [timed(0, 9)]))
    )
    assert "<img src=x" not in page and "<script>alert" not in page
    assert "default-src 'none'" in page
    assert not re.search(r"""(?:src|href)="(?!#|data:)""", page)


def _changed(one: Record, **update: Any) -> Record:
    assert one.evaluation is not None
    return one.model_copy(update={"evaluation": one.evaluation.model_copy(update=update)})


def _versioned(one: Record, version: int) -> Record:
    task = one.task.model_copy(update={"tolerance_version": version})
    return one.model_copy(update={"task": task})


def _on(evaluation: Evaluation | None, cpu: str) -> dict[str, Any]:
    return {"environment": Environment(cpu=cpu, system="Linux", threads=2)}


OTHERS = {
    "tolerance version": lambda r: _versioned(r, 7),
    "processor": lambda r: _changed(r, **_on(r.evaluation, "Cortex-A76")),
    "number of threads": lambda r: _changed(
        r, performance=performance().model_copy(update={"threads": 4})
    ),
    "target": lambda r: r.model_copy(
        update={"task": r.task.model_copy(update={"target": "opencl"})}
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_cannot_be_compared_is_refused_with_the_reason(what: str, tmp_path: Path) -> None:
    one = _changed(timed(0, 10), **_on(None, "AMD EPYC"))
    a, b = write(tmp_path / "a", [one]), write(tmp_path / "b", [OTHERS[what](one)])
    page = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["compare", str(a), str(b), "--html", str(page)])
    assert isinstance(result.exception, UsageError)
    assert f"more than one {what}" in str(result.exception) and not page.exists()


def test_devices_of_one_name_that_describe_themselves_otherwise(tmp_path: Path) -> None:
    folders = [write(tmp_path / name, [timed(0, 10)]) for name in "ab"]
    for folder, words in zip(folders, ("Mali-G710, r32", "Adreno 730, v512"), strict=True):
        target = find_target("llvm").model_copy(update={"name": "opencl", "description": words})
        settings = {"target": target.model_dump(mode="json")}
        (folder / SETTINGS).write_text(json.dumps(settings))
    with pytest.raises(UsageError, match="device named opencl: Mali-G710, r32 in the first"):
        compare_runs(*folders)


def test_nothing_correct_on_either_side(tmp_path: Path) -> None:
    sides = [write(tmp_path / name, [failed(0), failed(1)]) for name in "ab"]
    page = comparison_page(compare_runs(sides[0], sides[1]))
    assert "Better in A: 0 of 2 tasks" in page and "nan" not in page and "None" not in page


def test_the_command_tells_what_changed_and_writes_the_page(tmp_path: Path) -> None:
    a = write(tmp_path / "a", [timed(0, 5), timed(1, 10)])
    b = write(tmp_path / "b", [timed(0, 10), failed(1)])
    page = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["compare", str(a), str(b), "--html", str(page)])
    assert result.exit_code == 0, result.output
    assert "better in A: 2 tasks" in result.stdout and "worse in A: 0 tasks" in result.stdout
    assert "k__01: correct in A, wrong shape or dtype in B" in result.stdout
    assert "k__00: B takes 2.00x as long as A" in result.stdout
    assert page.read_text().startswith("<!doctype html>")
