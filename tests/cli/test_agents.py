"""``ekb compare-agents``: a run for each agent, one table, and what is refused before anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError


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
    ],
)
def test_what_is_refused_before_anything_is_spent(
    tmp_path: Path, more: tuple[str, ...], told: str
) -> None:
    said = CliRunner().invoke(app, command(tmp_path / "runs", *more))
    assert isinstance(said.exception, UsageError) and told in said.exception.message
    assert not (tmp_path / "runs").exists()
