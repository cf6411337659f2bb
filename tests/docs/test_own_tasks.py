"""The page on own tasks: its commands and its Python file work as printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from tests.suite.own import models

TEXT = (Path(__file__).parents[2] / "docs" / "own-tasks.md").read_text(encoding="utf-8")
COMMANDS = [
    line.partition("#")[0].strip()
    for line in TEXT.splitlines()
    if line.startswith("    .venv/bin/ekb ")
]
PYTHON = re.findall(r"^```python\n(.*?)^```$", TEXT, flags=re.S | re.M)


def test_every_command_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EDGEKERNELBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    models.save(models.embedding(), tmp_path / "model.onnx")
    (tmp_path / "blocks").mkdir()
    models.save(models.one("Tanh", 40), tmp_path / "blocks" / "a.onnx")
    assert len(PYTHON) == 1
    (tmp_path / "tasks.py").write_text(PYTHON[0])
    assert len(COMMANDS) == 10
    for command in COMMANDS:
        line, _, redirected = command.partition(">")
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, f"{command}: {result.output} {result.exception}"
        if redirected:
            (tmp_path / redirected.strip()).write_text(result.stdout)


def test_the_page_says_what_add_says():
    """The table quotes messages; they are found in the code."""
    code = "".join(
        path.read_text(encoding="utf-8")
        for path in (Path(__file__).parents[2] / "src/edgekernelbench/suite/own").rglob("*.py")
    )
    quoted = re.findall(r"^\| `([^`]+)`(?:, `([^`]+)`)? \|", TEXT, flags=re.M)
    phrases = [phrase for pair in quoted for phrase in pair if phrase and phrase != "add"]
    assert len(phrases) >= 6
    for phrase in phrases:
        assert phrase in code, phrase
