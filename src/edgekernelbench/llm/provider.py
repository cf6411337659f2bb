"""Inspect's models as `edgekernelbench.agents.model.Model`, and what is asked of one beforehand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import anyio.from_thread
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    get_model,
)

from edgekernelbench.agents.model import Message, ProviderError, Reply
from edgekernelbench.errors import UsageError
from edgekernelbench.llm.reach import refuse_unreachable

_KINDS = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


class InspectModel:
    """Asks the model of the Inspect evaluation that is going on.

    Made for agents that run in worker threads of that evaluation: the question is asked in its
    event loop, in the name of the sample, so that it appears in the log.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def ask(self, messages: Sequence[Message], epoch: int = 0) -> Reply:
        """See `Model.ask`."""
        try:
            return anyio.from_thread.run(_generate, chat(messages))
        except ProviderError:
            raise
        except Exception as error:  # providers' exceptions have no common base
            raise ProviderError(f"{type(error).__name__}: {one_line(error)}") from error


def chat(messages: Sequence[Message]) -> list[ChatMessage]:
    """A conversation in Inspect's terms."""
    return [_KINDS[message.role](content=message.text) for message in messages]


async def _generate(messages: list[ChatMessage]) -> Reply:
    output = await get_model().generate(messages)
    if output.error:
        raise ProviderError(output.error)
    usage = output.usage
    return Reply(
        text=output.completion,
        tokens=0 if usage is None else usage.total_tokens,
        cost=None if usage is None else usage.total_cost,
        cut=output.stop_reason in ("max_tokens", "model_length"),
    )


def ready_model(name: str, base_url: str | None, config: GenerateConfig) -> Any:
    """The model of that name, asked for nothing yet.

    Raises:
        UsageError: there is no such provider or model, its package or key is missing, nothing
            listens at its address, or what does refuses key or model.
    """
    try:
        model = get_model(name, base_url=base_url, config=config)
    except PrerequisiteError as error:
        told = f"model {name!r}: {one_line(error.message)}"
        raise UsageError(told, _way_out(str(error.message))) from error
    except Exception as error:  # an unknown provider is a ValueError, a bad argument anything
        raise UsageError(f"model {name!r}: {one_line(error)}", _REMEDY) from error
    refuse_unreachable(name, model.api)
    return model


def _way_out(message: str) -> str:
    """By the variable that is missing."""
    if key := re.search(r"\b[A-Z0-9_]+_API_KEY\b", message):
        return f"export {key[0]}=...; a local server takes any text"
    if url := re.search(r"\b[A-Z0-9_]+_BASE_URL\b", message):
        return f"export {url[0]}=http://HOST:PORT/v1, or give --model-base-url"
    return _REMEDY


_REMEDY = (
    "name it PROVIDER/MODEL as Inspect does (openai/..., anthropic/..., "
    "openai-api/NAME/MODEL with NAME_BASE_URL and NAME_API_KEY set)"
)


def one_line(message: object) -> str:
    """A message without markup and line breaks, cut to what fits a line."""
    text = re.sub(r"\[/?[a-z ]+\]", "", str(message))
    return " ".join(text.split())[:300]
