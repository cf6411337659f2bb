"""The command with standard streams that are closed, full or gone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.table import Table

from edgekernelbench.cli.common import out
from tests.suite.own import models

EKB = [sys.executable, "-m", "edgekernelbench.cli"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EDGEKERNELBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("raise KeyboardInterrupt", "finished attempts are kept"),
        ("raise typer.Exit(130)", ""),
    ],
)
def test_an_interrupt_says_what_is_kept(does: str, told: str) -> None:
    """Unless the command has said so itself."""
    code = (
        "import sys, typer\nfrom edgekernelbench.cli import main as m\n"
        f"@m.app.command('wait')\ndef wait():\n    {does}\n"
        "sys.argv = ['ekb', 'wait']\nm.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 130 and done.stdout == ""
    assert told in done.stderr and "Traceback" not in done.stderr
    assert bool(told) == bool(done.stderr)


def shell(command: str) -> subprocess.CompletedProcess[str]:
    text = command.replace("ekb", " ".join(EKB))
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("command", ["ekb suite stats >&-", "ekb suite check add__01 --small >&-"])
def test_standard_output_that_is_closed(command: str):
    done = shell(command)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "error: standard output is closed"


def test_standard_error_that_is_closed():
    assert json.loads(shell("ekb suite stats --json 2>&-").stdout)["workloads"] == 650
    assert shell("ekb suite show nothing 2>&-").returncode == 2


@pytest.mark.parametrize("json", ["", "--json"])
def test_a_suite_that_is_added_on_a_full_disk(json: str, tmp_path: Path, home: Path):
    models.save(models.one("Tanh", 40), tmp_path / "mine.onnx")
    done = shell(f"ekb suite add mine.onnx {json} >/dev/full")
    assert done.returncode == 2
    assert "the own suite 'mine' is added, but that cannot be printed" in done.stderr
    assert "Traceback" not in done.stderr and (home / "suite/mine/suite.json").is_file()


@pytest.mark.parametrize("command", ["ekb suite list", "ekb suite check add__01 --small --json"])
def test_a_reader_that_goes_away(command: str):
    done = shell(f"{command} | true; exit ${{PIPESTATUS[0]}}")
    assert done.returncode == 128 + signal.SIGPIPE and "Traceback" not in done.stderr


def test_a_file_for_outcomes_that_cannot_be():
    done = shell("ekb suite check add__01 --small --out /proc/x/y")
    assert done.returncode == 2
    assert done.stderr.startswith("error: --out /proc/x/y: cannot be written")


def test_what_a_users_file_prints_is_not_in_the_json(tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        "from edgekernelbench.tasks import task\n"
        "print('read')\n"
        "@task(inputs='x:[N]:f32', outputs='y:[N]:f32', shapes=[{'N': 40}],\n"
        "      tolerance='f32_elementwise')\n"
        "def double(x):\n"
        "    print('called')\n"
        "    return 2 * x\n"
    )
    assert json.loads(shell("ekb suite add mine.py --json").stdout)["suite"] == "mine"
    shown = shell("ekb suite check mine__double__01 --small --json")
    assert json.loads(shown.stdout)["workloads"] == 1


def test_a_check_that_is_terminated_leaves_nothing_behind():
    process = subprocess.Popen(
        [*EKB, "suite", "check", "--jobs", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ),
    )  # fmt: skip
    time.sleep(4)
    began = time.monotonic()
    process.terminate()
    _, told = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in told and "leaked" not in told and time.monotonic() - began < 20


def test_what_others_say_does_not_steer_the_terminal() -> None:
    written = StringIO()
    console = type(out)(file=written, force_terminal=True, highlight=False)
    console.print("a\x1b[2J\x9b31m\ud83d\tb", markup=False)
    table = Table()
    table.add_column("kernel")
    table.add_row("c\x1b]0;title\x07")
    console.print(table)
    printed = re.sub(r"\x1b\[[0-9;]*m", "", written.getvalue())  # colours of our own
    assert "a\u241b[2J" in printed and "c\u241b]0;title\u2407" in printed
    assert not {"\x1b", "\x9b", "\x07", "\ud83d"} & set(printed)
