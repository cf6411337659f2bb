"""docs/lessons.md names tests that exist, for every case that it tells of."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "lessons.md").read_text(encoding="utf-8")
CASES = 39
"""What has happened elsewhere and is known here; it only grows."""


def rows() -> list[list[str]]:
    lines = [line for line in TEXT.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] != "seen in"]


def test_every_case_has_its_answer_and_its_test() -> None:
    assert len(rows()) >= CASES
    for row in rows():
        assert len(row) == 4 and all(row), row
        assert re.fullmatch(r"`tests/[^`]+`(, `tests/[^`]+`)*", row[3]), row[3]


def test_the_tests_exist() -> None:
    named = sorted(set(re.findall(r"`(tests/[^`]+::[^`]+)`", TEXT)))
    assert len(named) > CASES
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *named], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
