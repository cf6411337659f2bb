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
    """Two equal layers and a softmax, too small for threads that would wait for each other."""
    net = Net()
    x = "x"
    for _ in range(2):
        x = net("Relu", net("Add", net("MatMul", x, net.weight(32, 32)), net.weight(32)))
    return save(net.model([8, 32], net("Softmax", x)), tmp_path / "layers.onnx")


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


def test_killed_interrupted_resumed_finished(model: Path, tmp_path: Path) -> None:
    """One optimisation through all of it: each start is a process that loads and measures anew."""
    out = tmp_path / "out"
    _kill(begin(model, out), out)
    interrupted = _interrupt(begin(model, out, "--no-bundle", "--json"), out)
    report = json.loads(finish(begin(model, out, "--json"), 0)[0])
    done = Counter(
        (each["step"], each.get("part")) for each in steps(out) if each["step"] != "found"
    )
    assert set(done.values()) == {1}, "something was done twice"
    assert not report["interrupted"]
    assert {part["id"]: part["count"] for part in report["parts"]} == {
        "parts__matmul_01": 2,
        "parts__softmax_02": 1,
    }
    assert {"tvm", "tvm-raw", "ort"} <= set(report["whole"]["after"]["speedups"])
    assert report["workload"] == interrupted["workload"]
    assert "selftest passed" in report["bundle"]
    _, told = finish(begin(model, out), 0)
    assert "nothing is left to do" in told
    _check_kernel(out)


def _kill(run: subprocess.Popen[str], out: Path) -> None:
    """At work on a part, and in the midst of a line."""
    when(out, run, "found")
    children = psutil.Process(run.pid).children(recursive=True)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    psutil.wait_procs(children, timeout=60)
    assert not (out / "model.ekir").exists() and not (out / "report.md").exists()
    with (out / "state.jsonl").open("ab") as file:
        file.write(b'{"step":"opt')


def _interrupt(run: subprocess.Popen[str], out: Path) -> dict[str, Any]:
    """At work on a part again: it ships what was found before it was killed."""
    assert run.stderr is not None
    for line in run.stderr:
        if line.rstrip().endswith("begins"):
            break
    os.kill(run.pid, signal.SIGINT)
    said, told = finish(run, 130)
    assert "interrupted" in told and "Traceback" not in told
    report = json.loads(said)
    assert report["interrupted"] and report["whole"]["after"]["status"] == "correct"
    assert "interrupted" in (out / "report.md").read_text()
    assert (out / "model.ekir").exists() and not (out / "bundle").exists()
    return report


def _check_kernel(out: Path) -> None:
    """The kernel is one like any other, on the tasks that lie in the folder."""
    environment = {**os.environ, "EDGEKERNELBENCH_HOME": str(out / "tasks")}
    command = [*EKB, "check", str(out / "model.ekir"), "--workload", "layers", "--target", "llvm"]
    subprocess.run(command, check=True, env=environment, timeout=300, stdout=subprocess.DEVNULL)
