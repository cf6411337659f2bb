"""Values that several test files need: evaluations and records made by hand."""

from __future__ import annotations

from edgekernelbench.evaluator.model import (
    BaselineResult,
    Correctness,
    Evaluation,
    EvaluationStatus,
    Performance,
)
from edgekernelbench.records.schema import Record, Spent, TaskFacts, record_id


def performance(median: float = 10.0) -> Performance:
    return Performance(
        median_us=median,
        low_us=median * 0.99,
        high_us=median * 1.01,
        samples_us=(median,) * 8,
        timer="perf_counter_ns/child",
        rounds=8,
        calls_per_sample=1,
        threads=2,
        launch_overhead_us=1.0,
        overhead_dominated=False,
        interval_reached=True,
    )


def baseline(speedup: float, low: float, scored: bool = True) -> BaselineResult:
    return BaselineResult(
        status="measured",
        scored=scored,
        median_us=10 * speedup,
        low_us=10 * speedup,
        high_us=10 * speedup,
        speedup=speedup,
        speedup_low=low,
        speedup_high=speedup * 1.1,
    )


def correct(workload: str, baselines: dict[str, BaselineResult], best: str | None) -> Evaluation:
    return Evaluation(
        status=EvaluationStatus.CORRECT,
        workload=workload,
        target="llvm",
        kernel_hash="ab" * 32,
        correctness=Correctness(
            passed=True,
            checked_samples=3,
            checked_sets=3,
            tolerance="f32_reduction",
            tolerance_version=1,
        ),
        performance=performance(),
        baselines=baselines,
        best=best,
    )


def record(
    workload: str = "matmul_nt__01",
    evaluation: Evaluation | None = None,
    status: EvaluationStatus | None = None,
    epoch: int = 0,
    agent: str = "tuner",
    level: int = 1,
    family: str = "matmul",
) -> Record:
    """A record with the evaluation's status, or with the one given and no evaluation."""
    if status is None:
        status = EvaluationStatus.NO_KERNEL if evaluation is None else evaluation.status
    return Record(
        id=record_id(workload, "llvm", agent, epoch),
        run="run",
        task=TaskFacts(
            workload=workload,
            pattern=workload.split("__")[0],
            level=level,
            family=family,
            domain="language",
            dtype="f32",
            tolerance="f32_reduction",
            tolerance_version=1,
            target="llvm",
        ),
        agent=agent,
        epoch=epoch,
        seed=1,
        status=status,
        kernel=None if evaluation is None else "kernel k",
        kernel_hash=None if evaluation is None else evaluation.kernel_hash,
        evaluation=evaluation,
        limits=Spent(evaluations=8),
        spent=Spent(evaluations=8, tokens=0, seconds=1.0),
        started="2026-01-01T00:00:00+00:00",
        seconds=1.0,
        versions={"edgekernelbench": "0.1.0"},
    )
