"""``ekb trajectory``: each step of an attempt, with its effect and, if wished, its change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.records.read import text_key, text_path
from edgekernelbench.records.schema import Step
from tests.factories import correct, record

PATCH = "schedule for cpu { loops y (m, [c]) }"
STEPS = (
    Step(action="route", seconds=0.1, layer="schedule", reason="scalar_time: 90 %"),
    Step(action="ask", seconds=0.2, reason="scalar_time", tokens=1234),
    Step(
        action="evaluate",
        seconds=1.0,
        layer="schedule",
        reason="rows",
        status=EvaluationStatus.CORRECT,
        median_us=10.0,
        before_us=25.0,
        patch=text_key(PATCH),
    ),
    Step(
        action="evaluate",
        seconds=2.0,
        layer="memory",
        reason="odd",
        status=EvaluationStatus.CRASHED,
    ),
    Step(action="check", seconds=2.1, reason="E410: why", status=EvaluationStatus.INVALID_IR),
    Step(action="check", seconds=2.2),
    Step(action="stop", seconds=3.0, reason=f"{'all evaluations are used; ' * 5}2 refused"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = record("softmax_last__02", correct("softmax_last__02", {}, None))
    made = made.model_copy(update={"trajectory": STEPS})
    (tmp_path / "records.jsonl").write_text(made.model_dump_json() + "\n")
    (tmp_path / "texts").mkdir()
    text_path(tmp_path, text_key(PATCH)).write_text(PATCH)
    return tmp_path


def test_a_table_of_steps(folder: Path) -> None:
    said = CliRunner().invoke(app, ["trajectory", str(folder), "--patches"])
    assert said.exit_code == 0, said.output
    parts = ("route", "1234 tokens", "2.50x", "10 us", "crashed: odd", PATCH, "2 refused")
    repair = ("invalid_ir: E410: why", "it can be built", "verdict: correct, 10 us")
    for part in (*parts, *repair, "spent: 1 questions, 8 evaluations, 1 s without the wait"):
        assert part in said.output, part


def test_as_data(folder: Path) -> None:
    said = CliRunner().invoke(app, ["trajectory", str(folder), "--json"])
    (attempt,) = json.loads(said.output)
    assert [step["action"] for step in attempt["steps"]] == [s.action for s in STEPS]
    assert attempt["steps"][2]["patch_text"] == PATCH and attempt["status"] == "correct"


def test_what_is_not_there(folder: Path, tmp_path: Path) -> None:
    for arguments in ([str(tmp_path / "none")], [str(folder), "--workload", "other"]):
        said = CliRunner().invoke(app, ["trajectory", *arguments])
        assert isinstance(said.exception, UsageError)
