"""The README's commands are run, those of all pages exist, and links lead somewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from edgekernelbench.cli.main import app

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]

SHORTER = (
    ("--subset quick --evals 8", "--workload softmax_last__02 --evals 1"),
    ("--evals 4", "--evals 1"),
)
"""What is run in place of minutes of search."""

ELSEWHERE = {
    "devices probe": "tests/cli/test_commands.py; measures for a minute",
    "portability": "tests/runs/test_portability.py; some targets are not on every machine",
    "baseline tune": "tests/cli/test_baseline.py; searches for hours",
    "suite add": "tests/cli/test_suiteadd.py; needs a model",
    "deploy": "tests/docs/test_deploying.py",
    "optimize": "tests/e2e/test_optimize.py; needs a model",
    "compare-agents": "tests/cli/test_agents.py",
}
"""Commands of the README that other tests run."""


def _commands(page: Path) -> Iterator[list[str]]:
    """Words of each line of a shell block that calls `ekb`, redirections included."""
    for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text("utf-8"), flags=re.S | re.M):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words and Path(words[0]).name == "ekb":
                yield words[1:]


def _resolved(words: list[str]) -> tuple[str, Any]:
    """A command's whole name, and the command of Typer's own copy of Click."""
    command: Any = get_command(app)
    name: list[str] = []
    while hasattr(command, "commands"):
        name.append(words[len(name)])
        assert name[-1] in command.commands, f"no command {' '.join(name)}"
        command = command.commands[name[-1]]
    return " ".join(name), command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_exist(page: Path) -> None:
    for words in _commands(page):
        _, command = _resolved(words)
        known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given <= known, f"{page.name}: ekb {' '.join(words)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.S | re.M)
    text = re.sub(r"`[^`]*`", "", text)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    inner = [link for link in links if link and "://" not in link]
    assert [link for link in inner if not (page.parent / link).exists()] == []


def test_the_commands_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = 0
    for words in _commands(README):
        name, _ = _resolved(words)
        if name in ELSEWHERE or "--model" in words:
            continue
        line = " ".join(words)
        for long, short in SHORTER:
            line = line.replace(long, short)
        line, _, file = line.partition(" > ")
        result = CliRunner().invoke(app, line.split())
        assert result.exit_code == 0, f"ekb {line}: {result.output} {result.exception}"
        if file:
            Path(file.strip()).write_text(result.stdout, encoding="utf-8")
        ran += 1
    assert ran >= 15
