"""Runs with a model behind a server on loopback: the records that a script of answers deserves."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from inspect_ai._util.error import PrerequisiteError

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.llm import tasks
from edgekernelbench.llm.run import Asking, run_with_model
from edgekernelbench.records.read import RECORDS, read_records
from edgekernelbench.records.schema import Record
from edgekernelbench.scores.score import score

from .fakes import MODEL, NAMES, Session, asking, kernel, order
from .server import serving

pytestmark = pytest.mark.usefixtures("without_a_device")


def answer(task: str) -> str:
    """Two fast kernels, a slow one, a wrong one and none."""
    words = {NAMES[0]: "fast", NAMES[1]: "fast", NAMES[2]: "slow", NAMES[3]: "wrong"}
    return f"```ekir\n{kernel(task, words[task])}\n```" if task in words else "I cannot."


def by_task(records: list[Record]) -> dict[str, EvaluationStatus]:
    return {record.task.workload: record.status for record in records}


def test_scores_are_those_that_the_answers_deserve(tmp_path: Path) -> None:
    with serving(answer) as server:
        records = run_with_model(order(tmp_path, epochs=3), asking(server.url))
    assert server.asked == dict.fromkeys(NAMES, 3)
    assert len(records) == 15 and Session.overlaps == 0
    scored = score(records, ks=(1, 3))
    assert scored["n"] == 5
    assert scored["correct_at"]["1"]["value"] == pytest.approx(3 / 5)
    assert scored["correct_at"]["3"]["count"] == 3
    assert scored["fast_at"]["tvm"]["1.0"]["value"] == pytest.approx(2 / 5)
    assert scored["statuses"] == {"correct": 9, "crashed": 3, "unparseable": 3}
    first = records[0]
    assert (first.model, first.spent.tokens, first.isolated) == (MODEL, 15, True)
    assert "prompt" in first.agent_options
    (step,) = first.trajectory
    for key in (step.prompt, step.answer):
        assert (tmp_path / "texts" / f"{key}.md").read_text()
    assert list((tmp_path / "inspect").glob("*.eval"))


def overlapping(spans: list[tuple[float, float]]) -> int:
    """How many spans begin before one that began earlier has ended."""
    ordered = sorted(spans)
    ends = itertools.accumulate((end for _, end in ordered), max)
    return sum(begin < end for (begin, _), end in zip(ordered[1:], ends, strict=False))


def test_many_questions_are_under_way_and_one_kernel_is_on_the_device(tmp_path: Path) -> None:
    def slow(task: str) -> str:
        time.sleep(0.3)
        return f"```ekir\n{kernel(task, 'slow')}\n```"

    with serving(slow) as server:
        run_with_model(order(tmp_path, "repair", epochs=2), asking(server.url, samples=8))
    # Two evaluations in each of ten attempts, and the verdict on each.
    assert len(Session.spans) == 30 and len(server.spans) == 20
    assert overlapping(Session.spans) == Session.overlaps == 0
    assert overlapping(server.spans) >= 5


def test_faults_of_the_provider_are_retried_or_leave_the_denominator(tmp_path: Path) -> None:
    faults = {NAMES[0]: ["429", "500"], NAMES[1]: ["drop"], NAMES[2]: ["500"] * 99}

    def fault(task: str, number: int) -> str:
        return (faults.get(task, [])[number:] or [""])[0]

    with serving(answer, fault) as server:
        config = asking(server.url, max_retries=2, timeout=60)
        records = run_with_model(order(tmp_path), config)
    statuses = by_task(records)
    assert statuses[NAMES[0]] is statuses[NAMES[1]] is EvaluationStatus.CORRECT
    assert statuses[NAMES[2]] is EvaluationStatus.PROVIDER_ERROR
    scored = score(records)
    assert (scored["n"], scored["outside_denominator"]) == (4, 1)
    (failed,) = [r for r in records if r.status is EvaluationStatus.PROVIDER_ERROR]
    assert failed.message and failed.kernel is None


@pytest.mark.parametrize("fault", ["garbage", "slow"])
def test_answers_that_are_none_are_the_providers_fault(tmp_path: Path, fault: str) -> None:
    with serving(answer, lambda task, _n: fault if task == NAMES[0] else "") as server:
        config = asking(server.url, max_retries=1, timeout=4)
        statuses = by_task(run_with_model(order(tmp_path), config))
    assert statuses[NAMES[0]] is EvaluationStatus.PROVIDER_ERROR
    assert statuses[NAMES[1]] is EvaluationStatus.CORRECT


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with serving(answer) as server:
        whole = run_with_model(order(tmp_path), asking(server.url))
        path = tmp_path / RECORDS
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:2]) + lines[2][:100])
        kept = {record.id for record in read_records(path).records}
        again = run_with_model(order(tmp_path, resume=True), asking(server.url))
        assert by_task(again) == by_task(whole)
        asked = {r.task.workload: 1 + (r.id not in kept) for r in whole}
        assert server.asked == asked
        run_with_model(order(tmp_path, resume=True), asking(server.url))
        assert server.asked == asked


def test_attempts_without_an_answer_are_made_again_on_wish(tmp_path: Path) -> None:
    down = threading.Event()
    down.set()

    def fault(task: str, _number: int) -> str:
        return "500" if task == NAMES[0] and down.is_set() else ""

    path = tmp_path / RECORDS
    with serving(answer, fault) as server:
        config = asking(server.url, max_retries=0)
        first = run_with_model(order(tmp_path), config)
        down.clear()
        assert by_task(run_with_model(order(tmp_path, resume=True), config)) == by_task(first)
        before, asked = path.read_bytes(), dict(server.asked)
        again = run_with_model(order(tmp_path, resume=True, retry=True), config)
        done = run_with_model(order(tmp_path, resume=True, retry=True), config)
    statuses = {**by_task(first), NAMES[0]: EvaluationStatus.CORRECT}
    assert by_task(again) == by_task(done) == statuses
    assert path.read_bytes().startswith(before)
    assert server.asked == {**asked, NAMES[0]: asked[NAMES[0]] + 1}
    loaded = read_records(path)
    assert not loaded.problems
    (old,) = loaded.replaced
    assert (old.task.workload, old.status) == (NAMES[0], EvaluationStatus.PROVIDER_ERROR)


def test_an_interrupted_attempt_has_no_record(tmp_path: Path) -> None:
    patient = threading.Event()

    def fault(task: str, _number: int) -> str:
        return "slow" if task == NAMES[0] and not patient.is_set() else ""

    def interrupt() -> None:
        path = tmp_path / RECORDS
        while not path.exists() or len(path.read_bytes().splitlines()) < 3:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    # A shell that starts the tests in the background has them ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with serving(answer, fault) as server:
        threading.Thread(target=interrupt, daemon=True).start()
        try:
            with pytest.raises(KeyboardInterrupt):
                run_with_model(order(tmp_path), asking(server.url))
        finally:
            signal.signal(signal.SIGINT, before)
        time.sleep(0.5)
        kept = by_task(list(read_records(tmp_path / RECORDS).records))
        assert len(kept) >= 3
        assert NAMES[0] not in kept
        assert EvaluationStatus.PROVIDER_ERROR not in kept.values()
        patient.set()
        again = by_task(run_with_model(order(tmp_path, resume=True), asking(server.url)))
    assert again[NAMES[0]] is EvaluationStatus.CORRECT
    assert kept.items() <= again.items()


def test_repair_uses_its_evaluations_and_no_more(tmp_path: Path) -> None:
    with serving(lambda task: f"```ekir\n{kernel(task, 'slow')}\n```") as server:
        records = run_with_model(order(tmp_path, "repair"), asking(server.url))
    assert server.asked == dict.fromkeys(NAMES, 2)
    for record in records:
        assert record.spent.evaluations == 2 and record.spent.tokens == 30
        actions = [step.action for step in record.trajectory]
        turn = ["ask", "check", "evaluate"]
        assert actions == [*turn, "keep", *turn, "stop"]
    assert Session.overlaps == 0


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("nobody/knows", "not recognized"),
        ("openai-api/keyless/m", "KEYLESS_API_KEY"),
        ("", "model ''"),
    ],
)
def test_a_model_that_cannot_be_had_costs_nothing(tmp_path: Path, model: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        run_with_model(order(tmp_path / "run"), Asking(model))
    assert told in caught.value.message and "\n" not in caught.value.message
    assert caught.value.help and not (tmp_path / "run").exists()


def test_an_address_where_nobody_listens_is_noticed_first(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing answers at 127\.0\.0\.1:1 ") as caught:
        run_with_model(order(tmp_path / "run"), asking("http://127.0.0.1:1/v1"))
    assert "--model-base-url" in caught.value.help


@pytest.mark.parametrize("url", ["127.0.0.1:8000/v1", "localhost/v1", "ftp://here/v1", "http://"])
def test_what_is_no_address_is_noticed_first(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="is no address of a server") as caught:
        run_with_model(order(tmp_path / "run"), asking(url))
    assert "http://" in caught.value.help and not (tmp_path / "run").exists()


def test_an_address_that_is_missing_is_told_how_to_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOWHERE_API_KEY", "none")
    with pytest.raises(UsageError) as caught:
        run_with_model(order(tmp_path / "run"), Asking("openai-api/nowhere/m"))
    assert "NOWHERE_BASE_URL" in caught.value.help and "--model-base-url" in caught.value.help


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"subst": "quick"}, "unknown task argument 'subst'"),
        ({"subset": "quik"}, "quik"),
        ({"workload": "softmax_last__99"}, "softmax_last__99"),
    ],
)
def test_what_inspect_is_told_wrong_is_one_line_of_its_own(
    tmp_path: Path, given: dict[str, Any], told: str
) -> None:
    with pytest.raises(PrerequisiteError) as caught:
        tasks.direct(**given, model="openai/gpt", out=str(tmp_path / "run"))
    assert told in str(caught.value.message) and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("status", "names", "told", "help"),
    [
        (401, [], "does not take the key (not you)", "LOOPBACK_API_KEY"),
        (404, ["small", "large"], "knows no 'scripted' (not you)", "it has: small, large"),
        (404, [], "knows no 'scripted'", "/v1"),
    ],
)
def test_what_an_address_refuses_is_noticed_first(
    tmp_path: Path, status: int, names: list[str], told: str, help: str
) -> None:
    with serving(answer) as server:
        server.refusal, server.names = (status, "not\nyou"), names
        with pytest.raises(UsageError) as caught:
            run_with_model(order(tmp_path / "run"), asking(server.url))
    assert told in caught.value.message and "\n" not in caught.value.message
    assert help in caught.value.help and not (tmp_path / "run").exists()
