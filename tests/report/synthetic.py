"""Runs made by hand that look like real ones: records of the whole suite, none of them measured."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from edgekernelbench.compilers.base import StaticFacts
from edgekernelbench.evaluator.model import (
    BaselineResult,
    Correctness,
    Environment,
    Evaluation,
    EvaluationStatus,
    Performance,
    Resources,
)
from edgekernelbench.records.read import RECORDS, text_key, text_path
from edgekernelbench.records.schema import Record, Spent, Step, TaskFacts, record_id
from edgekernelbench.suite import Workload, load_suite

FAILED = (
    (EvaluationStatus.INVALID_IR, "E301: X[i + 1] may read beyond X"),
    (EvaluationStatus.WRONG_RESULT, "132 of 4096 elements are out of tolerance"),
    (EvaluationStatus.COMPILE_ERROR, "the compiler gave up after 3 functions"),
    (EvaluationStatus.RUN_TIMEOUT, "no result within 20 s"),
    (EvaluationStatus.NO_KERNEL, "the agent ended without a candidate"),
    (EvaluationStatus.INFRA_ERROR, "the device went away"),
)


def records(
    agent: str = "tuner",
    workloads: Sequence[Workload] | None = None,
    epochs: int = 1,
    skill: float = 0.7,
    target: str = "llvm",
    model: str | None = None,
) -> list[Record]:
    """A record for each workload and epoch, the same ones for the same arguments.

    Args:
        skill: chance that an attempt is correct.
    """
    chosen = list(load_suite().workloads.values()) if workloads is None else workloads
    return [
        _record(workload, epoch, agent, skill, target, model)
        for workload in chosen
        for epoch in range(epochs)
    ]


def write(folder: Path, found: Iterable[Record], texts: Iterable[str] = ()) -> Path:
    """Puts records into the folder of a run, each under its own attempt's id."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(_under_its_id(record).model_dump_json() + "\n" for record in found)
    (folder / RECORDS).write_text(lines, encoding="utf-8")
    (folder / "texts").mkdir(exist_ok=True)
    for text in texts:
        text_path(folder, text_key(text)).write_text(text, encoding="utf-8")
    return folder


def _under_its_id(record: Record) -> Record:
    own = record_id(record.task.workload, record.task.target, record.agent, record.epoch)
    return record.model_copy(update={"id": own})


def _record(
    workload: Workload, epoch: int, agent: str, skill: float, target: str, model: str | None
) -> Record:
    draw = random.Random(f"{workload.id} {epoch} {agent} {target}")
    evaluation = _evaluation(workload, draw, skill, target)
    status, message = EvaluationStatus.NO_KERNEL, "the agent ended without a candidate"
    if evaluation is not None:
        status, message = evaluation.status, ""
    header = f"{workload.id} of {agent}, attempt {epoch}"
    return Record(
        id=record_id(workload.id, target, agent, epoch),
        run=agent,
        task=TaskFacts(
            workload=workload.id, pattern=workload.definition.id, level=workload.level,
            family=workload.family, domain=workload.domain, dtype=str(workload.dtype),
            tolerance=str(workload.tolerance), tolerance_version=2, target=target, backend=target,
        ),
        agent=agent,
        model=model,
        epoch=epoch,
        seed=draw.getrandbits(62),
        status=status,
        kernel=None if evaluation is None else f"kernel k {{\n  # {header}\n" + _lines(draw) + "}",
        kernel_hash=None if evaluation is None else evaluation.kernel_hash,
        evaluation=evaluation,
        limits=Spent(evaluations=8),
        spent=Spent(evaluations=draw.randint(2, 8), tokens=4000, seconds=draw.uniform(5, 90)),
        trajectory=tuple(_steps(draw)),
        message=message,
        started="2026-12-01T10:00:00+00:00",
        seconds=30.0,
        versions={"edgekernelbench": "0.1.0", "apache-tvm": "0.27.0"},
    )  # fmt: skip


def _lines(draw: random.Random) -> str:
    return "".join(
        f"  acc{n}[i: M, j: N] = sum[k: K](X[i, k] * W{draw.randint(0, 99)}[k, j])\n"
        for n in range(draw.randint(3, 20))
    )


