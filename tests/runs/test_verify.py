"""A run's records are held against their own rules, and a sample is judged again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.records.read import RECORDS
from edgekernelbench.records.schema import Record
from edgekernelbench.runs.run import attempt_seed
from edgekernelbench.runs.seal import FILE, keep, kept
from edgekernelbench.runs.submission import read_submission
from edgekernelbench.runs.verify import Judge, Place, Verification, least_found, verify

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verify") / "run"
    told = "run --agent canonical --target llvm --workload relu__01 --evals 1 --out"
    done = CliRunner().invoke(app, [*told.split(), str(folder)])
    assert done.exit_code == 0, done.output
    return folder


def changed(honest: Path, tmp_path: Path, change: Change) -> Path:
    folder = tmp_path / "changed"
    shutil.copytree(honest, folder)
    path = folder / RECORDS
    records = [json.loads(line) for line in path.read_text().splitlines()]
    change(records[0])
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def as_recorded(record: Record) -> Evaluation:
    assert record.evaluation is not None
    return record.evaluation


def place_of(record: Record) -> Place:
    evaluation = as_recorded(record)
    assert evaluation.environment is not None
    threads = 1 if evaluation.performance is None else evaluation.performance.threads
    return Place(evaluation.environment.cpu or "", "", threads)


def on_a_quiet_machine(record: Record) -> Evaluation:
    """What was found, with speed-ups as narrow as they are where nothing else runs."""
    here = as_recorded(record)
    narrow = {
        name: each
        if each.speedup is None
        else each.model_copy(
            update={"speedup_low": each.speedup * 0.99, "speedup_high": each.speedup * 1.01}
        )
        for name, each in here.baselines.items()
    }
    return here.model_copy(update={"baselines": narrow})


def checked(folder: Path, honest: Path, judge: Judge | None = None) -> Verification:
    """With what the honest run found, found again."""
    (record,) = read_submission(honest).records
    here = on_a_quiet_machine(record)
    return verify(read_submission(folder), judge or (lambda _: here), place_of(record), 5, 1)


def test_an_honest_run_is_verified(honest: Path) -> None:
    found = checked(honest, honest)
    assert found.verdict == "verified" and found.findings == () and found.times == ""
    assert found.agreed == found.judged == found.attempts == 1


def test_the_command_judges_again_and_keeps_the_verdict(honest: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(honest, folder)
    done = CliRunner().invoke(app, ["verify", str(folder), "--keep", "--json"])
    # Speed-ups on a busy machine can differ, the rest cannot.
    found = json.loads(done.stdout)
    assert found["findings"] == [] and found["again"][0]["found"][-1] == "correct"
    sealed = kept(folder)
    assert sealed.trust == "here" and sealed.verified == (done.exit_code == 0)


def _status(record: dict[str, Any]) -> None:
    record["status"] = "wrong_result"


def _time(record: dict[str, Any]) -> None:
    record["evaluation"]["performance"]["median_us"] /= 2


def _hash(record: dict[str, Any]) -> None:
    record["kernel_hash"] = "0" * len(record["kernel_hash"])


def _text(record: dict[str, Any]) -> None:
    record["kernel"] = record["kernel"].replace("max", "min")


def _seed(record: dict[str, Any]) -> None:
    record["seed"] += 1


def _model(record: dict[str, Any]) -> None:
    record["model"] = "mockllm/other"


def _speedup(record: dict[str, Any]) -> None:
    """Of a baseline that was there in every round: others are held against some of them."""
    tvm, rounds = record["evaluation"]["baselines"]["tvm"], "rounds"
    tvm |= {"speedup": 2 * tvm["speedup"], rounds: record["evaluation"]["performance"][rounds]}


def _epoch(record: dict[str, Any]) -> None:
    """One more than were ordered, with the id and the seed that it would have."""
    record["epoch"] = 1
    record["id"] = record["id"].replace("|0", "|1")
    record["seed"] = attempt_seed(0, record["id"])


def _limits(record: dict[str, Any]) -> None:
    record["limits"]["evaluations"] = 100


def _spent(record: dict[str, Any]) -> None:
    record["spent"]["evaluations"] = 9


def _options(record: dict[str, Any]) -> None:
    record["agent_options"] = {"sandbox": "local"}


def _processor(record: dict[str, Any]) -> None:
    """One record, and no speed-up of the whole run would be compared."""
    record["evaluation"]["environment"] = None


def _samples(record: dict[str, Any]) -> None:
    record["evaluation"]["performance"]["samples_us"] = []


def _no_verdict(record: dict[str, Any]) -> None:
    record |= {"status": "unsupported", "kernel": None, "kernel_hash": None, "evaluation": None}


CARELESS: tuple[Change, ...] = (
    _status, _time, _hash, _text, _seed, _model, _speedup, _epoch, _limits, _spent, _options,
    _processor, _samples, _no_verdict,
)  # fmt: skip


@pytest.mark.parametrize("change", CARELESS)
def test_a_careless_change_is_found_without_judging(
    change: Change, honest: Path, tmp_path: Path
) -> None:
    found = None
    try:
        found = checked(changed(honest, tmp_path, change), honest)
    except UsageError as error:
        assert "no readable record" in error.message  # the only one contradicts itself
    if found is not None:
        assert found.findings and found.verdict == "refuted"


def _much_faster(record: dict[str, Any]) -> None:
    own = record["evaluation"]["performance"]
    for name in ("median_us", "low_us", "high_us"):
        own[name] /= 30
    own["samples_us"] = [each / 30 for each in own["samples_us"]]
    for baseline in record["evaluation"]["baselines"].values():
        if baseline.get("speedup"):
            much = baseline["speedup"] * 30
            baseline |= {"speedup": much, "speedup_low": much * 0.99, "speedup_high": much * 1.01}


def test_a_careful_change_is_found_by_judging(honest: Path, tmp_path: Path) -> None:
    found = checked(changed(honest, tmp_path, _much_faster), honest)
    assert found.findings == () and found.verdict == "refuted"
    assert any("speed-up over" in reason for reason in found.again[0].reasons)


def test_a_bound_far_above_excuses_no_lower_bound(honest: Path, tmp_path: Path) -> None:
    """A slow kernel that is called fast, by an interval that seems to claim little."""

    def widened(data: dict[str, Any]) -> None:
        _much_faster(data)
        for each in data["evaluation"]["baselines"].values():
            if each.get("speedup"):
                each["speedup_low"], each["speedup_high"] = each["speedup"] * 0.99, 1e6

    found = checked(changed(honest, tmp_path, widened), honest)
    assert found.findings == () and found.verdict == "refuted"


def test_what_leaves_the_denominator_is_judged_again(honest: Path, tmp_path: Path) -> None:
    """A device that cannot do a task cannot do it here, either."""

    def unsupported(record: dict[str, Any]) -> None:
        record["status"] = record["evaluation"]["status"] = "unsupported"
        record["evaluation"] |= {
            "message": "no f32 here", "performance": None, "correctness": None, "baselines": {},
            "best": None,
        }  # fmt: skip

    folder = changed(honest, tmp_path, unsupported)
    found = checked(folder, honest)
    assert found.judged == 1 and found.verdict == "refuted"
    again = checked(folder, folder)
    assert again.verdict == "verified", "where it is so"


def test_wrong_once_is_wrong(honest: Path) -> None:
    (record,) = read_submission(honest).records
    right = as_recorded(record)
    wrong = right.model_copy(
        update={"status": EvaluationStatus.WRONG_RESULT, "performance": None, "baselines": {}}
    )
    answers = iter((wrong, right))
    found = checked(honest, honest, lambda _: next(answers))
    assert found.verdict == "refuted"


def test_no_verdict_here_leaves_it_open(honest: Path) -> None:
    (record,) = read_submission(honest).records
    lost = as_recorded(record).model_copy(
        update={"status": EvaluationStatus.INFRA_ERROR, "message": "the disk is full"}
    )
    found = checked(honest, honest, lambda _: lost)
    assert found.verdict == "open" and found.again[0].reasons == ("the disk is full",)


def test_on_another_processor_only_statuses_are_compared(honest: Path, tmp_path: Path) -> None:
    folder = changed(honest, tmp_path, _much_faster)
    (record,) = read_submission(honest).records
    elsewhere = Place("another processor", "", 1)
    found = verify(read_submission(folder), lambda _: as_recorded(record), elsewhere, 5, 1)
    assert found.verdict == "verified" and "another processor" in found.times


def test_a_verification_of_other_records_or_by_others_counts_not(
    honest: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(honest, folder)
    assert kept(folder).trust == "none"
    keep(folder, checked(folder, honest))
    assert kept(folder).verified
    path = folder / FILE
    whole = path.read_text()
    path.write_text(whole.replace('"seed": 1', '"seed": 2'))
    assert kept(folder).trust == "elsewhere"
    path.write_text("{")
    assert kept(folder).trust == "elsewhere"
    path.write_text(whole)
    with (folder / RECORDS).open("a") as file:
        file.write("\n")
    assert kept(folder).trust == "outdated"


def test_how_many_changed_ones_a_sample_finds() -> None:
    assert least_found(1, 1) == 1
    # C(100 - 13, 20) / C(100, 20) is the first at or below 5 %.
    assert least_found(100, 20) == 13
    assert least_found(5, 0) == 6


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no records\.jsonl"):
        read_submission(tmp_path)
