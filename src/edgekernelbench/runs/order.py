"""What a run is asked to do, as a person says it and as it is stored."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ValidationError

from edgekernelbench.agents.base import Agent
from edgekernelbench.agents.model import Model
from edgekernelbench.agents.registry import make_agent
from edgekernelbench.evaluator import EvalSettings
from edgekernelbench.records.schema import Spent
from edgekernelbench.suite import Workload
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.registry import find_target

if TYPE_CHECKING:
    from edgekernelbench.agents.coding import CommandLine


Sandbox = Literal["docker", "local"]


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Everything that decides a run's results. ``isolated``: agents saw only their task."""

    agent: Agent
    model: str | None
    target: Target
    workloads: tuple[Workload, ...]
    subset: str
    limits: Spent
    epochs: int
    seed: int
    settings: EvalSettings
    isolated: bool = True

    def as_dict(self) -> dict[str, Any]:
        """The form that is stored, and compared when a run is resumed."""
        return {
            "version": 1,
            "agent": self.agent.name,
            "agent_options": self.agent.options,
            "model": self.model,
            "target": self.target.model_dump(mode="json"),
            "subset": self.subset,
            "workloads": [w.id for w in self.workloads],
            "limits": self.limits.model_dump(mode="json"),
            "epochs": self.epochs,
            "seed": self.seed,
            "settings": self.settings.model_dump(mode="json"),
        }


_STORED: dict[str, type[BaseModel]] = {
    "target": Target,
    "limits": Spent,
    "settings": EvalSettings,
}


def completed(stored: dict[str, Any]) -> dict[str, Any]:
    """Settings as an older package stored them, with the fields that came later at their defaults:
    a run that does not tell of them had none. What does not fit stays, and will differ."""
    out = dict(stored)
    for name, model in _STORED.items():
        with contextlib.suppress(ValidationError):
            out[name] = model.model_validate(out.get(name)).model_dump(mode="json")
    return out


@dataclass(frozen=True, slots=True)
class Order:
    """A run as it is asked for: agent and target by name. See `RunConfig` for the fields, and `run`
    for ``folder`` and ``resume``. ``sandbox``: where a coding agent's command line runs.
    ``options``: of the agent, as words. ``retry``: as in `runs.run.run`."""

    agent: str
    target: str
    workloads: tuple[Workload, ...]
    subset: str
    limits: Spent
    epochs: int
    seed: int
    folder: Path
    resume: bool
    sandbox: Sandbox = "docker"
    options: Mapping[str, str] = field(default_factory=dict)
    retry: bool = False

    def config(
        self, model: Model | None = None, command_line: CommandLine | None = None
    ) -> RunConfig:
        """The run's settings.

        Args:
            model: whom the agent asks.
            command_line: who runs a coding agent's command line.

        Raises:
            UsageError: there is no such agent or target, or agent and model do not fit.
        """
        return RunConfig(
            agent=make_agent(self.agent, model, command_line, self.options),
            model=None if model is None else model.name,
            target=find_target(self.target),
            workloads=self.workloads,
            subset=self.subset,
            limits=self.limits,
            epochs=self.epochs,
            seed=self.seed,
            settings=EvalSettings(),
            isolated=command_line is None or command_line.sandbox != "local",
        )
