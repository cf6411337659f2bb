"""Damaged kernels: whatever the tree says, elaboration and verification answer with values.

Examples are damaged at random places of their trees. None may raise, none may yield neither a
program nor an error, and what is still accepted must run safely.
"""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.elaborate import elaborate
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.verify import verify
from tests.ir.checked_run import Machine
from tests.ir.test_verify import random_inputs
from tests.ir.well_formed import check

EXAMPLES = Path(__file__).parents[1] / "data" / "examples"
NAMES = ("i", "j", "k", "n", "t", "c", "x", "y", "h", "N", "L", "M", "idx", "inf", "relu")
NUMBERS = (0, 1, 2, 3, 7, 100, 1 << 40, 0.5, 1e30)


def expressions(node: Any) -> list[Any]:
    """All expressions below a node, the node included."""
    out = []
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, surface.Expr):
            out.append(top)
        if isinstance(top, tuple):
            stack += top
        elif is_dataclass(top) and not isinstance(top, Span):
            stack += [getattr(top, f.name) for f in fields(top)]
    return out


class Damage:
    """Rebuilds a tree with some expressions exchanged."""

    def __init__(self, draw: random.Random, pool: list[Any], rate: float) -> None:
        self.draw, self.pool, self.rate = draw, pool, rate

    def tree(self, node: Any) -> Any:
        if isinstance(node, tuple):
            return tuple(self.tree(item) for item in node)
        if isinstance(node, Span) or not is_dataclass(node):
            return node
        if isinstance(node, surface.Expr) and self.draw.random() < self.rate:
            return self.other(node)
        changed = {f.name: self.tree(getattr(node, f.name)) for f in fields(node)}
        return replace(node, **changed)  # type: ignore[type-var]

    def other(self, node: Any) -> Any:
        match self.draw.randint(0, 6):
            case 0 | 1:
                return replace(self.draw.choice(self.pool), span=node.span)
            case 2:
                return surface.Name(self.draw.choice(NAMES), node.span)
            case 3:
                return surface.Num(self.draw.choice(NUMBERS), node.span)
            case 4:
                op = self.draw.choice(("+", "-", "*", "//", "%", "/", "<<", "&", "and", "**"))
                return surface.Binary(op, node, self.draw.choice(self.pool), node.span)
            case 5:
                return surface.Call(
                    self.draw.choice(("pad", "edge", "min", "abs", "dim", "f")), (node,)
                )
        return surface.Index(self.draw.choice(NAMES), (node,), node.span)


def damaged(kernel: surface.Kernel, seed: int) -> surface.Kernel:
    draw = random.Random(seed)
    pool = [e for e in expressions(kernel.compute) if not isinstance(e, surface.ListExpr)]
    rate = draw.choice((1, 2, 4)) / max(len(pool), 1)
    maker = Damage(draw, pool, rate)
    return replace(kernel, compute=maker.tree(kernel.compute), prelude=maker.tree(kernel.prelude))


def cost(program: core.Program) -> int:
    """A rough count of what the checking machine would evaluate."""
    total = 0
    for loops, stage in core.stages(program.body):
        size = stage.tensor.size
        for loop in loops:
            size *= 1 if loop.var in stage.lhs else loop.hi
        for node in core.walk(stage.expr):
            if isinstance(node, core.Reduce):
                for axis in node.axes:
                    size *= max(axis.extent, 1)
        total += size
    return total


PATHS = sorted(p for p in EXAMPLES.glob("*.ekir") if p.stat().st_size < 3000)
ROUNDS = 12


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_damaged_examples(path: Path) -> None:
    kernel = parse(path.read_text()).kernel
    assert kernel is not None
    for seed in range(ROUNDS):
        try_one(damaged(kernel, seed))


def try_one(kernel: surface.Kernel, limit: int = 1500) -> bool:
    """True when the kernel is accepted; then it has run."""
    result = elaborate(kernel)
    if result.program is None:
        assert any(d.severity == "error" for d in result.diagnostics)
        return False
    check(result.program)
    if any(d.severity == "error" for d in verify(result.program)):
        return False
    if cost(result.program) < limit:
        Machine().run(result.program, random_inputs(result.program, 0))
    return True
