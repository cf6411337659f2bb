"""Whether placed stages run in an order in which everything is computed before it is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from edgekernelbench.ir.core import Expr
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.expr.rewrite import loads
from edgekernelbench.lowering.plan import Plan, StagePlan

Moment = tuple[tuple[int, int], ...]
"""When a stage runs in an iteration of its outermost nest: earlier moments compare as smaller."""

_OWN = (0, 0)
"""A stage's own statement: what is placed in its loops runs before it or after it."""

_LOOPS = 1 << 10


_HEAD = -1
"""Before all that is placed in a loop: when its range is read."""


@dataclass(frozen=True, slots=True)
class Late:
    """A stage that runs before one that it reads.

    ``loop``: it is in front of this loop that the stage reads the other one, for the range of the
    loop or for what its sum starts from; None where its own statement does.
    """

    reader: str
    source: str
    loop: str | None = None


def late_reads(plan: Plan, tree: Tree) -> Iterator[Late]:
    """Pairs of stages of one nest of which the first reads the second before it is complete."""
    for reader in tree.homes:
        moments = _moments(tree, reader)
        nest = plan.stages[reader]
        done: set[str] = set()
        for source in tree.graph.producers(reader):
            if _is_late(tree, source, reader, min(moments)):
                done.add(source)
                yield Late(reader, source)
        for depth, expr in _heads(nest):
            first = min((*moment[:-1], (depth - _LOOPS, _HEAD)) for moment in moments)
            read = {load.tensor.name for load in loads(expr)} - done
            for source in tree.graph.producers(reader):
                if source in read and _is_late(tree, source, reader, first):
                    done.add(source)
                    yield Late(reader, source, nest.pieces[depth].name)


def _is_late(tree: Tree, source: str, reader: str, first: Moment) -> bool:
    if tree.root(_leader(tree, source)) != tree.root(_leader(tree, reader)):
        return False
    return source != reader and max(_moments(tree, source)) > first


def _heads(plan: StagePlan) -> Iterator[tuple[int, Expr]]:
    """What a reduction reads in front of its loops: (number of the loop, expression)."""
    if plan.reduce is None:
        return
    if plan.reduce.start is not None:
        yield plan.first_reduction, plan.reduce.start
    for axis in plan.reduce.axes:
        depth = next((k for k, piece in enumerate(plan.pieces) if piece.axis == axis.var), None)
        if depth is not None:
            yield from ((depth, axis.lo), (depth, axis.hi))


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
