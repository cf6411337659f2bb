"""`ekb run` from the outside: killed without warning, taken up again, scored."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

EKB = [sys.executable, "-m", "edgekernelbench.cli"]
WORKLOADS = ["gelu_erf__02", "rope_half_split__01", "cholesky_batched__02", "embedding_bag_sum__01"]


def _command(out: Path, *more: str) -> list[str]:
    named = [part for w in WORKLOADS for part in ("--workload", w)]
    return [*EKB, "run", "--agent", "canonical", "--evals", "1", *named, "--out", str(out), *more]


def _lines(out: Path) -> list[bytes]:
    path = out / "records.jsonl"
    return path.read_bytes().splitlines() if path.exists() else []


def test_a_killed_run_goes_on_without_losing_or_repeating_an_attempt(tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen(
        _command(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while len(_lines(out)) < 2 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    children = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = _lines(out)
    assert len(before) >= 2
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive, "children outlive a killed run"

    done = subprocess.run(_command(out, "--resume"), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    after = _lines(out)
    assert after[: len(before)] == before
    ids = [json.loads(line)["id"] for line in after]
    assert sorted(ids) == sorted(f"{w}|llvm|canonical|0" for w in WORKLOADS)

    again = subprocess.run(_command(out, "--resume"), capture_output=True, text=True, timeout=60)
    assert again.returncode == 0
    assert _lines(out) == after, "a finished run has nothing left to do"

    scored = subprocess.run(
        [*EKB, "score", str(out), "--json"], capture_output=True, text=True, timeout=60
    )
    result = json.loads(scored.stdout)
    assert result["correct_at"]["1"]["count"] == len(WORKLOADS)
    assert result["statuses"] == {"correct": len(WORKLOADS)}
