"""The page on LEKA and the README's lines about it: their commands run, and the rule works."""

from __future__ import annotations

import itertools
import re
import shlex
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.screen import KINDS
from edgekernelbench.agents.leka import route as routes
from edgekernelbench.agents.leka.course import Options
from edgekernelbench.agents.leka.observe import Observation
from edgekernelbench.agents.registry import require_options
from edgekernelbench.cli.agents import side
from edgekernelbench.cli.main import app
from tests.agents.leka.test_parts import seen

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "leka.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(
    r"^\.venv/bin/ekb (run --agent leka-moves .*|trajectory .*|compare-agents .*)$", README, re.M
)


def test_the_readmes_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) == 3
    for command in COMMANDS:
        result = CliRunner().invoke(app, shlex.split(command, comments=True))
        assert result.exit_code == 0, result.output


def test_every_option_is_on_the_page() -> None:
    told = re.findall(r"^\| `(\w+)` \| `?(\w+)`? \|", PAGE, re.M)
    usual = {n: {True: "on", False: "off"}.get(v, str(v)) for n, v in Options().as_dict().items()}
    assert dict(told) == usual


def test_every_field_and_rule_is_on_the_page() -> None:
    rows = re.findall(
        r"^\| (`\w+`(?:, `\w+`)*) \|", PAGE.partition("## A rule of your own")[2], re.M
    )
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert told == {field.name for field in fields(Observation)}
    assert ", ".join(f"`{name}`" for name, _ in routes.RULES) in PAGE.replace("\n", " ")


def test_the_rule_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.S | re.M)
    monkeypatch.setattr(routes, "RULES", [])
    names: dict[str, Any] = {**vars(routes)}
    exec(compile(code, "docs/leka.md", "exec"), names)
    assert [name for name, _ in routes.RULES] == ["too_much_workspace"]
    plain = seen()
    stored = SimpleNamespace(workspace_bytes=1 << 30, io_bytes=1 << 10)
    many = replace(plain, explanation=stored)  # type: ignore[arg-type]
    found = routes.route(many)
    assert found is not None and found.rule == "too_much_workspace" and "1073741824" in found.reason
    other = routes.route(plain)
    assert other is not None and other.rule == "least_tried"


def test_the_ablations_command_names_every_switch_of_the_options() -> None:
    (command,) = re.findall(r"^ekb compare-agents .*runs/ablations(?:.*\\\n)*.*$", PAGE, re.M)
    words = shlex.split(command.replace("\\\n", " "))
    sides = [side(after) for word, after in itertools.pairwise(words) if word == "--agent"]
    assert sides[0].label == "leka"
    for one in sides[1:]:
        require_options(one.agent, dict(one.options))
    switches = {name for one in sides for name, value in one.options if value == "off"}
    usual = {name for name, value in Options().as_dict().items() if value is True}
    assert switches == usual and len(sides) == 6


def test_what_it_says_of_the_screen_adds_up() -> None:
    """Tables of the page keep the form and the kinds that the script prints."""
    rows = re.findall(r"^\| (illegal|wrong|slow|good)\b.*\| (\d+) \| (\d+) \|$", PAGE, re.M)
    counts = {kind: (int(patches), int(stopped)) for kind, patches, stopped in rows}
    assert list(counts) == list(KINDS)
    assert all(counts[kind][0] == counts[kind][1] for kind in ("illegal", "wrong"))
    assert all(stopped <= patches for patches, stopped in counts.values())
