"""The page on deployment: its commands that run here run, its profiles are targets."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.deploy.architecture import ARCHITECTURES, architecture_of
from edgekernelbench.targets.registry import find_target
from tests.deploy.support import make

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, flags=re.S | re.M)


def test_every_command_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gallery").symlink_to(ROOT / "gallery")
    copytree(ROOT / "docs" / "devices", tmp_path / "docs" / "devices")
    commands = [line for block in BLOCKS for line in block.splitlines()]
    assert len(commands) == 9
    for command in commands:
        words = shlex.split(command)
        if words[0] == "make":
            assert words[1] == "-C"
            done = make(tmp_path / words[2], *words[3:])
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        else:
            result = CliRunner().invoke(app, words[1:])
            assert result.exit_code == 0, f"{command}: {result.output} {result.exception}"


def test_the_profiles_to_begin_with() -> None:
    found = {
        file.stem: architecture_of(find_target(str(file))).name
        for file in (ROOT / "docs" / "devices").glob("*.yaml")
    }
    assert found == {
        "armv7": "armv7", "riscv64": "riscv64", "jetson-orin-nano-cpu": "aarch64"
    }  # fmt: skip
    for name in found:
        assert f"docs/devices/{name}.yaml" in PAGE


def test_the_page_names_the_machines_and_options() -> None:
    for architecture in ARCHITECTURES:
        assert architecture.name in PAGE
    commands: Any = get_command(app)  # a group of Typer's own copy of Click
    command = commands.commands["deploy"]
    options = {o for p in command.params for o in p.opts if o.startswith("--")}
    assert options - {"--out", "--target"} <= set(re.findall(r"--[a-z]+", PAGE))
