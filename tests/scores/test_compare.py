"""Two runs are compared on what both judged, and never where they cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import Environment, Evaluation, EvaluationStatus
from edgekernelbench.records.read import RECORDS
from edgekernelbench.records.schema import Record, Spent
from edgekernelbench.scores.compare import MCNEMAR, SIGN_FLIP, compare
from tests.factories import baseline, correct, performance, record

WRONG = EvaluationStatus.WRONG_SHAPE_OR_DTYPE


def right(task: int, time: float = 10.0, tvm: float = 20.0) -> Evaluation:
    """Correct, at ``time`` beside a baseline at ``tvm``."""
    rival = baseline(tvm / time, 0.95 * tvm / time).model_copy(
        update={"median_us": tvm, "low_us": tvm, "high_us": tvm}
    )
    found = correct(f"k__{task:02}", {"tvm": rival}, "tvm")
    return found.model_copy(update={"performance": performance(time)})


def attempts(verdicts: str, agent: str = "tuner", time: float = 10.0) -> list[Record]:
    """One task for each letter: ``+`` correct, ``-`` not, ``?`` without a verdict."""
    made = []
    for task, letter in enumerate(verdicts):
        evaluation = right(task, time) if letter == "+" else None
        status = {"+": None, "-": WRONG, "?": EvaluationStatus.INFRA_ERROR}[letter]
        made.append(record(f"k__{task:02}", evaluation, status, agent=agent))
    return made


def changed(records: list[Record], **update: Any) -> list[Record]:
    return [r.model_copy(update=update) for r in records]


def test_shares_and_their_difference() -> None:
    result = compare(attempts("++++++++++"), attempts("+--------+", "canonical"))
    cell = result["correct_at"]["1"]
    assert (cell["a"], cell["b"], cell["difference"]) == (1.0, 0.2, pytest.approx(0.8))
    assert (cell["a_ahead"], cell["b_ahead"], cell["n"]) == (8, 0, 10)
    assert cell["test"] == MCNEMAR and cell["p_value"] == pytest.approx(2 / 256)
    assert cell["low"] < 0.8 < cell["high"] <= 1.0
    assert result["fast_at"]["best"]["1.0"]["difference"] == pytest.approx(0.8)
    assert result["fast_at"]["tvm"]["3.0"]["difference"] == 0.0


def test_swapping_the_runs_turns_the_signs() -> None:
    a, b = attempts("++++--+-+"), attempts("-+-+-++--", "canonical", 11.0)
    there, back = compare(a, b), compare(b, a)
    for get in (lambda r: r["correct_at"]["1"], lambda r: r["fast_at"]["tvm"]["1.0"]):
        assert get(there)["difference"] == pytest.approx(-get(back)["difference"])
        assert get(there)["p_value"] == get(back)["p_value"]
        assert get(there)["low"] == pytest.approx(-get(back)["high"])
    assert there["time"]["ratio"] == pytest.approx(1 / back["time"]["ratio"])


def test_what_could_not_be_paired_is_told() -> None:
    result = compare(attempts("++?+"), [*attempts("++++"), record("z__01")])
    assert result["n"] == 3
    assert result["not_paired"] == {
        "only_in_a": [], "only_in_b": ["z__01|llvm"], "outside_denominator": ["k__02|llvm"],
    }  # fmt: skip


def test_epochs_are_averaged_and_tested_over_tasks() -> None:
    a = attempts("+" * 8)
    b = attempts("+" * 8) + [record(f"k__{t:02}", status=WRONG, epoch=1) for t in range(8)]
    cell = compare(a, b)["correct_at"]["1"]
    assert (cell["a"], cell["b"], cell["test"]) == (1.0, 0.5, SIGN_FLIP)
    assert cell["p_value"] == pytest.approx(2 / 2**8), "eight tasks, all of one sign"


def test_times_are_held_against_the_baselines_of_either_run() -> None:
    """The second run's machine was twice as slow: kernel and baseline alike."""
    a = [record(f"k__{t:02}", right(t, 10.0, 20.0)) for t in range(8)]
    b = [record(f"k__{t:02}", right(t, 24.0, 40.0)) for t in range(8)]
    time = compare(a, b)["time"]
    assert time["n"] == 8
    assert time["ratio"] == pytest.approx(1.2)
    assert time["ratio_unadjusted"] == pytest.approx(2.4)
    assert time["drift"] == pytest.approx(2.0)
    assert (time["a_faster"], time["b_faster"]) == (8, 0)
    assert time["p_value"] == pytest.approx(2 / 2**8) == time["wilcoxon_p_value"]
    assert time["low"] == pytest.approx(1.2) == time["high"]


