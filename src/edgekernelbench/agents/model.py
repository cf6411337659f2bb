"""What an agent sees of a language model, and models that need none.

An agent asks with the whole conversation and waits for the answer. Who answers is not its concern:
a provider (through `edgekernelbench.llm`), a script, or a file of answers (`agents.batches`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, Protocol

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

    def ask(self, messages: Sequence[Message], epoch: int = 0) -> Reply:
        """The model's answer.

        Args:
            epoch: number of the attempt that asks, by which answers to the same conversation
                differ.

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

    def ask(self, messages: Sequence[Message], epoch: int = 0) -> Reply:
        answer = self._answer(messages)
        return answer if isinstance(answer, Reply) else Reply(answer)
