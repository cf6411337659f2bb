"""One kernel on all targets: the run, its records, and what is refused before it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import EvalSettings
from edgekernelbench.records.read import find_records
from edgekernelbench.runs.portability import (
    Portability,
    code_rows,
    given,
    kernels_in,
    rows,
    run_portability,
    targets_of,
)
from edgekernelbench.runs.run import Silent
from edgekernelbench.scores.score import score
from edgekernelbench.suite.find import find_workload

TASK = "softmax_last__02"
QUICK = EvalSettings(measure_s=0.01, baselines=("tvm",), roofline=False, replicas=1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "kernels are given as files or by --subset"),
        (["k.ekir"], "which task is the kernel for?"),
        (["k.ekir", "--subset", "quick"], "kernels are given as files or by --subset"),
        (["--subset", "quick", "--workload", TASK], "--workload goes with a kernel file"),
        (["-", "--workload", TASK, "--resume"], "--resume goes on with a run that was kept"),
        (["-", "--workload", TASK, "--target", "raspberry-pi-5"], "there is no transport"),
        (["-", "--workload", TASK, "--target", "llvm", "--target", "llvm"], "named twice"),
        (["-", "--workload", TASK, "--target", "lvm"], "target 'lvm' is unknown"),
    ],
)
def test_what_cannot_be_carried_out(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(app, ["portability", *arguments], input="kernel")
    assert isinstance(result.exception, UsageError), result.output
    assert says in result.exception.message


def test_a_folder_holds_kernels_by_their_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no kernel"):
        kernels_in(tmp_path)
    (tmp_path / f"{TASK}.ekir").write_text("kernel")
    assert list(kernels_in(tmp_path)) == [TASK]


def test_targets_that_are_not_here_have_a_row_of_what_the_code_takes() -> None:
    workload = find_workload(TASK)
    targets = targets_of(["llvm", "cuda-sm_87", "adreno-730", "raspberry-pi-5"])
    small = targets[2].model_copy(update={"name": "small", "memory_bytes": 4096})
    found = {r.target: r for r in code_rows({}, (workload,), (*targets, small))}
    assert list(found) == ["cuda-sm_87", "adreno-730", "raspberry-pi-5", "small"]
    assert {r.status for r in list(found.values())[:3]} == {"code_only"}
    assert found["adreno-730"].shared_bytes is not None
    assert found["small"].status == "over_budget" and "memory" in found["small"].message
    wrong = dict.fromkeys([TASK], "kernel nothing")
    (row,) = code_rows(wrong, (workload,), targets[1:2])
    assert row.status == "invalid_ir" and row.message


def test_one_file_on_two_targets_leaves_ordinary_records(tmp_path: Path) -> None:
    workload = find_workload(TASK)
    targets = targets_of(["llvm", "pocl"])
    order = Portability(given({TASK: workload.canonical()}), "given", (workload,), targets,
                        tmp_path, settings=QUICK)  # fmt: skip
    records = run_portability(order, Silent())
    assert [r.task.target for r in records] == ["llvm", "pocl"]
    found = find_records(tmp_path)
    assert found.problems == () and list(found.records) == records
    table = {row.target: row for row in rows(records)}
    assert {row.status.value for row in table.values()} == {"correct"}
    assert table["llvm"].code_bytes and table["pocl"].shared_bytes is not None
    assert set(table["pocl"].ratios) == {"best", "tvm"}
    scores = score(found.records)["portability"]
    assert (scores["correct_on_all"]["count"], scores["correct_on_all"]["n"]) == (1, 1)
    json.dumps(scores, allow_nan=False)
