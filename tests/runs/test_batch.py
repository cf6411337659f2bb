"""Prompts that go out as a file and answers that come back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgekernelbench.agents.base import Task
from edgekernelbench.agents.model import ProviderError, prompt_hash
from edgekernelbench.agents.prompts import first_prompt
from edgekernelbench.errors import UsageError
from edgekernelbench.records.schema import Spent
from edgekernelbench.runs.batch import export_prompts, import_answers
from edgekernelbench.runs.order import Order
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.registry import find_target

NAMES = ("relu__01", "softmax_last__02")


def order(agent: str = "direct", epochs: int = 2) -> Order:
    return Order(
        agent=agent,
        target="llvm",
        workloads=tuple(load_suite().workloads[name] for name in NAMES),
        subset="named",
        limits=Spent(),
        epochs=epochs,
        seed=0,
        folder=Path("unused"),
        resume=False,
    )


def exported(folder: Path, model: str, **more: Any) -> list[dict[str, Any]]:
    file = folder / "prompts.jsonl"
    number = export_prompts(order(**more), model, file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == number
    return lines


def answered(folder: Path, *lines: dict[str, Any]) -> Path:
    file = folder / "answers.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def chat(id: str, text: str) -> dict[str, Any]:
    body = {"choices": [{"message": {"content": text}}], "usage": {"prompt_tokens": 7}}
    return {"custom_id": id, "response": {"status_code": 200, "body": body}, "error": None}


def test_prompts_go_out_as_chat_completions(tmp_path: Path) -> None:
    lines = exported(tmp_path, "openai-api/local/org/m")
    assert len(lines) == 4
    messages = first_prompt(Task(load_suite().workloads[NAMES[0]], find_target("llvm")))
    assert [line["custom_id"] for line in lines[:2]] == [
        f"{prompt_hash(messages)}-1",
        f"{prompt_hash(messages)}-2",
    ]
    first = lines[0]
    assert (first["method"], first["url"]) == ("POST", "/v1/chat/completions")
    assert first["body"]["model"] == "org/m"
    assert first["body"]["messages"] == [{"role": m.role, "content": m.text} for m in messages]
    assert all(len(line["custom_id"]) <= 64 for line in lines)


def test_prompts_go_out_as_message_batches(tmp_path: Path) -> None:
    params = exported(tmp_path, "anthropic/m")[0]["params"]
    assert params["model"] == "m" and params["max_tokens"] > 0
    assert [message["role"] for message in params["messages"]] == ["user"] and params["system"]


def test_answers_go_to_the_attempts_they_were_asked_for(tmp_path: Path) -> None:
    ids = [line["custom_id"] for line in exported(tmp_path, "openai/m")]
    file = answered(tmp_path, *[chat(id, f"answer to {id}") for id in reversed(ids)])
    imported = import_answers(order(), file, None)
    assert imported.notes == () and imported.model.name == "answers:answers.jsonl"
    assert import_answers(order(), file, "openai/m").model.name == "openai/m"
    for index, name in enumerate(NAMES):
        messages = first_prompt(Task(load_suite().workloads[name], find_target("llvm")))
        for epoch in (1, 0):  # a run that is taken up again begins anywhere
            reply = imported.model.ask(messages, epoch)
            assert (reply.text, reply.tokens) == (f"answer to {ids[2 * index + epoch]}", 7)


def test_missing_and_unknown_answers_are_told(tmp_path: Path) -> None:
    ids = [line["custom_id"] for line in exported(tmp_path, "openai/m")]
    stray = "0" * 40 + "-1"
    file = answered(tmp_path, chat(ids[0], "a"), chat(ids[2], "b"), chat(stray, "c"))
    imported = import_answers(order(), file, None)
    assert f"2 prompts have no answer: {ids[1]}, {ids[3]}" in imported.notes[0]
    assert f"1 answers belong to no prompt of this run: {stray}" in imported.notes[1]
    messages = first_prompt(Task(load_suite().workloads[NAMES[0]], find_target("llvm")))
    with pytest.raises(ProviderError, match=f"no stored answer to prompt {ids[1]}"):
        imported.model.ask(messages, 1)


def test_answers_to_another_run_are_refused(tmp_path: Path) -> None:
    file = answered(tmp_path, chat("0" * 40 + "-1", "c"))
    with pytest.raises(UsageError, match="answers none of the 4 prompts"):
        import_answers(order(), file, None)


def test_two_answers_with_one_id_are_refused(tmp_path: Path) -> None:
    ids = [line["custom_id"] for line in exported(tmp_path, "openai/m")]
    file = answered(tmp_path, chat(ids[0], "a"), chat(ids[1], "b"), chat(ids[0], "c"))
    with pytest.raises(UsageError, match=rf"jsonl:3: {ids[0]} is answered twice, first on 1"):
        import_answers(order(), file, None)


@pytest.mark.parametrize(
    "rest",
    [
        {"response": None, "error": {"code": "batch_expired"}},
        {"response": {"status_code": 400, "body": {"error": {"message": "batch_expired"}}}},
        {"result": {"type": "batch_expired"}},
    ],
)
def test_a_question_that_a_batch_failed_on_is_the_providers_fault(
    tmp_path: Path, rest: dict[str, Any]
) -> None:
    id = exported(tmp_path, "openai/m")[0]["custom_id"]
    model = import_answers(order(), answered(tmp_path, {"custom_id": id, **rest}), None).model
    messages = first_prompt(Task(load_suite().workloads[NAMES[0]], find_target("llvm")))
    with pytest.raises(ProviderError, match="batch_expired"):
        model.ask(messages, 0)


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'repair' asks what depends on earlier answers"):
        export_prompts(order("repair"), "openai/m", tmp_path / "a")
    with pytest.raises(UsageError, match="names no provider"):
        export_prompts(order(), "gpt", tmp_path / "a")
    (tmp_path / "a").write_text("mine")
    with pytest.raises(UsageError, match="File exists"):
        export_prompts(order(), "openai/m", tmp_path / "a")
    assert (tmp_path / "a").read_text() == "mine"
