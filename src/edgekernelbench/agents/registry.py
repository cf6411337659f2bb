"""Agents by name. A new one is one file plus one line here; it is imported on use."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from edgekernelbench.agents.base import Agent
from edgekernelbench.errors import UsageError


def _tuner() -> Agent:
    from edgekernelbench.agents.tuner import Tuner

    return Tuner()


def _canonical() -> Agent:
    from edgekernelbench.agents.canonical import CanonicalAgent

    return CanonicalAgent()


AGENTS: dict[str, Callable[[], Agent]] = {"tuner": _tuner, "canonical": _canonical}


def make_agent(name: str) -> Agent:
    """A fresh agent with its default options.

    Raises:
        UsageError: for an unknown name.
    """
    if name in AGENTS:
        return AGENTS[name]()
    near = difflib.get_close_matches(name, AGENTS, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UsageError(f"unknown agent {name!r}", f"{hint}agents: {', '.join(sorted(AGENTS))}")
