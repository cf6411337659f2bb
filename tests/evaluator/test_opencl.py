"""Kernels in the language on PoCL: built by the real compiler, judged and timed like any other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.suite.find import find_workload
from edgekernelbench.targets.registry import find_target


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    settings = EvalSettings(replicas=1, measure_s=0.1, interval=0.5, baselines=("tvm", "ort"))
    cache = tmp_path_factory.mktemp("cache")
    with Evaluator(find_target("opencl"), settings=settings, cache_dir=cache) as made:
        yield made


@pytest.mark.parametrize(("workload", "launches"), [("conv2d_nhwc__01", 1), ("fir_q15__01", 2)])
def test_canonical_programs(workload: str, launches: int, evaluator: Evaluator) -> None:
    task = find_workload(workload)
    result = evaluator.evaluate(task.canonical(), as_task(task))
    assert result.status == "correct", result
    assert result.performance is not None and result.performance.device is not None
    assert result.performance.device.launches == launches
    assert result.baselines["tvm"].status == "measured", result.baselines["tvm"]
    assert result.baselines["tvm"].route.endswith("DLight") and result.best == "tvm"
    assert result.baselines["ort"].status == "unavailable"


def test_f16_is_unsupported_where_the_device_lacks_it(evaluator: Evaluator) -> None:
    task = find_workload("gemv_row_major__01")
    result = evaluator.evaluate(task.canonical(), as_task(task))
    assert result.status == "unsupported" and "f16" in result.message


def test_a_kernel_checked_in_oclgrind(tmp_path: Path) -> None:
    task = find_workload("fir_q15__01")
    file = tmp_path / "kernel.ekir"
    file.write_text(task.canonical())
    command = ["check", str(file), "--workload", task.id, "--target", "opencl", "--oclgrind"]
    done = CliRunner().invoke(app, [*command, "--json"])
    printed = json.loads(done.stdout)
    assert done.exit_code == 0, printed
    assert printed["ok"] and printed["oclgrind"]["outcome"] == "clean"
