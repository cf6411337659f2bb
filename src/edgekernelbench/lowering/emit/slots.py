"""Memory shared by buffers that are never alive together: a linear scan over the function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Loop, Node, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.order import body_order
from edgekernelbench.lowering.emit.tree import Tree


@dataclass(frozen=True, slots=True)
class Demand:
    """A buffer that may share its memory: its size in elements, and where it lives."""

    name: str
    dtype: DType
    elements: int
    owner: Var | None


@dataclass(slots=True)
class _Slot:
    number: int
    dtype: DType
    owner: Var | None
    busy_until: int
    capacity: int


@dataclass(slots=True)
class Timeline:
    """When each stage runs: units are numbered in the order of emission, loops span theirs."""

    at: dict[str, int] = field(default_factory=dict)
    spans: dict[Var, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, nodes: tuple[Node, ...], tree: Tree) -> Timeline:
        line = cls()
        line._number(nodes, tree, 0)
        return line

    def _number(self, nodes: tuple[Node, ...], tree: Tree, clock: int) -> int:
        for node in body_order(nodes, tree):
            if isinstance(node, Loop):
                first = clock
                clock = self._number(node.body, tree, clock)
                self.spans[node.var] = (first, max(first, clock - 1))
            else:
                for name in tree.members(node.name):
                    self.at[name] = clock
                clock += 1
        return clock

    def life(self, tree: Tree, name: str) -> tuple[int, int]:
        """First and last unit in which a kept stage's buffer holds something."""
        graph = tree.graph
        users = [name, *graph.readers(name)]
        first = min(self.at[user] for user in users)
        last = max(self.at[user] for user in users)
        for loop in {loop for user in users for loop in graph.places[user].loops}:
            inside = [loop in graph.places[user].loops for user in users]
            carried = loop.var in graph.stage(name).lhs
            if carried or not all(inside):
                first, last = (
                    min(first, self.spans[loop.var][0]),
                    max(last, self.spans[loop.var][1]),
                )
        return first, last


def share(demands: Mapping[str, Demand], lives: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """Slot numbers of the buffers, for those that share one."""
    slots: list[_Slot] = []
    chosen: dict[str, int] = {}
    for name in sorted(demands, key=lambda n: (lives[n][0], n)):
        demand, (first, last) = demands[name], lives[name]
        free = [
            s
            for s in slots
            if s.busy_until < first and (s.dtype, s.owner) == (demand.dtype, demand.owner)
        ]
        fitting = [s for s in free if s.capacity >= demand.elements]
        if fitting:
            slot = min(fitting, key=lambda s: s.capacity)
        elif free:
            slot = max(free, key=lambda s: s.capacity)
        else:
            slot = _Slot(len(slots), demand.dtype, demand.owner, last, demand.elements)
            slots.append(slot)
        slot.busy_until, slot.capacity = last, max(slot.capacity, demand.elements)
        chosen[name] = slot.number
    counts = {number: list(chosen.values()).count(number) for number in set(chosen.values())}
    return {name: number for name, number in chosen.items() if counts[number] > 1}


def flat_index(index: tuple[core.Expr, ...], shape: tuple[int, ...]) -> core.Expr:
    """Row-major position of an element."""
    flat: core.Expr = core.Const(0, DType.S32)
    for expr, extent in zip(index, shape, strict=True):
        scaled = core.Binary("mul", flat, core.Const(extent, DType.S32), DType.S32)
        flat = core.Binary("add", scaled, expr, DType.S32)
    return flat
