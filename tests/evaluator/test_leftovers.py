"""What `keep_apart` closes, and that it closes nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgekernelbench.evaluator import landlock

PROGRAM = """
import os, sys
from edgekernelbench.evaluator.leftovers import keep_apart

assert keep_apart()
try:
    os.kill(os.getppid(), 0)
except PermissionError:
    print("apart")
child = os.fork()
if child == 0:
    os.execvp("sleep", ["sleep", "60"])
os.kill(child, 9)
print(os.waitpid(child, 0)[1])
os.rename("a/file", "b/file")
print(os.listdir("b"))
"""


def test_signals_reach_what_it_starts_only_and_files_are_moved(tmp_path: Path) -> None:
    if landlock.version() < 6:
        pytest.skip("this system's Landlock does not keep signals apart")
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    (tmp_path / "a" / "file").touch()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path, capture_output=True, text=True, check=True, env=dict(os.environ),
    )  # fmt: skip
    assert done.stdout.splitlines() == ["apart", "9", "['file']"]
