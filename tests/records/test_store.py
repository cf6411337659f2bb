"""The store loses nothing and repeats nothing, whatever a killed process left behind."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.records.read import RECORDS, find_records, kept_text, read_records
from edgekernelbench.records.schema import Record, Step, record_id
from edgekernelbench.records.store import RunStore
from tests.factories import baseline, correct, record

SETTINGS = {"agent": "tuner", "seed": 0}


def test_appended_records_come_back_equal(tmp_path: Path) -> None:
    records = [
        record("a__01", correct("a__01", {"tvm": baseline(2.0, 1.9)}, "tvm")),
        record("b__01"),
    ]
    with RunStore.open(tmp_path / "run", SETTINGS, resume=False) as store:
        for one in records:
            store.append(one)
    loaded = find_records(tmp_path)
    assert list(loaded.records) == records
    assert loaded.problems == ()


def test_a_model_s_words_that_no_file_can_hold_cost_no_record(tmp_path: Path) -> None:
    step = Step(action="propose", seconds=0.0, reason="half an emoji: \ud83d")
    said = record("a__01").model_copy(update={"trajectory": (step,), "message": "\ud83d"})
    with RunStore.open(tmp_path, SETTINGS, resume=False) as store:
        store.append(said)
        store.append(record("b__01"))
    loaded = read_records(tmp_path / RECORDS)
    assert len(loaded.records) == 2 and loaded.problems == ()
    assert loaded.records[0].trajectory[0].reason == "half an emoji: ?"


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "1" + 310 * "0", "-" + 9999 * "1"])
def test_a_record_with_what_is_no_number_is_skipped(tmp_path: Path, number: str) -> None:
    good = record("a__01").model_dump_json()
    bad = record("b__01").model_copy(update={"agent_options": {"a": 0.5}}).model_dump_json()
    (tmp_path / RECORDS).write_text(f"{good}\n{bad.replace('0.5', number)}\n")
    loaded = find_records(tmp_path)
    assert len(loaded.records) == 1 and len(loaded.problems) == 1


@pytest.mark.parametrize("change", [{"id": "x"}, {"epoch": 1}, {"epoch": -1}, {"agent": "leka"}])
def test_a_record_under_another_name_is_no_attempt_more(
    tmp_path: Path, change: dict[str, object]
) -> None:
    good = record("a__01").model_dump_json()
    again = json.dumps(json.loads(good) | change)
    (tmp_path / RECORDS).write_text(f"{good}\n{again}\n")
    loaded = find_records(tmp_path)
    assert len(loaded.records) == 1 and "not that of its attempt" in loaded.problems[0]


@pytest.mark.parametrize("target", ["/dev/zero", "run/own.yaml", "c:run/own.yaml", "own.yml"])
def test_a_record_does_not_say_by_a_file_what_its_target_is(tmp_path: Path, target: str) -> None:
    """Whoever verified it would judge by limits of the submitter's own."""
    good = record("a__01")
    task = good.task.model_copy(update={"target": target})
    own = record_id("a__01", target, good.agent, good.epoch)
    bad = good.model_copy(update={"task": task, "id": own}).model_dump_json()
    (tmp_path / RECORDS).write_text(f"{good.model_dump_json()}\n{bad}\n")
    loaded = find_records(tmp_path)
    assert len(loaded.records) == 1 and "not by a file" in loaded.problems[0]


def test_a_half_written_line_is_set_aside_and_the_attempt_counts_as_unfinished(
    tmp_path: Path,
) -> None:
    with RunStore.open(tmp_path, SETTINGS, resume=False) as store:
        store.append(record("a__01"))
    half = record("b__01").model_dump_json()[:40]
    with (tmp_path / RECORDS).open("a") as file:
        file.write(half)
    assert len(read_records(tmp_path / RECORDS).problems) == 1
    with RunStore.open(tmp_path, SETTINGS, resume=True) as store:
        assert store.done == {record("a__01").id}
        store.append(record("b__01"))
    loaded = read_records(tmp_path / RECORDS)
    assert [r.task.workload for r in loaded.records] == ["a__01", "b__01"]
    assert loaded.problems == ()
    assert (tmp_path / "records.partial").read_text() == half + "\n"


