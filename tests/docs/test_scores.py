"""The page on scores and the README's lines about them: their commands and code run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.records.read import RECORDS
from tests.factories import baseline, correct, record

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scores.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^(?:\.venv/bin/)?ekb ((?:score|compare|audit) .*)$", README + PAGE, re.M)
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.S | re.M)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two finished runs, under the names that the pages give them."""
    monkeypatch.chdir(tmp_path)
    good = [correct(f"k__{n:02}", {"tvm": baseline(2.0, 1.9)}, "tvm") for n in range(7)]
    lines = "".join(record(one.workload, one).model_dump_json() + "\n" for one in good)
    for name in set(re.findall(r"\bruns/[\w-]+", " ".join(COMMANDS + SNIPPETS))):
        Path(name).mkdir(parents=True)
        (Path(name) / RECORDS).write_text(lines)


def test_the_pages_have_commands() -> None:
    assert {command.split()[0] for command in COMMANDS} == {"score", "compare", "audit"}


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_commands(command: str) -> None:
    result = CliRunner().invoke(app, shlex.split(command, comments=True))
    assert result.exit_code == 0, result.output


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippets(snippet: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(snippet, "page", "exec"), {})
    assert float(capsys.readouterr().out) == 1.0
