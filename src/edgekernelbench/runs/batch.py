"""A run whose model is asked elsewhere: its questions go out as a file, its answers come back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgekernelbench.agents.base import Task
from edgekernelbench.agents.batches import Replay, batch_line, read_answers
from edgekernelbench.agents.model import Message, prompt_hash
from edgekernelbench.agents.prompts import first_prompt
from edgekernelbench.errors import UsageError
from edgekernelbench.runs.order import Order
from edgekernelbench.targets.registry import find_target

_SHOWN = 3


def export_prompts(order: Order, model: str, file: Path) -> int:
    """Writes the question of every attempt as a line of a batch; returns how many.

    Args:
        model: PROVIDER/MODEL, which decides the shape of the lines.

    Raises:
        UsageError: the agent asks more than one question, the model's name has no provider, or the
            file is there already or cannot be written.
    """
    if "/" not in model.strip("/"):
        raise UsageError(f"model {model!r} names no provider", "write PROVIDER/MODEL: openai/...")
    lines = [batch_line(model, messages, epoch) for messages, epoch in _questions(order)]
    try:
        with file.open("x", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        told = f"{file}: cannot be written ({error.strerror})"
        raise UsageError(told, "choose another file for the prompts") from error
    return len(lines)


@dataclass(frozen=True, slots=True)
class Imported:
    """Stored answers for an order. ``notes``: what of the file does not fit, a line each."""

    model: Replay
    notes: tuple[str, ...]


def import_answers(order: Order, file: Path, model: str | None) -> Imported:
    """Reads the answers to an order's exported questions.

    Attempts whose answer is missing will end as ``provider_error``.

    Args:
        model: who answered, for the records.

    Raises:
        UsageError: the agent asks more than one question, the file cannot be used (see
            `read_answers`), or it answers none of the order's questions.
    """
    questions = [(prompt_hash(messages), epoch) for messages, epoch in _questions(order)]
    answers = read_answers(file, model or f"answers:{file.name}")
    missing, unknown = answers.gaps(questions)
    if len(missing) == len(questions):
        raise UsageError(
            f"{file}: answers none of the {len(questions)} prompts of this run (it has "
            f"{_some(unknown)}, the run {_some(missing)})",
            "give the target, tasks and version of the package that exported the prompts",
        )
    notes = []
    if missing:
        notes.append(f"{len(missing)} prompts have no answer: {_some(missing)}")
    if unknown:
        notes.append(f"{len(unknown)} answers belong to no prompt of this run: {_some(unknown)}")
    return Imported(answers, tuple(notes))


def _questions(order: Order) -> Iterator[tuple[tuple[Message, ...], int]]:
    """Conversation and epoch of each attempt."""
    if order.agent != "direct":
        raise UsageError(
            f"the agent {order.agent!r} asks what depends on earlier answers",
            "only --agent direct works with files of prompts and answers",
        )
    target = find_target(order.target)
    for workload in order.workloads:
        messages = first_prompt(Task(workload, target))
        for epoch in range(order.epochs):
            yield messages, epoch


def _some(ids: list[str]) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(ids[:_SHOWN]) + more if ids else "none"
