"""Which loops LLVM vectorises although nobody asked: innermost ones whose iterations do not depend
on each other and store side by side.

Where each iteration adds to a float of its own nobody can tell from the nest: measured, such loops
were as fast as vectors or twenty times slower, depending on what was unrolled before. A sum of
floats into one place keeps its order and is never vectorised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum

from edgekernelbench.ir import core
from edgekernelbench.lowering import nest

LEAST = 4
"""Iterations below which a loop is unrolled and not vectorised."""

Step = Callable[[core.Expr], int | None]
"""By how much an index grows from one iteration to the next; None where by no fixed step."""


class Chance(IntEnum):
    """That a loop becomes one over vectors."""

    NONE = 0
    SOME = 1
    SURE = 2


def unasked(body: nest.Stmt, step: Step) -> Chance:
    """The chance of a loop around ``body``."""
    simple = _simple(body)
    if simple is None or not simple[0]:
        return Chance.NONE
    stores, values = simple
    return min(_chance(store, values, step) for store in stores)


def lets_in(body: nest.Stmt) -> Iterable[nest.LetValue]:
    """In their order, as far as they lie in no inner loop or branch."""
    match body:
        case nest.Seq():
            for inner in body.body:
                yield from lets_in(inner)
        case nest.LetValue():
            yield body
        case _:
            pass


def _simple(body: nest.Stmt) -> tuple[list[nest.Store], list[core.Expr]] | None:
    """Stores and all values of a body without loops, branches and the like."""
    stores: list[nest.Store] = []
    values: list[core.Expr] = []
    stack = [body]
    while stack:
        match stack.pop():
            case nest.Seq(body=parts):
                stack.extend(parts)
            case nest.LetValue(value=value):
                values.append(value)
            case nest.Store() as store:
                stores.append(store)
                values.append(store.value)
            case nest.Alloc():
                pass
            case _:
                return None
    return stores, values


def _chance(store: nest.Store, values: list[core.Expr], step: Step) -> Chance:
    steps = [step(index) for index in store.indices]
    onto_one = all(one == 0 for one in steps)
    side_by_side = not onto_one and steps[-1] == 1 and all(one == 0 for one in steps[:-1])
    floats = store.tensor.dtype.is_float
    if not side_by_side and (floats or not onto_one):
        return Chance.NONE
    own = [
        node.indices
        for value in values
        for node in core.unique_nodes(value)
        if isinstance(node, core.Load) and node.tensor.name == store.tensor.name
    ]
    if any(indices != store.indices for indices in own):
        return Chance.NONE
    if own and floats:
        return Chance.SOME
    return Chance.SURE