def test_an_attempt_that_the_provider_failed_has_a_later_record_that_counts(
    tmp_path: Path,
) -> None:
    failed = record("a__01", status=EvaluationStatus.PROVIDER_ERROR)
    judged = record("a__01", correct("a__01", {}, None))
    with RunStore.open(tmp_path, SETTINGS, resume=False) as store:
        store.append(failed)
        store.append(record("b__01"))
    again = frozenset((EvaluationStatus.PROVIDER_ERROR,))
    with RunStore.open(tmp_path, SETTINGS, resume=True) as store:
        assert store.done == {failed.id, record("b__01").id}
    with RunStore.open(tmp_path, SETTINGS, True, unfinished=again) as store:
        assert store.done == {record("b__01").id}
        store.append(judged)
        store.append(record("a__01"))  # a verdict is never replaced
    loaded = find_records(tmp_path)
    assert loaded.records == (judged, record("b__01")) and loaded.replaced == (failed,)
    assert len(loaded.problems) == 1 and "recorded twice" in loaded.problems[0]
    said = CliRunner().invoke(app, ["score", str(tmp_path)])
    assert said.exit_code == 0 and "1 records of provider errors are not counted" in said.stderr


@pytest.mark.parametrize("name", ["records.jsonl", "records.partial", "run.json", ".lock"])
def test_a_stranger_s_run_does_not_change_a_file_of_the_user_s(tmp_path: Path, name: str) -> None:
    run, mine = tmp_path / "run", tmp_path / "mine"
    RunStore.open(run, SETTINGS, resume=False).close()
    (run / RECORDS).write_text("half")
    text = json.dumps(SETTINGS) + "\nno newline at its end"
    mine.write_text(text)
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(mine)
    with pytest.raises(UsageError), RunStore.open(run, SETTINGS, resume=True) as store:
        store.append(record("a__01"))
    assert mine.read_text() == text


@pytest.mark.parametrize("name", ["kernels", "texts", "records.jsonl"])
def test_a_stranger_s_run_does_not_fill_a_folder_of_the_user_s(tmp_path: Path, name: str) -> None:
    run, mine = tmp_path / "run", tmp_path / "mine"
    mine.mkdir()
    RunStore.open(run, SETTINGS, resume=False).close()
    if (run / name).is_dir():
        (run / name).rmdir()
    (run / name).symlink_to(mine)
    with pytest.raises(UsageError, match="no plain"):
        RunStore.open(run, SETTINGS, resume=True)
    assert not list(mine.iterdir())


@pytest.mark.parametrize("key", ["../mine", "/{folder}/mine", "0" * 32, "0" * 31 + "\0"])
def test_a_stranger_s_keys_show_no_other_file(tmp_path: Path, key: str) -> None:
    run, mine = tmp_path / "run", tmp_path / "run/mine.md"
    RunStore.open(run, SETTINGS, resume=False).close()
    mine.write_text("secret")
    (run / "texts" / f"{'0' * 32}.md").symlink_to(mine)
    assert kept_text(run, key.format(folder=run)) is None


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_any_cut_of_the_last_line_leaves_the_earlier_ones(tmp_path: Path, cut: int) -> None:
    with RunStore.open(tmp_path, SETTINGS, resume=False) as store:
        store.append(record("a__01"))
        store.append(record("b__01"))
    path = tmp_path / RECORDS
    os.truncate(path, path.stat().st_size - cut)
    with RunStore.open(tmp_path, SETTINGS, resume=True) as store:
        assert record("a__01").id in store.done


