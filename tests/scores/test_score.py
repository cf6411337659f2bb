"""Scores agree with numbers computed by hand."""

from __future__ import annotations

import itertools

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.records.schema import Record, Spent
from edgekernelbench.scores.score import score
from edgekernelbench.scores.statistics import geometric_mean, pass_at_k, wilson
from tests.factories import baseline, correct, record


@pytest.mark.parametrize(("n", "c", "k"), [(5, 2, 1), (5, 2, 3), (6, 0, 2), (6, 6, 2), (4, 3, 4)])
def test_pass_at_k_is_the_share_of_subsets_with_a_success(n: int, c: int, k: int) -> None:
    outcomes = [True] * c + [False] * (n - c)
    subsets = list(itertools.combinations(outcomes, k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


def test_pass_at_k_refuses_too_few_attempts() -> None:
    with pytest.raises(ValueError, match="3 attempts needed"):
        pass_at_k(2, 1, 3)


def test_wilson_agrees_with_a_published_example() -> None:
    # Newcombe 1998, table I: 81 of 263, score interval without continuity correction.
    low, high = wilson(81 / 263, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)
    assert wilson(0.0, 0) == (0.0, 1.0)


def test_geometric_mean_and_its_interval() -> None:
    value, low, high = geometric_mean([0.5, 2.0, 1.0])
    assert value == pytest.approx(1.0)
    assert 0.5 <= low < value < high <= 2.0
    with pytest.raises(ValueError, match="positive"):
        geometric_mean([1.0, 0.0])


def _records() -> list:
    fast = correct("a__01", {"tvm": baseline(3.0, 2.8), "ort": baseline(1.2, 1.1)}, "ort")
    noisy = correct("b__01", {"tvm": baseline(1.1, 0.9)}, "tvm")
    return [
        record("a__01", fast),
        record("b__01", noisy, level=2, family="conv"),
        record("c__01", status=EvaluationStatus.WRONG_SHAPE_OR_DTYPE, level=2, family="conv"),
        record("d__01", status=EvaluationStatus.INFRA_ERROR),
    ]


def test_headline_figures() -> None:
    result = score(_records())
    assert result["n"] == 3
    assert result["attempts"] == 4
    assert result["outside_denominator"] == 1
    assert result["statuses"] == {"correct": 2, "wrong_shape_or_dtype": 1, "infra_error": 1}
    assert result["correct_at"]["1"]["value"] == pytest.approx(2 / 3)
    assert (result["correct_at"]["1"]["count"], result["correct_at"]["1"]["n"]) == (2, 3)
    tvm = result["fast_at"]["tvm"]["1.0"]
    assert (tvm["count"], tvm["n"]) == (1, 3), "the lower bound decides, a failure is not fast"
    assert tvm["by_median"]["count"] == 2
    best = result["fast_at"]["best"]["1.0"]
    assert (best["count"], best["n"]) == (1, 3)
    assert result["geomean_speedup"]["tvm"] == pytest.approx((3.0 * 1.1) ** 0.5)
    assert result["geomean_speedup"]["best"] == pytest.approx((1.2 * 1.1) ** 0.5)


def test_a_task_without_the_baseline_leaves_its_denominator() -> None:
    ort = score(_records())["fast_at"]["ort"]["1.0"]
    assert (ort["count"], ort["n"], ort["without_baseline"]) == (1, 2, 1)


def test_groups_add_up() -> None:
    result = score(_records())
    assert sum(g["attempts"] for g in result["by_family"].values()) == 4
    assert result["by_level"]["2"]["correct_at"]["1"]["count"] == 1


def test_epochs_are_attempts_at_one_task() -> None:
    good = correct("a__01", {"tvm": baseline(2.0, 1.9)}, "tvm")
    records = [record("a__01", good), record("a__01", epoch=1), record("a__01", good, epoch=2)]
    result = score(records, ks=(1, 2, 5))
    assert result["n"] == 1
    assert result["correct_at"]["1"]["value"] == pytest.approx(2 / 3)
    assert result["correct_at"]["2"]["value"] == pytest.approx(1.0)
    assert "5" not in result["correct_at"]


def test_zero_records_and_zero_correct_are_shares_not_crashes() -> None:
    assert score([])["correct_at"]["1"]["value"] is None
    result = score([record("a__01")])
    assert result["correct_at"]["1"]["value"] == 0
    assert result["geomean_speedup"]["best"] is None


def test_unlike_records_are_not_mixed() -> None:
    with pytest.raises(UsageError, match="more than one agent"):
        score([record("a__01"), record("b__01", agent="canonical")])


def test_backends_of_one_agent_are_scored_together_and_apart() -> None:
    def on(target: str, backend: str | None, made: Record) -> Record:
        task = made.task.model_copy(update={"target": target, "backend": backend})
        return made.model_copy(update={"task": task})

    right = correct("a__01", {"tvm": baseline(2.0, 1.8)}, "tvm")
    result = score(
        [
            on("llvm", None, record("a__01", right)),  # as the first releases wrote it
            on("board", "llvm", record("a__01")),
            on("phone", "opencl", record("a__01", right)),
        ]
    )
    assert result["n"] == 3, "a task is a workload on a target"
    assert {name: group["n"] for name, group in result["by_target"].items()} == {
        "board": 1, "llvm": 1, "phone": 1,
    }  # fmt: skip
    llvm, opencl = result["by_backend"]["llvm"], result["by_backend"]["opencl"]
    share = llvm["correct_at"]["1"]
    assert (share["count"], share["n"]) == (1, 2) and share["low"] < 0.5 < share["high"]
    fast = opencl["fast_at"]["best"]["1.0"]
    assert (fast["count"], fast["n"]) == (1, 1) and fast["low"] < 1.0


def test_what_was_spent_is_told() -> None:
    one = record("a__01")
    two = record("b__01").model_copy(update={"spent": Spent(tokens=7, cost=0.25)})
    spent = score([one, two])["spent"]
    assert spent == {"evaluations": 8, "tokens": 7, "seconds": 1.0, "cost": 0.25}
    assert score([one])["spent"]["cost"] is None
