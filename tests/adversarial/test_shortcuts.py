"""Tasks of the suite whose inputs once let a kernel do less than it is asked for."""

from __future__ import annotations

import pytest

from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.plausible import least_seconds
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.peaks import Bandwidth, Peaks
from tests.adversarial.shortcuts import HONEST_RESAMPLE, SHORTCUTS


@pytest.mark.parametrize("name", SHORTCUTS)
def test_shortcut(evaluator: Evaluator, name: str) -> None:
    id, exploit = SHORTCUTS[name]
    task = as_task(load_suite().workloads[id])
    result = evaluator.evaluate(exploit.given, task)
    assert result.status == exploit.status, result.message
    assert result.performance is None


def test_a_better_algorithm_is_no_cheat(evaluator: Evaluator) -> None:
    """Counting by a scatter takes a thousandth of the comparisons of the definition."""
    task = as_task(load_suite().workloads["systematic_resample__01"])
    result = evaluator.evaluate(HONEST_RESAMPLE, task)
    assert result.status == "correct", result.message
    peaks = Peaks(
        target="llvm", cpu="", threads=2, flops_f32=1e11, date="", method="", kernels={},
        bandwidths=(Bandwidth(working_set=1 << 26, bytes_per_s=3e10, kernel=""),),
    )  # fmt: skip
    assert least_seconds(task, peaks)[0] < 1e-6
