"""Faults planted in the compiler are found by the compiled parts: a few of `tests.fuzz.planted`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.fuzz.corpus import ROOT


@pytest.mark.parametrize("name", ["ring", "decide", "tail"])
def test_a_planted_fault_is_found(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.planted", name],
        cwd=ROOT,
        env={**os.environ, "TVM_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NOT FOUND" not in done.stdout
