"""Whole models: the bundle's C function beside a truth, and the table of reports made by hand."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest

from benchmarks import optimize_models as script
from edgekernelbench.deploy import Deployed, Request, deploy
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.optimize.figures import Figures
from edgekernelbench.optimize.report import PartReport, Report, WholeReport
from edgekernelbench.suite.correctness import Correctness
from edgekernelbench.suite.find import find_workload
from edgekernelbench.targets.host import host_target


def test_a_bundle_is_called_through_its_function(tmp_path: Path) -> None:
    task = find_workload("softmax_last__02")
    made = deploy(Request(task.canonical(), host_target(), tmp_path / "b", workload=task))
    assert isinstance(made, Deployed), made
    inputs = task.inputs(3)
    bundle = script.Bundle(tmp_path / "b", tmp_path)
    outputs = bundle(task, [inputs["x"]])
    assert task.compare(outputs, task.truth(inputs)).passed
    wrong = {name: np.ascontiguousarray(a[..., ::-1]) for name, a in outputs.items()}
    assert not task.compare(wrong, task.truth(inputs)).passed


def test_no_bundle_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no bundle there"):
        script.Bundle(tmp_path, tmp_path)


def _verdict(worst: float) -> Correctness:
    return Correctness(
        passed=worst <= 1, matched_ratio=1, worst_error=worst, max_abs=2e-6, max_rel=0,
        tolerance="f32_graph", tolerance_version=1, outputs=(),
    )  # fmt: skip


def _report(speedups: dict[str, float]) -> Report:
    part = PartReport(
        id="parts__conv_01", operators=("Conv",), nodes=("/conv",), count=4, share=1.0,
        evaluations=7, before_us=4.0, after_us=2.0, gain=2.0, used=True, reason="",
        speedups=speedups,
    )  # fmt: skip
    figures = Figures(
        status=EvaluationStatus.CORRECT, median_us=250.0, speedups=speedups,
        intervals={name: (ratio - 0.1, ratio + 0.1) for name, ratio in speedups.items()},
    )  # fmt: skip
    whole = WholeReport(
        before_kind="canonical", before=figures, kind="joined", after=figures, gain=1.5
    )
    return Report(
        model="m.onnx", workload="m", target="llvm", cpu="znver4", threads=2, agent="tuner",
        budget=9, interrupted=False, parts=(part,), whole=whole, notes=("noisy",),
    )  # fmt: skip


def test_a_row_has_everything_that_was_measured(tmp_path: Path) -> None:
    known = {"ds_cnn": _report({"tvm": 1.2, "tvm-raw": 9.0})}
    line = '{"model": "ds_cnn", "commit": "abc", "seconds": 60.5}\n'
    (tmp_path / script.STARTS).write_text(line + line)
    text = "\n".join(script.page(tmp_path, known, {"ds_cnn": [_verdict(0.5), _verdict(0.2)]}))
    row = "| ds_cnn | 4 (1) | 7 of 9 | 2e-06 (0.5 of the allowed) | 0.250 "
    assert f"{row}| 9.00 [8.90, 9.10] | 1.20 [1.10, 1.30] | - | 121 |" in text
    assert "- ds_cnn: 1.20 times as fast as `tvm`, wanted 1.3." in text
    assert "`tvm-raw`, wanted" not in text and "- ds_cnn: noisy" in text


def test_outputs_outside_the_tolerance_show() -> None:
    row = script._row("m", _report({}), [_verdict(0.5), _verdict(3.0)], 1.0)
    assert "(3 of the allowed), outside the tolerance" in row


@pytest.mark.parametrize("text", ["ds_cnn", "ds_cnn=0", "ds_cnn=x", "nothing=3"])
def test_a_budget_that_is_none(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write MODEL=N"):
        script._budget(text)


def test_another_budget_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ds_cnn").mkdir()
    (tmp_path / "ds_cnn" / "report.json").write_text(_report({}).model_dump_json())
    with pytest.raises(UsageError, match="9 evaluations, not 12"):
        script.measure(tmp_path, "ds_cnn", 12)
