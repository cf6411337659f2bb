"""What a coding agent's command line asks its model, under the budget and on the record."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import anyio
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from inspect_ai.util import LimitExceededError

from edgekernelbench.agents.base import Device
from edgekernelbench.agents.model import ProviderError
from edgekernelbench.llm.provider import one_line
from edgekernelbench.records.schema import Step

SIMPLE = "Answer with the one word: here"
"""What is asked to tell a provider that does not work from a question that has no answer."""

LAST_TURNS = 8
"""Questions after the last evaluation: enough to leave a kernel behind, and no more."""


class Meter:
    """Stands between a command line and the model: charges the budget, keeps every question and
    answer, and answers itself when the budget is spent.

    Under a limit of tokens or cost one question is asked at a time: what several take is known
    only when all of them are answered.

    A question that gets no answer may be the command line's fault, and with it the agent's: too
    long, out of form, repeated until the provider has enough. So the model is asked something
    simple then. Only when that fails too it is the provider's fault, and the attempt ends.

    Attributes:
        why: the conversation was ended from here; empty if it was not.
        said: the last answer that calls no tool.
        provider_error: why the model gave no answer; empty if it did.
        broken: set with it.
    """

    def __init__(self, device: Device, turns: int) -> None:
        self.why = ""
        self.said = ""
        self.provider_error = ""
        self.broken = anyio.Event()
        self._device = device
        self._turns = turns
        self._asked = 0
        self._last_turns: int | None = None
        self._told: set[str] = set()
        limits = device.budget.limits
        limited = limits.tokens is not None or limits.cost is not None
        turn: AbstractAsyncContextManager[Any] = anyio.Lock() if limited else nullcontext()
        self._turn = turn

    async def ask(
        self,
        model: Model,
        messages: list[ChatMessage],
        tools: list[ToolInfo],
        choice: ToolChoice | None,
        config: GenerateConfig,
    ) -> ModelOutput:
        """The model's answer to a request of the command line. A `GenerateFilter`."""
        async with self._turn:
            self.why = self._spent()
            if self.why:
                return ModelOutput.from_content(str(model), f"Stopped here: {self.why}.")
            self._asked += 1
            try:
                output = await model.generate(messages, tools, choice, config)
            except LimitExceededError:
                raise
            except Exception as error:  # providers' exceptions have no common base
                message = f"{type(error).__name__}: {one_line(error)}"
                raise await self._unanswered(model, message) from error
            if output.error:
                raise await self._unanswered(model, output.error)
            self._keep(messages, output)
            return output

    def _spent(self) -> str:
        """Why the model is asked no more; empty if it is."""
        budget = self._device.budget
        spent = budget.all_spent()
        if spent is None and self._asked >= self._turns:
            spent = f"all {self._turns} questions are asked"
        if spent is None and budget.evaluations_left == 0:
            self._last_turns = LAST_TURNS if self._last_turns is None else self._last_turns - 1
            spent = budget.exhausted() if self._last_turns <= 0 else None
        return spent or ""

    async def _unanswered(self, model: Model, message: str) -> ProviderError:
        """What the command line is told of a question without an answer."""
        if not await _answers(model):
            self.provider_error = message
            self.broken.set()
        return ProviderError(message)

    def _keep(self, messages: list[ChatMessage], output: ModelOutput) -> None:
        usage, budget = output.usage, self._device.budget
        tokens = 0 if usage is None else usage.total_tokens
        budget.charge(tokens=tokens, cost=None if usage is None else usage.total_cost)
        texts = [as_text(message) for message in messages]
        prompt = "\n\n".join(text for text in texts if text not in self._told)
        self._told.update(texts)
        answer = "" if output.empty else as_text(output.message)
        if not output.empty and not output.message.tool_calls:
            self.said = output.completion
        self._told.add(answer)
        step = Step(
            action="ask",
            seconds=round(budget.seconds, 3),
            prompt=self._device.keep_text(prompt),
            answer=self._device.keep_text(answer),
            tokens=tokens,
        )
        self._device.note(step)


async def _answers(model: Model) -> bool:
    """Whether a question answers that any model can answer."""
    try:
        output = await model.generate([ChatMessageUser(content=SIMPLE)])
    except LimitExceededError:
        raise
    except Exception:  # as in `Meter.ask`
        return False
    return not output.error


def as_text(message: ChatMessage) -> str:
    """A message as a reader sees it, with the tools that it calls."""
    lines = [f"[{message.role}]"]
    if message.text:
        lines.append(message.text)
    if isinstance(message, ChatMessageAssistant):
        lines += [f"calls {call.function} {call.arguments}" for call in message.tool_calls or ()]
    return "\n".join(lines)
