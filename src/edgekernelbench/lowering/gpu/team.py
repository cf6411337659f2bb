"""The threads of a block that share the loops of a stage, as its nest states them.

Each ``thread`` loop of the nest is one digit of the thread's number, the last one the fastest. The
digits are those of the nest's full tile wherever the stage runs, in remainders too: what a thread
computes in one loop it finds in its own registers in the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.linear import int_const
from edgekernelbench.lowering.gpu.device import device_of, strided
from edgekernelbench.lowering.nest import If, Seq, Stmt
from edgekernelbench.lowering.plan import Piece, StagePlan

if TYPE_CHECKING:
    from edgekernelbench.lowering.emit.context import Context


def iterations(pieces: tuple[Piece, ...], extents: Mapping[Var, int]) -> list[int]:
    """How often each loop of a nest runs, over a box of ``extents``."""
    left = dict(extents)
    out: list[int] = []
    for piece in pieces:
        step = max(1, min(piece.step, left[piece.axis]))
        out.append(-(-left[piece.axis] // step))
        left[piece.axis] = step
    return out


@dataclass(frozen=True, slots=True)
class Team:
    """The ``thread`` loops of a nest, and how many threads each takes."""

    pieces: tuple[Piece, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, plan: StagePlan, extents: Mapping[Var, int]) -> Team | None:
        """The team of a stage over a box, None where its nest has no ``thread`` loops."""
        if plan.cooperative:
            return None
        loops = zip(plan.pieces, iterations(plan.pieces, extents), strict=True)
        found = [(piece, count) for piece, count in loops if piece.kind == "thread"]
        return cls(tuple(p for p, _ in found), tuple(n for _, n in found)) if found else None

    @property
    def total(self) -> int:
        return prod(self.counts)

    @property
    def sharing(self) -> int:
        """How many threads add up the terms of one result."""
        pairs = zip(self.pieces, self.counts, strict=True)
        return prod(count for piece, count in pairs if piece.reduction)

    def region(self, ctx: Context, make: Callable[[], list[Stmt]]) -> list[Stmt]:
        """What the threads of the team do side by side; they stand at the head of a block."""

        def one(number: Expr) -> list[Stmt]:
            names = [piece.name for piece in self.pieces]
            lets, indices = ctx.unfused(number, names, self.counts)
            with self._bound(ctx, indices):
                return [*lets, *made] if (made := make()) else []

        return strided(ctx, self.total, one)

    @contextmanager
    def _bound(self, ctx: Context, indices: list[Expr]) -> Iterator[None]:
        device = device_of(ctx)
        before = device.digits
        pairs = zip(indices, self.counts, strict=True)
        device.digits = {**before, **dict(zip(self.pieces, pairs, strict=True))}
        try:
            yield
        finally:
            device.digits = before

    def rank(self, ctx: Context, reduction: bool) -> Expr:
        """The thread's number among those that share terms (``reduction``), or among the groups of
        such threads. In a region only."""
        number: Expr = int_const(0)
        for piece, count in zip(self.pieces, self.counts, strict=True):
            if piece.reduction == reduction:
                digit, _ = device_of(ctx).digits[piece]
                scaled = core.Binary("mul", number, int_const(count), DType.S32)
                number = core.Binary("add", scaled, digit, DType.S32)
        return ctx.simple(number)


def below(rank: Expr, bound: Expr, body: list[Stmt]) -> list[Stmt]:
    """The statements where ``rank < bound``."""
    test = core.Binary("lt", rank, bound, DType.BOOL)
    return [If(test, Seq(tuple(body)))] if body else []