def test_only_tasks_that_both_solved_are_timed() -> None:
    time = compare(attempts("+-+"), attempts("++-"))["time"]
    assert (time["n"], time["ratio"], time["p_value"]) == (1, 1.0, 1.0)
    assert time["detectable"] is None
    nothing = compare(attempts("--"), attempts("--"))
    assert nothing["time"]["ratio"] is None
    assert nothing["fast_at"]["best"]["1.0"]["a"] == 0.0


def _on(records: list[Record], **update: Any) -> list[Record]:
    return [
        r.model_copy(update={"task": r.task.model_copy(update=update)}) for r in records
    ]  # fmt: skip


def _timed(records: list[Record], **update: Any) -> list[Record]:
    made = []
    for one in records:
        assert one.evaluation is not None and one.evaluation.performance is not None
        figures = one.evaluation.performance.model_copy(update=update)
        evaluation = one.evaluation.model_copy(update={"performance": figures})
        made.append(one.model_copy(update={"evaluation": evaluation}))
    return made


def _of_cpu(records: list[Record], cpu: str) -> list[Record]:
    where = Environment(cpu=cpu, system="Linux", threads=2)
    made = []
    for one in records:
        assert one.evaluation is not None
        evaluation = one.evaluation.model_copy(update={"environment": where})
        made.append(one.model_copy(update={"evaluation": evaluation}))
    return made


RUN = attempts("+++")


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (_on(RUN, tolerance_version=2), "tolerance version: 1 in the first, 2 in the second"),
        (_on(RUN, target="opencl"), "target: llvm in the first, opencl in the second"),
        (_timed(RUN, threads=4), "number of threads on llvm: 2 in the first, 4 in the second"),
        (_timed(RUN, cache_state="cold"), "cache state on llvm: warm in the first, cold"),
        (_timed(RUN, timer="cuda-event"), "timer on llvm: perf_counter_ns/child in the first, cu"),
    ],
)
def test_what_must_not_be_mixed_is_refused(other: list[Record], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        compare(RUN, other)
    assert told in caught.value.message
    assert caught.value.help == "run both under the same conditions"


def test_runs_of_two_processors_are_refused() -> None:
    with pytest.raises(UsageError, match="processor on llvm: one in the first, other in the"):
        compare(_of_cpu(RUN, "one"), _of_cpu(RUN, "other"))


def test_a_run_that_mixes_agents_is_refused() -> None:
    with pytest.raises(UsageError, match="more than one agent"):
        compare(RUN, [*attempts("++"), record("k__02", agent="canonical")])


def test_runs_without_a_common_task_are_refused() -> None:
    with pytest.raises(UsageError, match=r"no task was judged in both runs \(3 only_in_a"):
        compare(RUN, [record("z__01")])


def test_what_differs_beside_the_agent_is_noted() -> None:
    other = changed(
        attempts("+++"), limits=Spent(evaluations=4), versions={"edgekernelbench": "0.2.0"}
    )
    notes = compare(RUN, other)["notes"]
    assert "budgets differ: 8 evaluations and 4 evaluations" in notes
    assert "edgekernelbench differs: 0.1.0 and 0.2.0" in notes
    assert compare(RUN, RUN)["notes"] == []


def _folder(where: Path, records: list[Record]) -> str:
    where.mkdir()
    (where / RECORDS).write_text("".join(r.model_dump_json() + "\n" for r in records))
    return str(where)


def test_the_command_prints_a_table_or_json(tmp_path: Path) -> None:
    folders = [
        _folder(tmp_path / "a", attempts("+++++++-?")),
        _folder(tmp_path / "b", attempts("++-----++", "canonical", 12.0)),
    ]
    shown = CliRunner().invoke(app, ["compare", *folders])
    assert shown.exit_code == 0
    for part in ("8 tasks", "Correct@1", "87.5 %", "5 : 1", "0.219", "1.200x", "not paired: 1 "):
        assert part in shown.stdout, shown.stdout
    told = json.loads(CliRunner().invoke(app, ["compare", *folders, "--json"]).stdout)
    assert told["correct_at"]["1"]["p_value"] == pytest.approx(2 * 7 / 64)
    refused = CliRunner().invoke(app, ["compare", folders[0], str(tmp_path / "nowhere")])
    assert isinstance(refused.exception, UsageError)
