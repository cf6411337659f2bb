"""Whether placed stages run in an order in which everything is computed before it is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from edgekernelbench.lowering.emit.tree import Tree

Moment = tuple[tuple[int, int], ...]
"""When a stage runs in an iteration of its outermost nest: earlier moments compare as smaller."""

_OWN = (0, 0)
"""A stage's own statement: what is placed in its loops runs before it or after it."""

_LOOPS = 1 << 10


@dataclass(frozen=True, slots=True)
class Late:
    """A stage that runs before one that it reads."""

    reader: str
    source: str


def late_reads(tree: Tree) -> Iterator[Late]:
    """Pairs of stages of one nest of which the first reads the second before it is complete."""
    for reader in tree.homes:
        first = min(_moments(tree, reader))
        for source in tree.graph.producers(reader):
            if tree.root(_leader(tree, source)) != tree.root(_leader(tree, reader)):
                continue
            if source != reader and max(_moments(tree, source)) > first:
                yield Late(reader, source)


def _leader(tree: Tree, name: str) -> str:
    return name if name in tree.attach else tree.together.get(name, name)


def _moments(tree: Tree, name: str) -> list[Moment]:
    """When a stage may run: a component of a reduction with the one that leads it, too."""
    places = {_leader(tree, name), tree.together.get(name, name)}
    return [_moment(tree, place) for place in places]


def _moment(tree: Tree, name: str) -> Moment:
    """Producers run from the outer loops inwards, consumers from the inner loops outwards."""
    out: list[tuple[int, int]] = [_OWN]
    while name in tree.attach:
        place = tree.attach[name]
        after = tree.consumes(place.target, name)
        depth = _LOOPS - place.depth if after else place.depth - _LOOPS
        out.append((depth, tree.graph.places[name].rank))
        name = place.target
    return tuple(reversed(out))
