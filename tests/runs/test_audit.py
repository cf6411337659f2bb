"""What an audit brings up, and what it passes by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.environment import observe
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus, SeedInfo
from edgekernelbench.evaluator.plausible import least_seconds
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.records.schema import Record
from edgekernelbench.records.store import RunStore
from edgekernelbench.runs import audit as module
from edgekernelbench.runs.audit import audit, rerun
from edgekernelbench.suite import load_suite
from tests.evaluator.test_plausible import PEAKS
from tests.factories import baseline, correct, performance, record

WORKLOAD = load_suite().workloads["matmul_nt__01"]
SEEDS = SeedInfo(input_seeds=(1, 2, 3), const_seed=4, order_seed=5, pool_age=1)


def judged(speedup: float = 2.0, **figures: Any) -> Evaluation:
    found = correct(WORKLOAD.id, {"tvm": baseline(speedup, speedup * 0.95)}, "tvm")
    changed = performance().model_copy(update=figures)
    return found.model_copy(update={"performance": changed, "seed": SEEDS})


def quarantined() -> Evaluation:
    fields = judged().model_dump()
    fields |= {"status": "implausible", "message": "beyond the measured roofline"}
    fields |= {"quarantined": fields["performance"], "performance": None}
    return Evaluation.model_validate(fields)


def reasons(evaluation: Evaluation, folder: Path) -> str:
    return " | ".join(r for f in audit([record(evaluation=evaluation)], folder) for r in f.reasons)


def test_what_is_in_quarantine_comes_first_with_all_that_reproduces_it(tmp_path: Path) -> None:
    with RunStore.open(tmp_path / "run", {}, resume=False) as store:
        store.keep_kernel("ab" * 32, "kernel k")
        for number, one in enumerate((judged(), judged(12.0), quarantined())):
            store.append(record(f"k__{number:02}", one))
    records = [
        record(f"k__{n:02}", e) for n, e in enumerate((judged(), judged(12.0), quarantined()))
    ]
    for folder in (tmp_path, tmp_path / "run", tmp_path / "run" / "records.jsonl"):
        first, second = audit(records, folder)
        assert (first.id, first.verdict) == ("k__02|llvm|tuner|0", "quarantined")
        assert first.reasons == ("beyond the measured roofline",)
        assert first.figures["median_us"] == 10.0 and first.figures["speedup"] == 2.0
        assert first.seeds == SEEDS.model_dump(mode="json")
        assert Path(first.kernel or "").read_text() == "kernel k"
        assert (second.id, second.verdict) == ("k__01|llvm|tuner|0", "suspicious")
    assert audit(records, tmp_path / "nowhere")[0].kernel is None


def test_what_is_ordinary_is_passed_by(tmp_path: Path) -> None:
    assert audit([record(evaluation=judged()), record("b__01")], tmp_path) == []


def test_each_suspicion_has_its_reason(tmp_path: Path) -> None:
    assert reasons(judged(10.5), tmp_path) == "10.5 times as fast as tvm"
    assert "the call itself, which costs 1 us" in reasons(judged(overhead_dominated=True), tmp_path)
    assert reasons(judged(low_us=8.0, high_us=12.0), tmp_path).startswith("its interval is 20 %")
    assert reasons(judged(9.9, low_us=9.5, high_us=10.5), tmp_path) == ""


def test_a_time_near_the_roofline_is_looked_at_where_the_roof_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "load_peaks", lambda _: PEAKS)
    least = least_seconds(as_task(WORKLOAD), PEAKS)[0] * 1e6

    def at(times: float, cpu: str) -> str:
        median = times * least
        figures = {"median_us": median, "low_us": median, "high_us": median}
        where = observe(2).model_copy(update={"cpu": cpu})
        return reasons(judged(**figures).model_copy(update={"environment": where}), tmp_path)

    assert at(1.05, observe(2).cpu).startswith("near the roofline: no less than")
    assert at(1.2, observe(2).cpu) == ""
    assert at(1.05, "another") == "", "the roof is that of another host"


def _folder(tmp_path: Path, *evaluations: Evaluation) -> str:
    with RunStore.open(tmp_path / "run", {}, resume=False) as store:
        for number, one in enumerate(evaluations):
            store.append(record(WORKLOAD.id, one, epoch=number))
    return str(tmp_path / "run")


def test_the_command(tmp_path: Path) -> None:
    folder = _folder(tmp_path, judged(), quarantined())
    shown = CliRunner().invoke(app, ["audit", folder])
    assert shown.exit_code == 0
    for part in (
        "quarantined  matmul_nt__01|llvm|tuner|1",
        "const_seed 4",
        "1 in quarantine, 0 co",
    ):
        assert part in shown.stdout
    [told] = json.loads(CliRunner().invoke(app, ["audit", folder, "--json"]).stdout)
    assert told["verdict"] == "quarantined" and told["kernel"] is None


@pytest.mark.parametrize(("again", "code"), [(judged(), 0), (quarantined(), 1)])
def test_a_rerun_shows_both_verdicts(
    again: Evaluation, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fake:
        def __init__(self, *_: object) -> None: ...
        def __enter__(self) -> Fake:
            return self

        def __exit__(self, *_: object) -> None: ...
        def evaluate(self, kernel: str, task: Any) -> Evaluation:
            assert (kernel, task.id) == ("kernel k", WORKLOAD.id)
            return again

    monkeypatch.setattr(module, "Evaluator", Fake)
    folder = _folder(tmp_path, quarantined())
    before = (Path(folder) / "records.jsonl").read_bytes()
    command = ["audit", folder, "--rerun", f"{WORKLOAD.id}|llvm|tuner|0"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == code
    assert "before: implausible  10 us" in shown.stdout
    assert f"again: {again.status.value}  10 us" in shown.stdout
    told = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert (told["before"]["status"], told["again"]["status"]) == ("implausible", again.status)
    assert (Path(folder) / "records.jsonl").read_bytes() == before


def test_what_cannot_be_run_again_is_refused() -> None:
    records: list[Record] = [record("a__01", status=EvaluationStatus.NO_KERNEL)]
    with pytest.raises(UsageError, match="no attempt 'x' among 1 records"):
        rerun(records, "x")
    with pytest.raises(UsageError, match="has no kernel"):
        rerun(records, records[0].id)
