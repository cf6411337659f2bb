"""Cuts a model into groups of nodes that one task each computes.

A group begins with a node and grows along its one result: as long as everything that reads the
result up to the point where all paths meet again (its post-dominator) may join, it joins. So a
convolution takes its batch norm, activation and residual addition along; a layer norm or a softmax
that an exporter took apart, with values read twice on the way, comes together again. What only
moves elements joins the group before it, else the one behind it. Nothing that a group reads can
depend on its result, so the groups have an order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from edgekernelbench.optimize.kinds import Kind, kind_of, leads
from edgekernelbench.optimize.view import View

MAX_NODES = 48
"""Of a group; the chain of a decomposed GELU behind a layer norm has some thirty."""


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes by number, in order; those that compute on weights alone are not among them.

    Attributes:
        inputs: tensors from other groups or from outside, in the order in which they are read.
        outputs: tensors that other groups or the caller want.
        anchor: the node that the group is called after.
    """

    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    anchor: int


def cut(view: View) -> tuple[Group, ...]:
    """The groups in an order in which they can run; every node that an input reaches is in one."""
    owner = _Growth(view).run()
    _lead(view, owner)
    members: dict[int, list[int]] = {}
    for node, group in sorted(owner.items()):
        members.setdefault(group, []).append(node)
    groups = [_group(view, nodes) for nodes in members.values()]
    return _ordered(view, groups)


# ---------------------------------------------------------------- growth
class _Growth:
    """Gives every node a group, in order; ``owner`` is the number of the group's first node."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._meets = _post_dominators(view)
        self._owner: dict[int, int] = {}

    def run(self) -> dict[int, int]:
        for number in range(len(self._view.nodes)):
            if number not in self._owner and self._view.given(number):
                self._grow(number)
        return self._owner

    def _grow(self, first: int) -> None:
        view = self._view
        kind = kind_of(view.nodes[first])
        inside = {first}
        last = first
        while (result := self._open_result(last)) is not None:
            meeting = self._meets[last]
            if meeting is None:
                break
            joining = self._between(result, meeting)
            kinds = {kind_of(view.nodes[node]) for node in joining}
            grown = self._kind(kind, kinds)
            if grown is None or not self._fits(inside, joining, result, grown):
                break
            kind, last = grown, meeting
            inside |= joining
        self._owner |= dict.fromkeys(inside, first)

    def _open_result(self, node: int) -> str | None:
        """The one tensor that a node makes, unless the caller wants it."""
        made = self._view.made(node)
        return made[0] if len(made) == 1 and made[0] not in self._view.outputs else None

    def _between(self, tensor: str, meeting: int) -> set[int]:
        """The nodes on all paths from a tensor to where they meet, that one included."""
        pending, found = list(self._view.readers[tensor]), set[int]()
        while pending:
            node = pending.pop()
            if node in found:
                continue
            found.add(node)
            if node != meeting:
                pending += (r for t in self._view.made(node) for r in self._view.readers[t])
        return found

    @staticmethod
    def _kind(kind: Kind, joining: set[Kind]) -> Kind | None:
        """What the group is once these have joined; None if they may not."""
        if Kind.ANCHOR in joining:
            return None
        if Kind.ROW in joining:
            return None if kind is Kind.ANCHOR else Kind.ROW
        if kind is Kind.MOVE and joining != {Kind.MOVE}:
            return None  # what only moves elements goes to the group behind it, see `_lead`
        return kind

    def _fits(self, inside: set[int], joining: set[int], result: str, kind: Kind) -> bool:
        """Whether values stay as many as they are: of the result, or in a group of rows of what
        it reads."""
        view = self._view
        if len(inside) + len(joining) > MAX_NODES or joining & self._owner.keys():
            return False
        most = view.size(result)
        if kind is Kind.ROW:
            everything = (t for n in inside | joining for t in view.given(n))
            outer = [t for t in everything if view.maker.get(t) not in joining]
            most = max(view.size(t) for t in outer)
        made = [view.size(t) for node in joining for t in view.made(node)]
        if kind is not Kind.ROW and min(made) < most:
            return False
        return max(made) <= most


def _post_dominators(view: View) -> list[int | None]:
    """For each node the first one that all paths from it to the outputs go through; None if they
    meet only outside of the model."""
    depth = [0] * len(view.nodes)
    meets: list[int | None] = [None] * len(view.nodes)

    def common(a: int | None, b: int | None) -> int | None:
        while a is not None and b is not None and a != b:
            if depth[a] >= depth[b]:
                a = meets[a]
            else:
                b = meets[b]
        return a if a == b else None

    for node in reversed(range(len(view.nodes))):
        made = view.made(node)
        readers = sorted({r for t in made for r in view.readers.get(t, ())})
        if not readers or any(t in view.outputs for t in made):
            continue
        found: int | None = readers[0]
        for reader in readers[1:]:
            found = common(found, reader)
        meets[node] = found
        depth[node] = 0 if found is None else depth[found] + 1
    return meets


# ---------------------------------------------------------------- what stands in front
def _lead(view: View, owner: dict[int, int]) -> None:
    """Groups that only move or convert elements join the one group that reads them."""
    for number in reversed(range(len(view.nodes))):
        group = owner.get(number)
        if group != number:
            continue
        members = [node for node, g in owner.items() if g == group]
        if not all(leads(view.nodes[node]) for node in members):
            continue
        made = {t for node in members for t in view.made(node)}
        behind = {owner[r] for t in made for r in view.readers.get(t, ())} - {group}
        if len(behind) == 1 and not made & set(view.outputs):
            owner |= dict.fromkeys(members, behind.pop())


# ---------------------------------------------------------------- groups
def _group(view: View, nodes: list[int]) -> Group:
    made = {t for node in nodes for t in view.made(node)}
    inputs = dict.fromkeys(t for node in nodes for t in view.given(node) if t not in made)
    inside = set(nodes)
    outputs = [
        t
        for node in nodes
        for t in view.made(node)
        if t in view.outputs or not inside.issuperset(view.readers[t])
    ]
    return Group(tuple(nodes), tuple(inputs), tuple(outputs), _anchor(view, nodes))


def _anchor(view: View, nodes: Iterable[int]) -> int:
    order = (Kind.ANCHOR, Kind.ROW, Kind.POINT, Kind.MOVE)
    return min(nodes, key=lambda node: order.index(kind_of(view.nodes[node])))


def _ordered(view: View, groups: list[Group]) -> tuple[Group, ...]:
    """So that everything is made before it is read; else as the model has them."""
    maker = {t: number for number, group in enumerate(groups) for t in group.outputs}
    waiting = {
        number: {maker[t] for t in group.inputs if t in maker}
        for number, group in enumerate(groups)
    }
    order: list[Group] = []
    while waiting:
        ready = [number for number, needs in waiting.items() if not needs]
        assert ready, "no group depends on its own result"
        chosen = min(ready, key=lambda number: groups[number].nodes[-1])
        del waiting[chosen]
        for needs in waiting.values():
            needs.discard(chosen)
        order.append(groups[chosen])
    return tuple(order)
