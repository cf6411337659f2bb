"""Compiled expressions, and closures made of several of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from edgekernelbench.ir.interpret.contract import Product
from edgekernelbench.ir.interpret.frame import Frame, Value
from edgekernelbench.ir.interpret.loads import Fn


@dataclass(frozen=True, slots=True)
class Node:
    """A compiled expression.

    Attributes:
        deps: uids of the grid variables it varies over.
        lets: uids of the lets it reads that are bound outside of it.
    """

    fn: Fn
    deps: frozenset[int] = frozenset()
    lets: frozenset[int] = frozenset()


def join(nodes: Iterable[Node]) -> Node:
    """A node with the dependences of all ``nodes``; its closure is none of theirs."""
    deps: frozenset[int] = frozenset()
    lets: frozenset[int] = frozenset()
    for node in nodes:
        deps |= node.deps
        lets |= node.lets
    return Node(_nothing, deps, lets)


def _nothing(frame: Frame) -> Value:
    raise AssertionError("a joined node is never run")


def with_fn(node: Node, fn: Fn) -> Node:
    return Node(fn, node.deps, node.lets)


def tuple_of(fns: list[Fn]) -> Fn:
    return lambda frame: tuple(fn(frame) for fn in fns)


def recombined(
    lets: list[tuple[int, Fn]],
    bound: frozenset[int],
    nodes: list[Node],
    terms: tuple[Product, ...],
    factors: list[list[Node]],
) -> Node:
    """The sum of products again as one closure."""
    pairs = [
        (term.sign, [node.fn for node in part]) for term, part in zip(terms, factors, strict=True)
    ]

    def run(frame: Frame) -> Value:
        for slot, value in lets:
            frame.vals[slot] = value(frame)
        total = None
        for sign, (first, *more) in pairs:
            product = first(frame)
            for fn in more:
                product = product * fn(frame)
            if total is None:
                total = product if sign > 0 else -product
            else:
                total = total + product if sign > 0 else total - product
        return total

    flat = list(itertools.chain(*factors))
    joined = join([*nodes, *flat])
    return Node(run, join(flat).deps, joined.lets - bound)
