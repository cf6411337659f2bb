"""The page on LEKA and the README's lines about it: their commands run, and the rule works."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from edgekernelbench.agents.leka import route as routes
from edgekernelbench.agents.leka.course import Options
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
