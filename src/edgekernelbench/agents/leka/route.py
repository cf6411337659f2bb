"""Which layer holds the time now: rules, each with its reason, in the order in which they count.

To add one, write a function with `@rule` that looks at an `Observation` and returns a `Route` or
None; docs/leka.md shows it step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgekernelbench.agents.leka.layers import LAYERS, Layer
from edgekernelbench.agents.leka.observe import Observation

PATIENCE = 2
"""Rounds of proposals without a gain after which a layer is dry."""


@dataclass(frozen=True, slots=True)
class Route:
    """The layer to be revised and why, in a sentence. ``rule``: the name of the rule."""

    layer: Layer
    reason: str
    rule: str = ""


Rule = Callable[[Observation], Route | None]
RULES: list[tuple[str, Rule]] = []
"""All rules by name; the first that speaks of a layer that is not dry decides."""


def rule(function: Rule) -> Rule:
    """Adds a rule behind those before it."""
    RULES.append((function.__name__, function))
    return function


def route(
    seen: Observation, patience: int = PATIENCE, rules: Sequence[tuple[str, Rule]] | None = None
) -> Route | None:
    """The layer to revise next; None when every layer is dry."""
    for name, speaks in RULES if rules is None else rules:
        found = speaks(seen)
        if found is not None and seen.tried.get(found.layer, 0) < patience:
            return Route(found.layer, found.reason, name)
    open_: list[Layer] = [one for one in _ORDER if seen.tried.get(one, 0) < patience]
    if not open_:
        return None
    layer: Layer = min(open_, key=lambda one: seen.tried.get(one, 0))
    return Route(layer, f"no rule points elsewhere; {layer} was tried least", "least_tried")


_ORDER: tuple[Layer, ...] = ("schedule", "memory", "compute")
assert set(_ORDER) == set(LAYERS)


@rule
def not_correct(seen: Observation) -> Route | None:
    """Nothing else matters before the results are right."""
    if seen.correct:
        return None
    return Route("compute", "there is no correct kernel yet")


@rule
def nests_of_a_short_call(seen: Observation) -> Route | None:
    """A call that does little else than be called: only fewer nests can make it shorter."""
    if not seen.correct or not seen.overhead:
        return None
    # A stage that is used where it is computed need not be stored; bytes stored between stages
    # are the sign that stages stand in nests of their own. Stages alone do not say it.
    if len(seen.stages) < 3 or seen.explanation.workspace_bytes == 0:
        return None
    return Route(
        "schedule",
        f"most of the time is that of the call itself, and {len(seen.stages)} stages store "
        f"{seen.explanation.workspace_bytes} bytes between them: fuse them into fewer nests",
    )


@rule
def surplus_operations(seen: Observation) -> Route | None:
    """More operations than the task has: recomputation, or a poor algorithm."""
    if seen.surplus is None or seen.surplus < 1.5 or seen.bound == "memory":
        return None
    return Route("compute", f"it does {seen.surplus:.1f} times the task's operations")


@rule
def serial_time(seen: Observation) -> Route | None:
    """Cores that wait, unless the call is too short to share."""
    if seen.serial is None or seen.serial < 0.5 or seen.us is None or seen.us < 20:
        return None
    return Route("schedule", f"{seen.serial:.0%} of the time is outside of parallel loops")


@rule
def scalar_time(seen: Observation) -> Route | None:
    """Lanes that are empty."""
    if seen.scalar is None or seen.scalar < 0.4:
        return None
    return Route("schedule", f"{seen.scalar:.0%} of the time is outside of vector loops")


@rule
def lanes_apart(seen: Observation) -> Route | None:
    """Vector loops over elements that do not lie together: a layout brings them together."""
    if seen.apart is None or seen.apart < 0.3:
        return None
    return Route("memory", f"{seen.apart:.0%} of the time gathers lanes that lie apart in memory")


@rule
def repeated_traffic(seen: Observation) -> Route | None:
    """Bytes that come from memory again and again: tiles that fit a cache."""
    if seen.traffic < 2 or seen.bound != "memory":
        return None
    return Route("schedule", f"{seen.traffic:.1f} times its bytes come from memory")


@rule
def near_the_roof(seen: Observation) -> Route | None:
    """What is left is another way to compute it."""
    if seen.us is None or seen.least_us is None or seen.us > 1.3 * seen.least_us:
        return None
    return Route("compute", "within 1.3 of the roofline: only another algorithm is faster")