def test_resuming_needs_to_be_asked_for_and_the_same_settings(tmp_path: Path) -> None:
    RunStore.open(tmp_path, SETTINGS, resume=False).close()
    with pytest.raises(UsageError, match="already holds a run"):
        RunStore.open(tmp_path, SETTINGS, resume=False)
    with pytest.raises(UsageError, match="seed: 0 there, 1 now"):
        RunStore.open(tmp_path, {**SETTINGS, "seed": 1}, resume=True)


def _open(folder: Path, queue: multiprocessing.Queue[str]) -> None:
    try:
        RunStore.open(folder, SETTINGS, resume=True)
        queue.put("opened")
    except UsageError as error:
        queue.put(error.message)


def test_two_processes_cannot_write_one_run(tmp_path: Path) -> None:
    with RunStore.open(tmp_path, SETTINGS, resume=False):
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        process = context.Process(target=_open, args=(tmp_path, queue))
        process.start()
        assert "another process" in queue.get(timeout=60)
        process.join()


def test_a_full_disk_leaves_the_earlier_records_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunStore.open(tmp_path, SETTINGS, resume=False) as store:
        store.append(record("a__01"))
        real = os.write

        def full(fd: int, data: bytes) -> int:
            real(fd, data[:10])
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(UsageError, match=r"No space left.*1 records before are intact"):
            store.append(record("b__01"))
        monkeypatch.undo()
    loaded = read_records(tmp_path / RECORDS)
    assert [r.task.workload for r in loaded.records] == ["a__01"]
    assert loaded.problems == ()


def test_a_newer_version_is_refused_not_guessed(tmp_path: Path) -> None:
    data = json.loads(record("a__01").model_dump_json()) | {"version": 99}
    (tmp_path / RECORDS).write_text(json.dumps(data) + "\n")
    with pytest.raises(UsageError, match="version 99"):
        find_records(tmp_path)


def test_an_attempt_recorded_twice_counts_once(tmp_path: Path) -> None:
    line = record("a__01").model_dump_json() + "\n"
    (tmp_path / RECORDS).write_text(line * 2)
    loaded = read_records(tmp_path / RECORDS)
    assert len(loaded.records) == 1
    assert "twice" in loaded.problems[0]


def test_copies_of_a_run_add_no_attempts(tmp_path: Path) -> None:
    for name in ("run", "copy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / RECORDS).write_text(record("a__01").model_dump_json() + "\n")
    loaded = find_records(tmp_path)
    assert len(loaded.records) == 1
    assert "1 attempts are in another folder, too" in loaded.problems[0]


def test_attempts_that_were_left_out_are_told(tmp_path: Path) -> None:
    settings = {"workloads": ["a__01", "b__01"], "epochs": 2}
    (tmp_path / "run.json").write_text(json.dumps(settings))
    (tmp_path / RECORDS).write_text(record("a__01").model_dump_json() + "\n")
    assert "3 attempts of this run have no record" in find_records(tmp_path).problems[0]


@pytest.mark.parametrize(
    "settings", ["", "[]", '{"workloads": 1, "epochs": 1}', '{"workloads": [], "epochs": "x"}']
)
def test_settings_that_say_nothing_of_attempts_are_none(tmp_path: Path, settings: str) -> None:
    (tmp_path / "run.json").write_text(settings)
    (tmp_path / RECORDS).write_text(record("a__01").model_dump_json() + "\n")
    assert not find_records(tmp_path).problems


def test_missing_folders_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        find_records(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="holds no records"):
        find_records(tmp_path)


def test_a_record_cannot_be_correct_without_its_evaluation() -> None:
    with pytest.raises(ValueError, match="needs its evaluation"):
        record("a__01", status=EvaluationStatus.CORRECT)
    good = record("a__01", correct("a__01", {}, None))
    with pytest.raises(ValueError, match="differ"):
        Record.model_validate(good.model_dump() | {"status": "crashed"})
