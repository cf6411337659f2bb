"""Order in time when two loops run by diagonals: is every element that is read still finished.

A pair of ``seq`` loops whose iterations (u, v), counted from 0 in the direction of each loop, run
in the order of ``factor * u + v`` finishes all smaller diagonals first, and nothing of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import Facts, Prover, program_ranges
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.verify.order import Writer, common_loops, writers
from edgekernelbench.ir.verify.reads import Site
from edgekernelbench.ir.verify.walk import Walk


@dataclass(frozen=True, slots=True)
class Pair:
    """Two ``seq`` loops, ``inner`` alone in the body of ``outer``, by their indices."""

    outer: core.Var
    inner: core.Var


@dataclass(frozen=True, slots=True)
class Crossing:
    """A read inside of a pair whose element is computed in another of its iterations.

    Attributes:
        facts: what holds where it is read.
        loops: the pair.
        then: the iteration that is read, (outer, inner).
    """

    reader: core.Stage
    load: core.Load
    facts: Facts
    loops: tuple[core.Loop, core.Loop]
    then: tuple[core.Expr, core.Expr]

    @property
    def now(self) -> tuple[core.Expr, core.Expr]:
        return core.VarRef(self.loops[0].var), core.VarRef(self.loops[1].var)


class DiagonalProofs:
    """Proofs about the reads between iterations of one pair of loops."""

    def __init__(self, program: core.Program, pair: Pair) -> None:
        self._prover = Prover(program_ranges(program))
        self.crossings = tuple(_crossings(program, pair, self._prover))

    def late(self, factor: int) -> list[Crossing]:
        """Reads of elements that are not provably on a smaller diagonal."""
        return [c for c in self.crossings if not self._is_earlier(c, factor)]

    def outside(self) -> list[Crossing]:
        """Reads of elements that are not provably up and left, whatever the tile of either."""
        return [c for c in self.crossings if not self._is_up_left(c)]

    def _is_earlier(self, crossing: Crossing, factor: int) -> bool:
        if self._same(crossing, 0) or self._same(crossing, 1):
            return True  # then the order is that of the other loop alone, as it was
        then, now = (_diagonal(point, crossing.loops, factor) for point in _points(crossing))
        return self._prover.not_above(then, now, 1, crossing.facts)

    def _same(self, crossing: Crossing, which: int) -> bool:
        a, b = crossing.then[which], crossing.now[which]
        return self._not_above(a, b, crossing.facts) and self._not_above(b, a, crossing.facts)

    def _is_up_left(self, crossing: Crossing) -> bool:
        pairs = zip(crossing.loops, crossing.then, crossing.now, strict=True)
        return all(
            self._not_above(_count(then, loop), _count(now, loop), crossing.facts)
            for loop, then, now in pairs
        )

    def _not_above(self, a: core.Expr, b: core.Expr, facts: Facts) -> bool:
        return self._prover.not_above(a, b, 0, facts)


def _points(crossing: Crossing) -> tuple[tuple[core.Expr, core.Expr], ...]:
    return crossing.then, crossing.now


def _count(index: core.Expr, loop: core.Loop) -> core.Expr:
    """How many iterations of a loop come before the one with this index, up to a constant."""
    if not loop.reverse:
        return index
    return core.Binary("sub", core.Const(loop.hi, index.dtype), index, index.dtype)


def _diagonal(
    point: tuple[core.Expr, core.Expr], loops: tuple[core.Loop, core.Loop], factor: int
) -> core.Expr:
    u, v = (_count(index, loop) for index, loop in zip(point, loops, strict=True))
    scaled = core.Binary("mul", u, core.Const(factor, u.dtype), u.dtype)
    if v.dtype is not u.dtype:
        scaled, v = core.Cast(scaled, DType.S64), core.Cast(v, DType.S64)
    return core.Binary("add", scaled, v, v.dtype)


def _crossings(program: core.Program, pair: Pair, prover: Prover) -> Iterator[Crossing]:
    found = writers(program)
    by_name = {writer.stage.tensor.name: writer for writer in found}
    for reader in found:
        if pair.inner in (loop.var for loop in reader.loops):
            reads = _Reads(prover, by_name, pair)
            Walk(prover, reads, None, reader).run()
            yield from reads.found


class _Reads:
    """Collects what a walk over a stage's expression meets."""

    def __init__(self, prover: Prover, by_name: dict[str, Writer], pair: Pair) -> None:
        self.found: list[Crossing] = []
        self._prover = prover
        self._writers = by_name
        self._pair = pair

    def load(self, load: core.Load, reader: Writer, site: Site) -> None:
        writer = self._writers.get(load.tensor.name)
        if writer is None or load.tensor.kind not in ("stage", "output"):
            return
        around = writer.loops[: common_loops(writer, reader)]
        at = next((k for k, loop in enumerate(around) if loop.var == self._pair.inner), None)
        transient = len(writer.loops) - writer.kept
        # One that keeps the inner loop only is read in the same iteration of the outer one.
        if at is None or transient > at - 1:
            return
        facts: Facts | None = site.facts
        for loop in around[transient : at - 1]:
            facts = self._same_iteration(load, writer, loop, facts)
            if facts is None:
                return
        loops = (around[at - 1], around[at])
        then = tuple(load.indices[writer.dimension(loop)] for loop in loops)
        self.found.append(Crossing(reader.stage, load, facts, loops, (then[0], then[1])))

    def divisor(self, expr: core.Binary, site: Site) -> None:
        """Divisions do not depend on the order."""

    def _same_iteration(
        self, load: core.Load, writer: Writer, loop: core.Loop, facts: Facts
    ) -> Facts | None:
        """The facts and that a loop further outside is in the iteration that is read; None if that
        one is earlier in any case."""
        index, now = load.indices[writer.dimension(loop)], core.VarRef(loop.var)
        early, late = (now, index) if loop.reverse else (index, now)
        if loop.kind == "seq" and self._prover.not_above(early, late, 1, facts):
            return None
        facts = self._prover.assume_at_least(facts, index, now)
        return self._prover.assume_at_least(facts, now, index)
