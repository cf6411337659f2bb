"""Questions and answers as files, for models that are asked elsewhere.

A question's key is `prompt_hash` of its conversation. Its id in a batch is the key with ``-N``, the
number of the attempt (epoch) from 1 on: short enough for the ids that batch interfaces allow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgekernelbench.agents.model import Message, ProviderError, Reply, prompt_hash
from edgekernelbench.errors import UsageError

MAX_ANSWER_TOKENS = 16384
"""Of one answer, where a batch's shape demands a limit."""

_COUNTED = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
_UNREADABLE = (
    LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError
)  # fmt: skip
_ID = re.compile(r"(?P<key>[0-9a-f]{40})(?:-(?P<number>[1-9]\d*))?")


@dataclass(frozen=True, slots=True)
class Failed:
    """What a batch says of a question that got no answer."""

    message: str


Stored = Reply | Failed


@dataclass(slots=True)
class _Answers:
    """To one conversation: by the number of the attempt, and those without a number, in order."""

    numbered: dict[int, Stored] = field(default_factory=dict)
    plain: list[Stored] = field(default_factory=list)

    def of(self, epoch: int) -> Stored | None:
        if epoch in self.numbered:
            return self.numbered[epoch]
        return self.plain[min(epoch, len(self.plain) - 1)] if self.plain else None


class Replay:
    """A model whose answers are stored, by the hash of the conversation.

    Answers with a number belong to that attempt. Answers without one are given to attempts in their
    order, the last one again and again.
    """

    def __init__(self, name: str, answers: dict[str, _Answers]) -> None:
        self.name = name
        self._answers = answers

    def ask(self, messages: Sequence[Message], epoch: int = 0) -> Reply:
        """See `Model.ask`."""
        key = prompt_hash(messages)
        known = self._answers.get(key)
        found = None if known is None else known.of(epoch)
        if found is None:
            raise ProviderError(f"no stored answer to prompt {batch_id(key, epoch)}")
        if isinstance(found, Failed):
            raise ProviderError(found.message)
        return found

    def gaps(self, wanted: Iterable[tuple[str, int]]) -> tuple[list[str], list[str]]:
        """What does not fit between these answers and questions.

        Args:
            wanted: key and epoch of each question.

        Returns:
            Ids of questions without an answer, and ids of answers without a question.
        """
        asked = list(wanted)
        missing = [
            batch_id(key, epoch)
            for key, epoch in asked
            if key not in self._answers or self._answers[key].of(epoch) is None
        ]
        expected, keys = set(asked), {key for key, _ in asked}
        unknown: list[str] = []
        for key, answers in self._answers.items():
            unknown += [batch_id(key, n) for n in answers.numbered if (key, n) not in expected]
            unknown += [key] if answers.plain and key not in keys else []
        return missing, unknown


def batch_id(key: str, epoch: int) -> str:
    """The id of a question in a batch."""
    return f"{key}-{epoch + 1}"


# ---------------------------------------------------------------- questions
def batch_line(model: str, messages: Sequence[Message], epoch: int) -> str:
    """One question as a line of a batch's input.

    Args:
        model: PROVIDER/MODEL; for ``anthropic`` the line is one of its message batches, else one of
            OpenAI's, which many other providers and servers take too.
    """
    provider, _, name = model.partition("/")
    if provider == "openai-api":
        name = name.partition("/")[2]
    id = batch_id(prompt_hash(messages), epoch)
    said = [{"role": m.role, "content": m.text} for m in messages]
    if provider == "anthropic":
        params = {
            "model": name,
            "max_tokens": MAX_ANSWER_TOKENS,
            "system": "\n\n".join(m.text for m in messages if m.role == "system"),
            "messages": [line for line in said if line["role"] != "system"],
        }
        return json.dumps({"custom_id": id, "params": params}, ensure_ascii=False)
    body = {"model": name, "messages": said}
    line = {"custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": body}
    return json.dumps(line, ensure_ascii=False)


# ---------------------------------------------------------------- answers
def read_answers(path: Path, name: str | None = None) -> Replay:
    """Answers from JSON lines, in one of three shapes: ``{"prompt_hash": ..., "text": ...}``, or
    ``{"custom_id": ..., "text": ...}``, or a line of a provider's batch output, whose ``custom_id``
    is the id of the question.

    Args:
        name: of the model in records; the file's name if left out.

    Raises:
        UsageError: the file cannot be read, a line is neither, or two have the same id.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({error})", "give a file of answers") from error
    found: dict[str, _Answers] = {}
    seen: dict[tuple[str, int], int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        key, epoch, answer = _answer_of(line, f"{path}:{number}")
        answers = found.setdefault(key, _Answers())
        if epoch is None:
            answers.plain.append(answer)
            continue
        before = seen.setdefault((key, epoch), number)
        if before != number:
            told = f"{path}:{number}: {batch_id(key, epoch)} is answered twice, first on {before}"
            raise UsageError(told, "leave one of the two lines")
        answers.numbered[epoch] = answer
    if not found:
        raise UsageError(
            f"{path}: holds no answer", "export prompts, have them answered, try again"
        )
    return Replay(name or f"replay:{path.name}", found)


def _answer_of(line: str, where: str) -> tuple[str, int | None, Stored]:
    try:
        data = json.loads(line)
        if "prompt_hash" in data:
            if not isinstance(data["text"], str):
                raise ValueError("its text is none")
            reply = Reply(data["text"], int(data.get("tokens", 0)))
            return str(data["prompt_hash"]), None, reply
        id = _ID.fullmatch(data["custom_id"])
        if id is None:
            raise ValueError(f"no id of an exported prompt: {data['custom_id']}")
        epoch = None if id["number"] is None else int(id["number"]) - 1
        return id["key"], epoch, _batch_answer(data)
    except _UNREADABLE as error:
        shapes = '{"custom_id": ..., "text": ...} or a line of a batch output'
        raise UsageError(f"{where}: no answer ({error})"[:300], f"each line is {shapes}") from error


def _batch_answer(data: dict[str, Any]) -> Stored:
    """From a line of a batch output: chat completions, or a message with parts of content."""
    if "result" in data:
        result = data["result"]
        if "message" not in result:
            return Failed(f"the batch says: {json.dumps(result)[:300]}")
        return _from_parts(result["message"])
    if isinstance(data.get("text"), str):
        return Reply(data["text"], int(data.get("tokens", 0)))
    if "response" not in data and "error" not in data:
        raise ValueError("it has neither response, result, error nor text")
    response = data.get("response")
    if not response or response.get("status_code", 200) != 200:
        error = data.get("error") or (response or {}).get("body") or "no response"
        return Failed(f"the batch says: {json.dumps(error)[:300]}")
    body = response["body"]
    choice = body["choices"][0]
    text = str(choice["message"]["content"] or "")
    return Reply(text, _tokens(body), cut=choice.get("finish_reason") == "length")


def _from_parts(message: dict[str, Any]) -> Reply:
    parts: Iterable[dict[str, Any]] = message["content"]
    text = "".join(str(part.get("text", "")) for part in parts)
    return Reply(text, _tokens(message), cut=message.get("stop_reason") == "max_tokens")


def _tokens(body: dict[str, Any]) -> int:
    usage = body.get("usage") or {}
    return sum(int(usage.get(kind) or 0) for kind in _COUNTED)
