"""`ekb optimize` from the outside: killed, interrupted, resumed, finished."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.optimize.graphs import Net
from tests.suite.own.models import save

_MAIN = """
import signal
from edgekernelbench.cli.main import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be inherited as ignored
main()
"""
EKB = [sys.executable, "-c", _MAIN]
BUDGET = 5


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Two equal layers and a softmax."""
    net = Net()
    x = "x"
    for _ in range(2):
        x = net("Relu", net("Add", net("MatMul", x, net.weight(64, 64)), net.weight(64)))
    return save(net.model([32, 64], net("Softmax", x)), tmp_path / "layers.onnx")


def steps(out: Path) -> list[dict[str, Any]]:
    path = out / "state.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def begin(model: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    command = [*EKB, "optimize", str(model), "-o", str(out), "--budget", str(BUDGET), *more]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(run: subprocess.Popen[str], code: int) -> tuple[str, str]:
    said, told = run.communicate(timeout=900)
    assert run.returncode == code, told
    return said, told


def when(out: Path, run: subprocess.Popen[str], step: str) -> None:
    """Waits until that step is noted."""
    deadline = time.monotonic() + 600
    while not any(each["step"] == step for each in steps(out)):
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_killed_optimisation_goes_on_and_repeats_nothing(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = begin(model, out)
    when(out, run, "found")
    children = psutil.Process(run.pid).children(recursive=True)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    psutil.wait_procs(children, timeout=60)
    assert not (out / "model.ekir").exists() and not (out / "report.md").exists()
    with (out / "state.jsonl").open("ab") as file:
        file.write(b'{"step":"opt')
    finish(begin(model, out), 0)
    done = Counter(
        (each["step"], each.get("part")) for each in steps(out) if each["step"] != "found"
    )
    assert set(done.values()) == {1}
    report = json.loads((out / "report.json").read_text())
    assert not report["interrupted"]
    assert {part["id"]: part["count"] for part in report["parts"]} == {
        "parts__matmul_01": 2,
        "parts__softmax_02": 1,
    }
    assert report["whole"]["after"]["status"] == "correct"
    assert {"tvm", "tvm-raw", "ort"} <= set(report["whole"]["after"]["speedups"])
    assert "selftest passed" in report["bundle"]
    _, told = finish(begin(model, out), 0)
    assert "nothing is left to do" in told
    _check_kernel(out)


def _check_kernel(out: Path) -> None:
    """The kernel is one like any other, on the tasks that lie in the folder."""
    environment = {**os.environ, "EDGEKERNELBENCH_HOME": str(out / "tasks")}
    command = [*EKB, "check", str(out / "model.ekir"), "--workload", "layers", "--target", "llvm"]
    subprocess.run(command, check=True, env=environment, timeout=300, stdout=subprocess.DEVNULL)


def test_an_interrupted_one_ships_what_it_has_and_goes_on(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = begin(model, out, "--no-bundle", "--json")
    when(out, run, "found")
    os.kill(run.pid, signal.SIGINT)
    said, told = finish(run, 130)
    assert "interrupted" in told and "Traceback" not in told
    report = json.loads(said)
    assert report["interrupted"] and report["whole"]["after"]["status"] == "correct"
    assert (out / "model.ekir").exists() and not (out / "bundle").exists()
    assert "interrupted" in (out / "report.md").read_text()
    said, _ = finish(begin(model, out, "--no-bundle", "--json"), 0)
    assert not json.loads(said)["interrupted"]
    assert not (out / "bundle").exists()
