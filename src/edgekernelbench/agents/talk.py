"""A conversation with a model, under the budget and on the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgekernelbench.agents.base import Device, Refused
from edgekernelbench.agents.model import Message, Model, Reply
from edgekernelbench.records.schema import Step


@dataclass(frozen=True, slots=True)
class Talk:
    """Asks a model in the name of one attempt."""

    model: Model
    device: Device

    def ask(self, messages: Sequence[Message], reason: str = "") -> Reply | Refused:
        """The model's answer; charged, and a step of the trajectory with both texts.

        Raises:
            ProviderError: there is no answer.
        """
        budget = self.device.budget
        spent = budget.exhausted()
        if spent is not None:
            return Refused(f"{spent}; answer with the best kernel so far")
        reply = self.model.ask(messages, self.device.epoch)
        budget.charge(tokens=reply.tokens, cost=reply.cost)
        step = Step(
            action="ask",
            seconds=round(budget.seconds, 3),
            reason=reason,
            prompt=self.device.keep_text(as_text(messages)),
            answer=self.device.keep_text(reply.text),
            tokens=reply.tokens,
        )
        self.device.note(step)
        return reply


def as_text(messages: Sequence[Message]) -> str:
    """A conversation as one readable text."""
    return "\n\n".join(f"[{message.role}]\n{message.text}" for message in messages)
