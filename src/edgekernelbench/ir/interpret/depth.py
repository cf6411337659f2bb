"""Recursion over expressions that nest deeper than Python's default limit allows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from edgekernelbench.ir import core

MAX_DEPTH = 5000


def depth_of(program: core.Program) -> int:
    """How deep the deepest expression of a program is nested."""
    return max((_depth(stage.expr) for _, stage in core.stages(program.body)), default=0)


@contextmanager
def room_for(program: core.Program) -> Iterator[None]:
    """Lets Python functions recurse over the program's expressions, up to `MAX_DEPTH`."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 2000 + 8 * min(depth_of(program), MAX_DEPTH)))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _depth(expr: core.Expr) -> int:
    deepest = 0
    stack = [(expr, 1)]
    while stack:
        top, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in core.children(top))
    return deepest
