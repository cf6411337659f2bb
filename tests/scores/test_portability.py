"""Correct and fast on all targets, and what becomes of kernels that one does not support."""

from __future__ import annotations

from typing import Any

from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.records.schema import Record
from edgekernelbench.scores.score import score
from tests.factories import baseline, correct, record


def on(target: str, made: Record, **changed: Any) -> Record:
    task = made.task.model_copy(update={"target": target, "backend": target})
    return made.model_copy(update={"task": task, "id": f"{made.id}|{target}", **changed})


def right(workload: str, target: str, low: float | None) -> Record:
    ratios = {} if low is None else {"tvm": baseline(low * 1.01, low)}
    evaluation = correct(workload, ratios, None if low is None else "tvm")
    made = record(workload, evaluation=evaluation)
    return on(target, made)


def wrong(workload: str, target: str, status: EvaluationStatus) -> Record:
    made = record(workload)
    return on(target, made, status=status, evaluation=None, message="why")


def scored(*records: Record) -> dict[str, Any]:
    return score(records)["portability"]


def test_correct_and_fast_on_all_and_on_one() -> None:
    found = scored(
        right("a", "llvm", 1.2), right("a", "opencl", 1.1),
        right("b", "llvm", 0.9), right("b", "opencl", 1.1),
        right("c", "llvm", 1.5), wrong("c", "opencl", EvaluationStatus.WRONG_RESULT),
        right("d", "llvm", 0.8), right("d", "opencl", 0.7),
    )  # fmt: skip
    assert found["targets"] == ["llvm", "opencl"] and found["kernels"] == 4
    counts = {k: (found[k]["count"], found[k]["n"]) for k in
              ("correct_on_all", "fast_on_all", "fast_on_one")}  # fmt: skip
    assert counts == {
        "correct_on_all": (3, 4), "fast_on_all": (1, 4), "fast_on_one": (3, 4)
    }  # fmt: skip
    assert found["left_out"] == {}


def test_unsupported_leaves_the_strict_count_and_is_told() -> None:
    found = scored(
        right("a", "llvm", 1.2), wrong("a", "opencl", EvaluationStatus.UNSUPPORTED),
        right("b", "llvm", 1.2), right("b", "opencl", 1.2),
        right("c", "llvm", 1.2), wrong("c", "opencl", EvaluationStatus.INFRA_ERROR),
        right("d", "llvm", 1.2),
    )  # fmt: skip
    assert found["left_out"] == {"infra_error": 1, "missing": 1, "unsupported": 1}
    assert (found["correct_on_all"]["count"], found["correct_on_all"]["n"]) == (1, 1)
    anywhere = found["where_supported"]
    assert (anywhere["correct_on_all"]["count"], anywhere["correct_on_all"]["n"]) == (2, 2)


def test_without_a_baseline_nothing_is_fast_or_slow() -> None:
    found = scored(
        right("a", "llvm", 1.2), right("a", "opencl", None),
        wrong("b", "llvm", EvaluationStatus.CRASHED), right("b", "opencl", 2.0),
    )  # fmt: skip
    assert found["without_baseline"] == 1
    assert (found["fast_on_all"]["count"], found["fast_on_all"]["n"]) == (0, 1)
    assert (found["fast_on_one"]["count"], found["fast_on_one"]["n"]) == (1, 1)
    assert found["correct_on_all"]["n"] == 2


def test_one_target_has_no_portability() -> None:
    assert "portability" not in score([right("a", "llvm", 1.0)])
