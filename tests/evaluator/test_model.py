"""The status decides which figures an evaluation may carry."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from edgekernelbench.evaluator.model import (
    OUTSIDE_DENOMINATOR,
    BaselineResult,
    Correctness,
    Evaluation,
    EvaluationStatus,
    Performance,
)

PERFORMANCE = Performance(
    median_us=10, low_us=9, high_us=11, samples_us=(10,), timer="t", rounds=6, calls_per_sample=20,
    threads=2, launch_overhead_us=1, overhead_dominated=False, interval_reached=True,
)  # fmt: skip
RIGHT = Correctness(
    passed=True, checked_samples=4, checked_sets=3, tolerance="x", tolerance_version=1
)
WRONG = RIGHT.model_copy(update={"passed": False})
MEASURED = BaselineResult(
    status="measured", scored=True, median_us=20, low_us=19, high_us=21, speedup=2,
    speedup_low=1.9, speedup_high=2.1,
)  # fmt: skip


def evaluation(status: str, **fields: Any) -> Evaluation:
    fields = {"message": "because", **fields}
    return Evaluation(status=EvaluationStatus(status), workload="w", target="llvm", **fields)


def test_statuses_are_the_closed_set() -> None:
    assert [s.value for s in EvaluationStatus] == [
        "correct", "wrong_result", "wrong_shape_or_dtype", "crashed", "run_timeout",
        "compile_error", "compile_timeout", "invalid_ir", "unparseable", "no_kernel",
        "over_budget", "implausible", "unsupported", "infra_error", "provider_error",
        "invalid_reference",
    ]  # fmt: skip
    assert {s.value for s in OUTSIDE_DENOMINATOR} == {
        "unsupported", "infra_error", "provider_error", "invalid_reference",
    }  # fmt: skip


@pytest.mark.parametrize(
    "figures",
    [
        {"median_us": 0}, {"median_us": -10, "low_us": -11}, {"low_us": -9}, {"median_us": 8},
        {"median_us": 12}, {"high_us": 1e300}, {"samples_us": (10, 0)}, {"median_us": float("nan")},
    ],
)  # fmt: skip
def test_times_that_cannot_be(figures: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Performance.model_validate(PERFORMANCE.model_dump() | figures)


@pytest.mark.parametrize(
    "figures",
    [
        {"speedup": 1}, {"speedup_low": 9}, {"speedup_high": 1}, {"speedup": 0}, {"low_us": 22},
        {"speedup_low": -1}, {"samples_us": (-1,)}, {"speedup": 1e12, "speedup_high": 1e12},
    ],
)  # fmt: skip
def test_speedups_that_cannot_be(figures: dict[str, Any]) -> None:
    """A bound beyond its own median would count as fast where the kernel is slow."""
    with pytest.raises(ValidationError):
        BaselineResult.model_validate(MEASURED.model_dump() | figures)


def test_what_fits() -> None:
    evaluation("correct", correctness=RIGHT, performance=PERFORMANCE)
    evaluation("implausible", correctness=RIGHT, quarantined=PERFORMANCE)
    evaluation("wrong_result", correctness=WRONG)
    for status in EvaluationStatus:
        if status not in ("correct", "implausible", "wrong_result"):
            evaluation(status.value)


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        ("correct", {"correctness": RIGHT}),
        ("correct", {"performance": PERFORMANCE}),
        ("correct", {"correctness": WRONG, "performance": PERFORMANCE}),
        ("wrong_result", {"correctness": WRONG, "performance": PERFORMANCE}),
        ("wrong_result", {"correctness": RIGHT}),
        ("wrong_result", {}),
        ("crashed", {"performance": PERFORMANCE}),
        ("crashed", {"correctness": WRONG}),
        ("crashed", {"message": ""}),
        ("crashed", {"baselines": {"tvm": MEASURED}}),
        ("implausible", {"correctness": RIGHT, "performance": PERFORMANCE}),
        ("crashed", {"quarantined": PERFORMANCE}),
        ("correct", {"correctness": RIGHT, "performance": PERFORMANCE, "best": "tvm"}),
        (
            "correct",
            {
                "correctness": RIGHT,
                "performance": PERFORMANCE,
                "baselines": {"raw": MEASURED.model_copy(update={"scored": False})},
                "best": "raw",
            },
        ),
        (
            "correct",
            {
                "correctness": RIGHT,
                "performance": PERFORMANCE,
                "baselines": {"best": MEASURED.model_copy(update={"scored": False})},
            },
        ),
    ],
)
def test_what_does_not(status: str, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        evaluation(status, **fields)


def test_a_failed_baseline_has_no_figures() -> None:
    with pytest.raises(ValidationError):
        BaselineResult(status="failed", scored=True, median_us=1.0)
    with pytest.raises(ValidationError):
        BaselineResult(status="measured", scored=True, median_us=1.0)
    with pytest.raises(ValidationError):
        BaselineResult(status="wrong_result", scored=True, samples_us=(1.0,))


def test_nan_is_never_stored() -> None:
    with pytest.raises(ValidationError):
        PERFORMANCE.model_copy().model_validate(
            PERFORMANCE.model_dump() | {"median_us": float("nan")}
        )
