"""The order in which the nodes of a body run."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Loop, Node
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.expr.rewrite import loads


class Circular(ValueError):
    """The placements leave no order in which the stages can run. ``stages``: those in the way."""

    def __init__(self, stages: tuple[str, ...]) -> None:
        super().__init__("circular placement")
        self.stages = stages


def body_order(nodes: tuple[Node, ...], tree: Tree) -> list[Node]:
    """Nodes of one body in an order that computes everything before its use.

    A placed stage runs with the stage it is placed in, a component of a reduction with the one
    that computes it. Ties follow the program.

    Raises:
        Circular: there is no such order.
    """
    units: list[tuple[Node, list[str]]] = []
    for node in nodes:
        if isinstance(node, Loop):
            units.append((node, [stage.name for _, stage in core.stages((node,))]))
        elif node.name not in tree.attach and node.name not in tree.together:
            units.append((node, tree.members(node.name)))
    owner = {name: k for k, (_, names) in enumerate(units) for name in names}
    waits = [_waits(names, k, owner, tree) for k, (_, names) in enumerate(units)]
    done: set[int] = set()
    out: list[Node] = []
    while len(done) < len(units):
        ready = next((k for k, w in enumerate(waits) if k not in done and w <= done), None)
        if ready is None:
            raise Circular(tuple(units[k][1][0] for k in range(len(units)) if k not in done))
        done.add(ready)
        out.append(units[ready][0])
    return out


def _waits(names: list[str], unit: int, owner: dict[str, int], tree: Tree) -> set[int]:
    """Units that must run before this one: they define what it reads, earlier in the text."""
    graph = tree.graph
    out: set[int] = set()
    for name in names:
        place = graph.places[name]
        for load in loads(place.stage.expr):
            source = load.tensor.name
            earlier = source in owner and graph.places[source].rank < place.rank
            if earlier and owner[source] != unit:
                out.add(owner[source])
    return out
