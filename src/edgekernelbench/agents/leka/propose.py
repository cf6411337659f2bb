"""Where patches come from: a model that is asked for one layer, or the tuner's own moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from edgekernelbench.agents.base import Refused as Spent
from edgekernelbench.agents.base import Task
from edgekernelbench.agents.leka.answers import nothing_in, patches_in
from edgekernelbench.agents.leka.layers import LAYERS, Layer, Patch, layer_text
from edgekernelbench.agents.leka.observe import Observation
from edgekernelbench.agents.leka.route import Route
from edgekernelbench.agents.leka.screen import Screened
from edgekernelbench.agents.model import Message
from edgekernelbench.agents.prompts import (
    BASELINES,
    CHARS_PER_TOKEN,
    MAX_TOKENS,
    NAME_TOKENS,
    budget_text,
    estimate_tokens,
    gpu_guide,
    guide,
    render,
    target_facts,
)
from edgekernelbench.agents.talk import Talk
from edgekernelbench.suite.gallery import shown_for

Proposal = tuple[Patch, ...]
"""Patches that belong together, one a layer; nearly always a single one."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a proposer is told.

    Attributes:
        head: what the patch is applied to; None while there is no kernel at all.
        seen: of it.
        told: what became of the proposals before, the newest last.
        notes: what helped on other tasks of the run.
    """

    task: Task
    route: Route
    head: Screened | None
    seen: Observation | None
    told: Sequence[str] = ()
    notes: Sequence[str] = ()


class Proposer(Protocol):
    """``trusted``: what it proposes was lowered by itself and changes no results. ``missed``: why
    the last answer held no proposal."""

    trusted: bool
    missed: str

    def propose(self, situation: Situation) -> list[Proposal] | Spent:
        """Alternatives for the layer that is due, the best guess first; none when out of them."""
        ...

    def learn(self, proposal: Proposal, us: float | None) -> None:
        """Hears how a proposal did on the device; None where it is not correct."""
        ...


class ModelProposer:
    """Asks a model for one layer, the other two frozen.

    Args:
        alternatives: that it is asked for at most.
        report: whether it sees the static report.
        whole: it writes the whole kernel, all layers at once (an ablation).
    """

    trusted = False
    missed = ""

    def __init__(
        self, talk: Talk, alternatives: int, report: bool = True, whole: bool = False
    ) -> None:
        self._talk = talk
        self._alternatives = alternatives
        self._report = report
        self._whole = whole

    def propose(self, situation: Situation) -> list[Proposal] | Spent:
        """See `Proposer`."""
        reply = self._talk.ask(self._prompt(situation), situation.route.reason)
        if isinstance(reply, Spent):
            return reply
        layer = situation.route.layer
        if not self._whole:
            patches = patches_in(reply.text, layer)
            self.missed = "" if patches else nothing_in(reply.text, layer)
            return [(patch,) for patch in patches]
        parts = [patches_in(reply.text, layer) for layer in LAYERS]
        return [
            tuple(
                found[-1]
                for found, at in zip(parts, LAYERS, strict=True)
                if found and found[-1].layer == at
            )
        ]

    def learn(self, proposal: Proposal, us: float | None) -> None:
        """A model is told in the next prompt."""

    def _prompt(self, situation: Situation) -> tuple[Message, ...]:
        task, target = situation.task, situation.task.target
        more = gpu_guide() if target.gpu is not None else ""
        system = render("leka_system.md.j2", guide=guide() + ("\n" + more if more else ""))
        values = self._values(situation)
        without = system + render("leka.md.j2", **values, example_name="", example="")
        left = MAX_TOKENS + estimate_tokens(more) - estimate_tokens(without) - NAME_TOKENS
        longest = min(_EXAMPLE_CHARS, max(0, int(left * CHARS_PER_TOKEN)))
        section = target.section_names[1]
        example = shown_for(task.workload, longest, section, "memory")
        kernel = example.kernel_for(section).strip()
        body = render("leka.md.j2", **values, example_name=example.workload.id, example=kernel)
        return (Message("system", system), Message("user", body))

    def _values(self, situation: Situation) -> dict[str, Any]:
        """What the template asks for, without the example."""
        task, target = situation.task, situation.task.target
        seen, head = situation.seen, situation.head
        texts = (
            {} if head is None else {one: layer_text(head.kernel, one, target) for one in LAYERS}
        )
        return {
            "statement": task.workload.statement(),
            "target": target_facts(target),
            "baselines": BASELINES[target.backend],
            "budget": budget_text(self._talk.device.budget),
            "layer": situation.route.layer,
            "reason": situation.route.reason,
            "section": target.section_names[1],
            "layers": texts,
            "report": seen.text() if seen is not None and self._report else "",
            "told": list(situation.told)[-_TOLD:],
            "notes": list(situation.notes)[-_NOTES:],
            "alternatives": self._alternatives,
            "whole": self._whole,
        }


_EXAMPLE_CHARS = 700
_TOLD = 4
_NOTES = 5


class MoveProposer:
    """The tuner's moves in a model's place: what the structure does without any model.

    A move states a nest; where it needs an operand laid out its way the patch to the memory layer
    comes along.
    """

    trusted = True
    missed = ""

    def __init__(self, task: Task, seed: int) -> None:
        from edgekernelbench.agents.tuner import Moves

        self._moves = Moves(task.workload.canonical(), task.target, seed)
        self._target = task.target
        self._steps: Iterator[tuple[str, str]] = iter(self._moves)

    def propose(self, situation: Situation) -> list[Proposal] | Spent:
        """One move: it depends on how the one before it did."""
        for reason, text in self._steps:
            patches = self._patches(reason, text)
            return [patches]
        return []

    def learn(self, proposal: Proposal, us: float | None) -> None:
        """See `Proposer`."""
        self._moves.tell(us)

    def _patches(self, reason: str, text: str) -> Proposal:
        from edgekernelbench.ir.parse import parse

        kernel = parse(text).kernel
        assert kernel is not None
        layers: tuple[Layer, ...] = ("schedule", "memory")
        return tuple(Patch(one, layer_text(kernel, one, self._target), reason) for one in layers)
