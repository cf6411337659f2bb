"""LEKA, the layered edge kernel agent: revises one layer of a kernel at a time (docs/leka.md)."""

from __future__ import annotations

from typing import Any

from edgekernelbench.agents.base import Answer, Device, Task
from edgekernelbench.agents.leka.course import Course, Options
from edgekernelbench.agents.leka.propose import ModelProposer, MoveProposer
from edgekernelbench.agents.model import Model
from edgekernelbench.agents.prompts import prompt_version
from edgekernelbench.agents.talk import Talk

_TEMPLATES = ("leka_system.md.j2", "leka.md.j2")


class Leka:
    """The agent with a model."""

    name = "leka"

    def __init__(self, model: Model, options: Options | None = None) -> None:
        self._model = model
        self._options = options or Options()
        self._notes: list[str] = []
        self.needs_canonical = self._options.mode == "optimise"

    @property
    def options(self) -> dict[str, Any]:
        return {"prompt": prompt_version(_TEMPLATES), **self._options.as_dict()}

    def attempt(self, task: Task, device: Device, seed: int) -> Answer:
        """See `Agent.attempt`."""
        options = self._options
        talk = Talk(self._model, device)
        proposer = ModelProposer(talk, options.alternatives, options.report, not options.layers)
        notes = self._notes if options.learn else []
        return Course(task, device, proposer, options, seed, notes).run()


class LekaMoves:
    """The same structure with the tuner's moves in the model's place."""

    name = "leka-moves"
    needs_canonical = True

    def __init__(self) -> None:
        # The tuner's moves end by themselves, and none of them is drawn twice.
        self._options = Options(mode="optimise", rounds=100_000, patience=100_000)

    @property
    def options(self) -> dict[str, Any]:
        return self._options.as_dict()

    def attempt(self, task: Task, device: Device, seed: int) -> Answer:
        """See `Agent.attempt`."""
        return Course(task, device, MoveProposer(task, seed), self._options, seed).run()