def _evaluation(
    workload: Workload, draw: random.Random, skill: float, target: str
) -> Evaluation | None:
    digest = f"{draw.getrandbits(256):064x}"
    if draw.random() >= skill:
        status, message = draw.choice(FAILED)
        if status is EvaluationStatus.NO_KERNEL:
            return None
        wrong = status is EvaluationStatus.WRONG_RESULT
        return Evaluation(
            status=status, workload=workload.id, target=target, kernel_hash=digest,
            message=message, correctness=_correctness(workload, False) if wrong else None,
            diagnostics=(_diagnostic(),) if status is EvaluationStatus.INVALID_IR else (),
        )  # fmt: skip
    median = 10 ** draw.uniform(0.5, 4)
    baselines = {
        name: _baseline(median, draw, name != "tvm-raw", bias)
        for name, bias in (("tvm", 0.15), ("ort", 0.0), ("tvm-tuned", -0.1), ("tvm-raw", 1.2))
    }
    scored = [name for name, result in baselines.items() if result.scored]
    best = min(scored, key=lambda name: baselines[name].median_us or 0.0)
    return Evaluation(
        status=EvaluationStatus.CORRECT, workload=workload.id, target=target, kernel_hash=digest,
        correctness=_correctness(workload, True), performance=_performance(median, draw),
        baselines=baselines, best=best, resources=_resources(workload, draw),
        environment=Environment(cpu="AMD EPYC", system="Linux", threads=2, load_average=0.1),
        timings={"build": draw.random(), "measure": draw.random()},
    )  # fmt: skip


def _correctness(workload: Workload, passed: bool) -> Correctness:
    return Correctness(
        passed=passed, checked_samples=4, checked_sets=3, tolerance=str(workload.tolerance),
        tolerance_version=2, matched_ratio=1.0 if passed else 0.97,
    )  # fmt: skip


def _samples(median: float, draw: random.Random) -> tuple[float, ...]:
    return tuple(median * draw.lognormvariate(0.0, 0.03) for _ in range(48))


def _performance(median: float, draw: random.Random) -> Performance:
    return Performance(
        median_us=median, low_us=median * 0.98, high_us=median * 1.02,
        samples_us=_samples(median, draw), timer="perf_counter_ns/child", rounds=48,
        calls_per_sample=1, threads=2, replicas=4, launch_overhead_us=1.0,
        overhead_dominated=median < 4, interval_reached=True,
    )  # fmt: skip


def _baseline(median: float, draw: random.Random, scored: bool, bias: float) -> BaselineResult:
    speedup = draw.lognormvariate(bias, 0.5)
    own = median * speedup
    return BaselineResult(
        status="measured", scored=scored, median_us=own, low_us=own * 0.98, high_us=own * 1.02,
        speedup=speedup, speedup_low=speedup * 0.95, speedup_high=speedup * 1.05,
        route="ONNX twin", samples_us=_samples(own, draw), rounds=48, calls_per_sample=1,
    )  # fmt: skip


def _resources(workload: Workload, draw: random.Random) -> Resources:
    touched = int(workload.bytes_touched)
    nest = "parallel i0 in 288:\n" + "".join(
        f"  for i{n} in {draw.randint(2, 64)}:\n" for n in range(draw.randint(4, 16))
    )
    return Resources(
        facts=StaticFacts(
            flops=float(workload.flops), io_bytes=touched, packed_bytes=0, workspace_bytes=0,
            code_bytes=draw.randint(1000, 9000), compile_seconds=draw.random(), nest=nest,
        ),
        memory_bytes=touched, first_call_us=draw.uniform(100, 9000),
    )  # fmt: skip


def _diagnostic() -> dict[str, object]:
    return {
        "code": "E301",
        "rule": "every access lies within its array",
        "message": "X[i + 1] may read beyond X",
        "severity": "error",
        "help": ["clamp the index"],
        "notes": [],
        "line": 3,
        "column": 5,
        "rendered": "error[E301]: X[i + 1] may read beyond X\n"
        " 3 | Y[i] = X[i + 1]\n   |        ^^^^^^^^",
    }


def _steps(draw: random.Random) -> Iterable[Step]:
    best, now = None, 0.0
    for number in range(draw.randint(2, 8)):
        layer = draw.choice(("compute", "schedule", "memory"))
        median = 10 ** draw.uniform(1, 3)
        now += draw.uniform(1, 9)
        yield Step(
            action="evaluate", seconds=now, layer=layer, status=EvaluationStatus.CORRECT,
            reason=f"change {number} of the {layer} layer, {draw.randint(0, 999)} lanes",
            median_us=median, before_us=best,
        )  # fmt: skip
        best = median if best is None else min(best, median)
