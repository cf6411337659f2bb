"""The target ``c`` from the outside: judged, timed beside the baselines, recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.suite.find import find_workload
from edgekernelbench.targets.cc import find_compiler
from edgekernelbench.targets.registry import find_target

EKB = [sys.executable, "-m", "edgekernelbench.cli"]
WORKLOAD = "gelu_erf__02"


def canonical() -> str:
    command = [*EKB, "suite", "canonical", WORKLOAD]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def with_compiler(folder: Path, does: str, **settings: float) -> Evaluation:
    """An evaluation with a compiler that is the system's, but for what it does with this kernel."""
    file = folder / "cc"
    real = find_compiler().command[0]
    file.write_text(
        f'#!/bin/sh\nif grep -q "Kernel gelu_erf" kernel.c 2>/dev/null; then {does}; fi\n'
        f'exec {real} "$@"\n'
    )
    file.chmod(0o755)
    chosen = EvalSettings(baselines=(), roofline=False, **settings)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CC", str(file))
        with Evaluator(find_target("c"), settings=chosen, cache_dir=folder / "cache") as evaluator:
            return evaluator.evaluate(canonical(), as_task(find_workload(WORKLOAD)))


def test_a_kernel_is_judged_and_held_against_the_baselines_of_llvm(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [*EKB, "run", "--agent", "canonical", "--target", "c", "--workload", WORKLOAD,
               "--evals", "1", "--out", str(out)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    record = json.loads((out / "records.jsonl").read_text())
    evaluation = record["evaluation"]
    assert record["task"]["target"] == record["task"]["backend"] == "c"
    assert evaluation["status"] == "correct"
    assert "cc" in evaluation["environment"]["versions"]
    assert all(evaluation["baselines"][b]["status"] == "measured" for b in ("tvm", "ort"))
    assert evaluation["resources"]["facts"]["code_bytes"] > 0


def test_what_the_compiler_says_is_handed_on(tmp_path: Path) -> None:
    found = with_compiler(tmp_path, "echo 'kernel.c:9:1: error: not today' >&2; exit 1")
    assert found.status is EvaluationStatus.COMPILE_ERROR
    (diagnostic,) = found.diagnostics
    assert diagnostic["code"] == "E605" and "line 9 of kernel.c" in str(diagnostic["message"])
    assert found.performance is None


def test_a_compiler_that_does_not_end_is_a_timeout(tmp_path: Path) -> None:
    found = with_compiler(tmp_path, "sleep 100", compile_s=5.0)
    assert found.status is EvaluationStatus.COMPILE_TIMEOUT


def test_a_compiler_that_takes_too_much_memory_is_stopped(tmp_path: Path) -> None:
    script = "exec python3 -c 'x = bytearray(64 << 30); x[::4096] = b\"1\" * len(x[::4096])'"
    found = with_compiler(tmp_path, script)
    assert found.status is EvaluationStatus.COMPILE_ERROR
