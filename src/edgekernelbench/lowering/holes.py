"""Holes ``?{a, b}``: integers of the schedule and memory layers that a tuner may choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal

from edgekernelbench.ir import surface
from edgekernelbench.ir.surface import Expr, Hole, Kernel


@dataclass(frozen=True, slots=True)
class HoleSite:
    """One hole of a kernel.

    Attributes:
        number: its position among all holes, in the order of `find_holes`.
        layer: which kind of layer it stands in.
        target: the layer's target name.
        choices: what it may become; numbers where they are written as numbers.
    """

    number: int
    layer: Literal["schedule", "memory"]
    target: surface.TargetName
    hole: Hole

    @property
    def choices(self) -> tuple[Expr, ...]:
        return self.hole.choices


def find_holes(kernel: Kernel) -> tuple[HoleSite, ...]:
    """All holes: schedules in the order written, then memory layers, each in text order."""
    sites: list[HoleSite] = []
    for kind, layers in (("schedule", kernel.schedules), ("memory", kernel.memories)):
        for layer in layers:
            for hole in _holes(layer.lines):
                sites.append(HoleSite(len(sites), kind, layer.target, hole))  # type: ignore[arg-type]
    return tuple(sites)


def fill_holes(kernel: Kernel, values: Sequence[int | Expr]) -> Kernel:
    """The kernel with its holes replaced, in the order of `find_holes`.

    Raises:
        ValueError: not as many values as there are holes.
    """
    count = len(find_holes(kernel))
    if len(values) != count:
        raise ValueError(f"{len(values)} values for {count} holes")
    left = list(values)
    schedules = tuple(replace(s, lines=_filled(s.lines, left)) for s in kernel.schedules)
    memories = tuple(replace(m, lines=_filled(m.lines, left)) for m in kernel.memories)
    return replace(kernel, schedules=schedules, memories=memories)


def fill_first(kernel: Kernel) -> Kernel:
    """The kernel with every hole at its first choice."""
    return fill_holes(kernel, [site.choices[0] for site in find_holes(kernel)])


def _holes(node: Any) -> list[Hole]:
    if isinstance(node, Hole):
        return [node]
    if isinstance(node, tuple):
        return [hole for item in node for hole in _holes(item)]
    if is_dataclass(node):
        return [hole for f in fields(node) for hole in _holes(getattr(node, f.name))]
    return []


def _filled(node: Any, left: list[int | Expr]) -> Any:
    if isinstance(node, Hole):
        value = left.pop(0)
        return surface.Num(value, node.span) if isinstance(value, int) else value
    if isinstance(node, tuple):
        return tuple(_filled(item, left) for item in node)
    if is_dataclass(node) and not isinstance(node, type):
        changed = {f.name: _filled(getattr(node, f.name), left) for f in fields(node)}
        return replace(node, **changed)
    return node
