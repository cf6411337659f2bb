"""``ekb compare-agents``: a run for each agent, one table, and what is refused before anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.agents import side
from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.records.read import RECORDS, read_records
from tests.agents.leka.support import SOFTMAX, block
from tests.llm.server import Message, says, serving


def command(folder: Path, *more: str) -> list[str]:
    task = ("--workload", "matmul_tn__01", "--evals", "2")
    return ["compare-agents", "--out", str(folder), *task, *more]


def test_agents_side_by_side_and_again(tmp_path: Path) -> None:
    both = ("--agent", "tuner", "--agent", "leka-moves")
    said = CliRunner().invoke(app, command(tmp_path, *both, "--json"))
    assert said.exit_code == 0, said.output
    rows = json.loads(said.stdout)
    assert [row["agent"] for row in rows] == ["tuner", "leka-moves"]
    for row in rows:
        assert row["correct_at"]["count"] == row["n"] == 1 and row["evaluations"] == 2
        assert row["tokens"] == 0 and row["seconds"] > 0 and "best" in row["fast_at"]
    before = (tmp_path / "tuner" / "records.jsonl").read_bytes()
    again = CliRunner().invoke(app, command(tmp_path, *both))
    assert again.exit_code == 0 and "leka-moves" in again.stdout
    assert "100.0% 1/1" in again.stdout
    assert (tmp_path / "tuner" / "records.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ((), "asks a model"),
        (("--agent", "leka"), "asks a model"),
        (("--agent", "lekka"), "unknown agent"),
        (("--agent", "tuner", "--seconds", "0"), "not a time"),
        (("--agent", "tuner:rounds=3"), "takes no options"),
        (("--agent", "leka:colour=red", "--model", "a/b"), "no option 'colour'"),
        (("--agent", "leka:screen=maybe", "--model", "a/b"), "screen='maybe'"),
        (("--agent", "leka:screen", "--model", "a/b"), "'screen' is no option"),
    ],
)
def test_what_is_refused_before_anything_is_spent(
    tmp_path: Path, more: tuple[str, ...], told: str
) -> None:
    said = CliRunner().invoke(app, command(tmp_path / "runs", *more))
    assert isinstance(said.exception, UsageError) and told in said.exception.message
    assert not (tmp_path / "runs").exists()


def test_only_a_run_that_is_there_is_made_again(tmp_path: Path) -> None:
    asked = ("run", "--out", str(tmp_path / "run"), "--retry-provider-errors")
    said = CliRunner().invoke(app, asked)
    assert isinstance(said.exception, UsageError) and "--resume" in said.exception.help


def test_an_ablation_is_a_side_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong kernel costs the only evaluation unless the screen stops it."""
    monkeypatch.setenv("LOOPBACK_API_KEY", "none")

    def converse(body: dict[str, Any]) -> Message:
        right = "wrong results" in str(body["messages"][-1]["content"])
        return says(block(SOFTMAX if right else SOFTMAX.replace("/ s[m]", "/ s[m] + 0.1")))

    names = ("leka", "leka:screen=off,holes=on")
    sides = [part for name in names for part in ("--agent", name)]
    asked = ("--workload", "softmax_last__02", "--evals", "1", "--out", str(tmp_path), "--json")
    with serving(lambda _task: "") as server:
        server.converse = converse
        model = ("--model", "openai-api/loopback/scripted", "--model-base-url", server.url)
        said = CliRunner().invoke(app, ["compare-agents", *asked, *sides, *model])
    assert said.exit_code == 0, said.output
    rows = {row["agent"]: row for row in json.loads(said.stdout)}
    assert list(rows) == ["leka", "leka:holes=on,screen=off"]
    assert [row["correct_at"]["count"] for row in rows.values()] == [1, 0]
    assert [row["evaluations"] for row in rows.values()] == [1, 1]
    for name, screen in (("leka", True), ("leka-holes-on-screen-off", False)):
        (record,) = read_records(tmp_path / name / RECORDS).records
        assert record.agent_options["screen"] is screen and record.agent == "leka"


def test_options_in_another_order_are_the_same_side() -> None:
    assert side("leka:holes=off,screen=on") == side("leka:screen=on,holes=off")
    assert side("tuner").folder == side("tuner").label == "tuner"
