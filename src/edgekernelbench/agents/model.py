"""What an agent sees of a language model, and models that need none.

An agent asks with the whole conversation and waits for the answer. Who answers is not its concern:
a provider (through `edgekernelbench.llm`), a script, or a file of answers given elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from edgekernelbench.errors import UsageError

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer and what it took.

    Attributes:
        tokens: of the prompt and of the answer together, as the provider counts them.
        cost: in US dollars; None where nobody knows.
        cut: the answer ends because it reached a length limit.
    """

    text: str
    tokens: int = 0
    cost: float | None = None
    cut: bool = False


class ProviderError(Exception):
    """No answer came: the provider refused, failed or could not be reached. Not the model's fault,
    so the attempt leaves the denominator."""


class Model(Protocol):
    """Answers conversations. Used from several threads at a time, one for each attempt."""

    name: str

    def ask(self, messages: Sequence[Message]) -> Reply:
        """The model's answer.

        Raises:
            ProviderError: there is none.
        """
        ...


def prompt_hash(messages: Sequence[Message]) -> str:
    """Key of a stored answer: 40 hexadecimal digits of a conversation's SHA-256, short enough for
    the ids that batch interfaces allow."""
    text = json.dumps([asdict(m) for m in messages], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


class Scripted:
    """Answers by a function of the conversation, without any provider: for tests and trials."""

    def __init__(self, answer: Callable[[Sequence[Message]], str | Reply]) -> None:
        self.name = "scripted"
        self._answer = answer

    def ask(self, messages: Sequence[Message]) -> Reply:
        answer = self._answer(messages)
        return answer if isinstance(answer, Reply) else Reply(answer)


class Replay:
    """Answers from a file of earlier answers, by the hash of the conversation.

    Several answers to one conversation (epochs) are given in their order, the last one again.
    """

    def __init__(self, name: str, answers: Mapping[str, Sequence[Reply]]) -> None:
        self.name = name
        self._answers = answers
        self._given: dict[str, int] = {}

    def ask(self, messages: Sequence[Message]) -> Reply:
        key = prompt_hash(messages)
        known = self._answers.get(key)
        if not known:
            raise ProviderError(f"no stored answer to prompt {key}")
        number = self._given.get(key, 0)
        self._given[key] = number + 1
        return known[min(number, len(known) - 1)]


def read_answers(path: Path) -> Replay:
    """Answers from JSON lines, in one of two shapes: ``{"prompt_hash": ..., "text": ...}``, or a
    line of a provider's batch output, whose ``custom_id`` is the prompt's hash (with ``-N`` for the
    N-th answer to it).

    Raises:
        UsageError: the file cannot be read, or a line is neither.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({error})", "give a file of answers") from error
    found: dict[str, list[Reply]] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            key, reply = _answer_of(line, f"{path}:{number}")
            found.setdefault(key, []).append(reply)
    if not found:
        raise UsageError(
            f"{path}: holds no answer", "export prompts, have them answered, try again"
        )
    return Replay(f"replay:{path.name}", found)


def _answer_of(line: str, where: str) -> tuple[str, Reply]:
    try:
        data = json.loads(line)
        if "prompt_hash" in data:
            return str(data["prompt_hash"]), Reply(str(data["text"]), int(data.get("tokens", 0)))
        key = str(data["custom_id"]).partition("-")[0]
        return key, _batch_reply(data)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        shapes = '{"prompt_hash": ..., "text": ...} or a line of a batch output'
        raise UsageError(f"{where}: no answer ({error!r:.80})", f"each line is {shapes}") from error


def _batch_reply(data: dict[str, Any]) -> Reply:
    """From the body of a batch output: chat completions, or a message with parts of content."""
    body = data["response"]["body"] if "response" in data else data["result"]["message"]
    usage = body.get("usage", {})
    counted = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
    tokens = sum(int(usage.get(kind, 0)) for kind in counted)
    if "choices" in body:
        choice = body["choices"][0]
        cut = choice.get("finish_reason") == "length"
        return Reply(str(choice["message"]["content"] or ""), tokens, cut=cut)
    parts: Iterable[dict[str, Any]] = body["content"]
    text = "".join(str(part.get("text", "")) for part in parts)
    return Reply(text, tokens, cut=body.get("stop_reason") == "max_tokens")
