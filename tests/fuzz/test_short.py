"""The short forms of the fuzzing runs, and every input that once showed a fault.

Each runs in a process of its own: a child forked after a parallel kernel ran here would hang.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.targets.registry import find_target
from tests.fuzz.corpus import ROOT
from tests.fuzz.jobs import found_files

COUNTS = {"parser": 4000, "programs": 100, "layers": 80, "gpu": 40}


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fuzz", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )


def _pocl() -> bool:
    try:
        return find_target("opencl").opencl is not None
    except UsageError:
        return False


@pytest.mark.parametrize("name", COUNTS)
def test_short_form_finds_nothing(name: str, tmp_path: Path) -> None:
    done = fuzz(name, "--count", str(COUNTS[name]), "--jobs", "2", "--out", str(tmp_path))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\ninputs are in {tmp_path}"
    summary = json.loads((tmp_path / "result.json").read_text())["parts"][name]
    assert summary["inputs"] == COUNTS[name]
    assert f"| {name} | {COUNTS[name]} |" in done.stdout
    counts = summary["counts"]
    good = {
        "parser": "verified",
        "programs": "well formed: agrees",
        "layers": "well formed: agrees",
        "gpu": "well formed: agrees" if _pocl() else "well formed: agrees, not run",
    }
    assert counts[good[name]] > COUNTS[name] / 100, counts


def test_found_inputs_stay_right() -> None:
    files = [str(file) for file in found_files()]
    done = fuzz("replay", *files)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert len(done.stdout.splitlines()) == len(files)
