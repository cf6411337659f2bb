"""A sample of the canonical programs through the C compiler; the whole is benchmarks/c_sweep.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "c_sweep.py"


def sweep(file: Path, *more: str) -> list[dict]:
    command = (sys.executable, str(SCRIPT), str(file), *more)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    bad = [row for row in rows if row["ok"] is not True]
    assert not bad, bad
    assert f"{len(rows)} good, 0 not, 0 skipped, of {len(rows)}" in done.stdout
    return rows


def test_a_sample_of_the_suite_is_right_at_small_sizes(tmp_path: Path) -> None:
    rows = sweep(tmp_path / "rows.jsonl", "--small", "--every", "27")
    assert len(rows) >= 24 and all(row["code_bytes"] > 0 for row in rows)


def test_both_compilers_are_timed_in_turns(tmp_path: Path) -> None:
    (row,) = sweep(tmp_path / "rows.jsonl", "--gallery", "--times", "--only", "matmul_tn")
    assert row["size"] == "full" and row["c_us"] > 0 and row["llvm_us"] > 0
