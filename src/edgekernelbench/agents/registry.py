"""Agents by name. A new one is one file plus one line here; it is imported on use."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from edgekernelbench.agents.base import Agent
from edgekernelbench.agents.model import Model
from edgekernelbench.errors import UsageError

if TYPE_CHECKING:
    from edgekernelbench.agents.coding import CommandLine


def _tuner() -> Agent:
    from edgekernelbench.agents.tuner import Tuner

    return Tuner()


def _canonical() -> Agent:
    from edgekernelbench.agents.canonical import CanonicalAgent

    return CanonicalAgent()


def _direct(model: Model) -> Agent:
    from edgekernelbench.agents.direct import DirectAgent

    return DirectAgent(model)


def _repair(model: Model) -> Agent:
    from edgekernelbench.agents.repair import RepairAgent

    return RepairAgent(model)


def _leka(model: Model, options: Mapping[str, str] | None = None) -> Agent:
    from edgekernelbench.agents.leka import Leka
    from edgekernelbench.agents.leka.course import Options

    return Leka(model, Options.of(options or {}))


def _leka_moves() -> Agent:
    from edgekernelbench.agents.leka import LekaMoves

    return LekaMoves()


AGENTS: dict[str, Callable[[], Agent]] = {
    "tuner": _tuner,
    "canonical": _canonical,
    "leka-moves": _leka_moves,
}
MODEL_AGENTS: dict[str, Callable[[Model], Agent]] = {
    "direct": _direct,
    "repair": _repair,
    "leka": _leka,
}


CODING_AGENTS = {"claude-code": "claude_code", "codex": "codex_cli"}
"""Agents whose command line another project makes, and what inspect-swe calls it."""


def make_agent(
    name: str,
    model: Model | None = None,
    command_line: CommandLine | None = None,
    options: Mapping[str, str] | None = None,
) -> Agent:
    """A fresh agent.

    Args:
        model: whom it asks; agents that ask nobody take none.
        command_line: who runs the command line of a coding agent.
        options: of the agent, as words, in place of its usual ones.

    Raises:
        UsageError: for an unknown name or option, a missing model, or one that is of no use.
    """
    require_options(name, options or {})
    if name in CODING_AGENTS:
        return _coding(name, model, command_line)
    if name in MODEL_AGENTS:
        if model is None:
            raise _without_model(name)
        return _leka(model, options) if options else MODEL_AGENTS[name](model)
    if name in AGENTS:
        if model is not None:
            raise UsageError(f"the agent {name!r} asks no model", "leave --model out")
        return AGENTS[name]()
    known = sorted({*AGENTS, *MODEL_AGENTS, *CODING_AGENTS})
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UsageError(f"unknown agent {name!r}", f"{hint}agents: {', '.join(known)}")


def require_options(name: str, options: Mapping[str, str]) -> None:
    """What can be known of options before there is an agent, or a model.

    Raises:
        UsageError: the agent takes none, or one is unknown or its value none.
    """
    if not options:
        return
    if name != "leka":
        raise UsageError(f"the agent {name!r} takes no options", "leave its options out")
    from edgekernelbench.agents.leka.course import Options

    Options.of(options)


def _coding(name: str, model: Model | None, command_line: CommandLine | None) -> Agent:
    from edgekernelbench.agents.coding import CodingAgent

    if model is None:
        raise _without_model(name)
    if command_line is None:
        raise UsageError(
            f"the agent {name!r} needs a model that answers now; {model.name} has stored answers",
            "name a provider's model, PROVIDER/MODEL",
        )
    return CodingAgent(name, command_line)


def _without_model(name: str) -> UsageError:
    return UsageError(f"the agent {name!r} asks a model", "name one with --model")
