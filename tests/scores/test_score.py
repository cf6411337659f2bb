"""Scores agree with numbers computed by hand."""

from __future__ import annotations

import itertools
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.cli.tables import score_tables
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.conditions import Noise
from edgekernelbench.evaluator.model import (
    TOO_BUSY,
    BaselineResult,
    Evaluation,
    EvaluationStatus,
    Resources,
)
from edgekernelbench.records.schema import Record, Spent
from edgekernelbench.scores.resources import bytes_of
from edgekernelbench.scores.score import score
from edgekernelbench.scores.shares import BOOTSTRAP, WILSON
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
    assert (result["correct_at"]["5"]["n"], result["correct_at"]["5"]["value"]) == (0, None)


def test_tasks_with_too_few_attempts_are_counted_where_they_are_left_out() -> None:
    infra = EvaluationStatus.INFRA_ERROR
    records = [record("a__01", epoch=e) for e in range(3)]
    records += [record("b__01"), record("b__01", epoch=1, status=infra)]
    records += [record("c__01", status=infra)]
    result = score(records, ks=(1, 2, 4), memory_cap=1)
    for cells in (result["correct_at"], result["memory_cap"]["correct_at"]):
        assert {k: (c["n"], c["too_few_attempts"]) for k, c in cells.items()} == {
            "1": (2, 1),
            "2": (1, 2),
            "4": (0, 3),
        }
    shown = StringIO()
    Console(file=shown, width=200).print(next(iter(score_tables(result))))
    for line in ("Correct@1 leaves out 1 of 3 tasks", "Correct@4 leaves out 3 of 3 tasks"):
        assert line in shown.getvalue()


def test_zero_records_and_zero_correct_are_shares_not_crashes() -> None:
    assert score([])["correct_at"]["1"]["value"] is None
    result = score([record("a__01")])
    assert result["correct_at"]["1"]["value"] == 0
    assert result["geomean_speedup"]["best"] is None


def test_unlike_records_are_not_mixed() -> None:
    with pytest.raises(UsageError, match="more than one agent"):
        score([record("a__01"), record("b__01", agent="canonical")])
    learns = record("b__01").model_copy(update={"agent_options": {"learn": True}})
    with pytest.raises(UsageError, match="more than one set of options"):
        score([record("a__01"), learns])


def test_conditions_of_one_target_are_not_mixed() -> None:
    both = []
    for name, state in (("a__01", "warm"), ("b__01", "cold")):
        found = correct(name, {"tvm": baseline(2.0, 1.9)}, "tvm")
        assert found.performance is not None
        timed = found.performance.model_copy(update={"cache_state": state})
        both.append(record(name, found.model_copy(update={"performance": timed})))
    with pytest.raises(UsageError, match="more than one cache state on llvm"):
        score(both)


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


def _taking(workload: str, needed: int | None, overhead: bool = False, epoch: int = 0) -> Record:
    """Correct, twice as fast as the compiler, with a bill."""
    found = correct(workload, {"tvm": baseline(2.0, 1.9)}, "tvm")
    assert found.performance is not None
    figures = found.performance.model_copy(update={"overhead_dominated": overhead})
    bill = None if needed is None else Resources(memory_bytes=needed, first_call_us=50.0)
    changed = {"performance": figures, "resources": bill}
    return record(workload, found.model_copy(update=changed), epoch=epoch)


def test_under_a_cap_only_what_fits_counts() -> None:
    records = [_taking("a__01", 100), _taking("b__01", 101), _taking("c__01", None)]
    result = score([*records, record("d__01")], memory_cap=100)
    assert result["fast_at"]["best"]["1.0"]["count"] == result["correct_at"]["1"]["count"] == 3
    cap = result["memory_cap"]
    assert (cap["bytes"], cap["over"], cap["unknown"]) == (100, 1, 1)
    for cell in (cap["correct_at"]["1"], cap["fast_at"]["best"]["1.0"]):
        assert (cell["count"], cell["n"]) == (1, 4), "the denominator stays"
    assert "memory_cap" not in score(records)


def test_fast_with_and_without_tasks_of_mere_overhead() -> None:
    records = [_taking("a__01", 1, overhead=True), _taking("b__01", 1), record("c__01")]
    result = score(records)
    cell = result["without_overhead"]["fast_at"]["best"]["1.0"]
    assert (result["fast_at"]["best"]["1.0"]["count"], cell["count"], cell["n"]) == (2, 1, 2)
    assert (result["without_overhead"]["left_out"], result["without_overhead"]["n"]) == (1, 2)


def test_what_correct_kernels_take() -> None:
    bill = score([_taking("a__01", 10), _taking("b__01", 30), _taking("c__01", None)])["resources"]
    assert bill["memory_bytes"] == {"n": 2, "median": 20, "max": 30}
    assert bill["first_call_us"] == {"n": 2, "median": 50.0, "max": 50.0}
    assert bill["code_bytes"] == {"n": 0, "median": None, "max": None}


def test_times_that_cannot_be_relied_on_are_counted() -> None:
    noise = Noise(seconds=1.0, causes=("others",), widening=1.5)

    def timed(workload: str, **changes: Any) -> Record:
        found = correct(workload, {}, None)
        assert found.performance is not None
        figures = found.performance.model_copy(update=changes)
        return record(workload, found.model_copy(update={"performance": figures}))

    busy = Evaluation(
        status=EvaluationStatus.INFRA_ERROR,
        workload="d__01",
        target="llvm",
        message=f"{TOO_BUSY}: why",
    )
    quiet = [timed("a__01"), record("e__01", status=EvaluationStatus.INFRA_ERROR)]
    records = [
        *quiet,
        timed("b__01", noise=noise),
        timed("c__01", noise=noise, interval_reached=False),
        record("d__01", busy),
    ]
    assert score(records)["timing"] == {"correct": 3, "noisy": 2, "wide": 1, "none": 1}
    shown = _shown(records)
    assert "of 3 correct attempts 2 measured on a noisy machine, intervals stretched; 1" in shown
    assert "1 attempts have none, the machine was too busy" in shown
    assert "timing:" not in _shown(quiet)


def test_baselines_that_were_not_there_to_be_beaten_are_told() -> None:
    failed = BaselineResult(status="failed", scored=True, message="killed")
    both = {"tvm": baseline(2.0, 1.9), "ort": baseline(0.5, 0.4)}
    records = [
        record("a__01", correct("a__01", both, "ort")),
        record("b__01", correct("b__01", {**both, "ort": failed}, "tvm")),
    ]
    found = score(records)
    assert found["lost_baselines"] == {"ort": {"measured": 1, "failed": 1, "wrong_result": 0}}
    assert "ort gave no time beside 1 of 2 correct attempts" in _shown(records)
    assert score(records[:1])["lost_baselines"] == {}
    assert "baselines:" not in _shown(records[:1])


def _shown(records: list[Record]) -> str:
    out = StringIO()
    Console(file=out, width=200).print(next(iter(score_tables(score(records)))))
    return " ".join(out.getvalue().split())


def test_one_attempt_a_task_has_wilsons_interval_and_several_a_bootstrap() -> None:
    once = [_taking(f"k__{n:02}", 1) if n % 2 else record(f"k__{n:02}") for n in range(8)]
    cell = score(once)["correct_at"]["1"]
    assert cell["interval"] == WILSON and "wilson" not in cell
    assert (cell["low"], cell["high"]) == wilson(0.5, 8)
    again = [record(f"k__{n:02}", epoch=1) for n in range(8)]
    cell = score([*once, *again])["correct_at"]["1"]
    assert cell["interval"] == BOOTSTRAP and cell["wilson"] == wilson(0.25, 8)
    low, high = cell["wilson"]
    assert cell["low"] < 0.25 < cell["high"]
    assert cell["high"] - cell["low"] < high - low, "attempts at one task add knowledge"


def test_a_bootstrap_that_says_nothing_gives_way() -> None:
    same = [_taking(f"k__{n:02}", 1, epoch=e) for n in range(8) for e in range(2)]
    few = [_taking("a__01", 1), _taking("a__01", 1, epoch=1), record("b__01"), record("c__01")]
    for records in (same, few):
        cell = score(records)["correct_at"]["1"]
        assert cell["interval"] == WILSON and cell["low"] < cell["high"]


@pytest.mark.parametrize(
    ("text", "size"), [("64MB", 64_000_000), ("64 MiB", 64 << 20), ("64", 64), ("1.5kB", 1500)]
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "lots", "-1MB", "0", "64Mb", "1e400MB", "9" * 30])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no size of memory"):
        bytes_of(text)


def test_the_command_shows_the_cap_and_the_bill(tmp_path: Path) -> None:
    records = [_taking("a__01", 100), _taking("b__01", 999, overhead=True)]
    lines = "".join(one.model_dump_json() + "\n" for one in records)
    (tmp_path / "records.jsonl").write_text(lines)
    shown = CliRunner().invoke(app, ["score", str(tmp_path), "--memory-cap", "100"])
    assert shown.exit_code == 0, shown.output
    for part in ("in the cap of 100 B: Correct@1 50.0 % 1/2", "over it 1", "without 1 tasks"):
        assert part in " ".join(shown.stdout.split()), shown.stdout
    assert "first call" in shown.stdout and "50 us" in shown.stdout
