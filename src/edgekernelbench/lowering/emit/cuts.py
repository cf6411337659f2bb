"""Cutting loops at borders, so that most iterations need no border test.

``pad(x[i - 1], 0)`` over i in 0..N-1 is decided everywhere but at i = 0: cutting the loop there
leaves a branch-free, contiguous rest. The conditions that matter are comparisons, ``min`` and
``max`` that are affine in the axis.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Var
from edgekernelbench.lowering.emit.boxes import Box
from edgekernelbench.lowering.expr.linear import Linear, Ranges, const_value, is_index, linear
from edgekernelbench.lowering.expr.ranges import range_of_linear
from edgekernelbench.lowering.expr.rewrite import free_vars, size
from edgekernelbench.lowering.expr.simplify import decide, simplify

MAX_PARTS = 4
MAX_COPIED_NODES = 3000
INTERIOR_COPIES = 4


@dataclass(frozen=True, slots=True)
class Test:
    """``form op 0``, over axes and loop indices."""

    op: str
    form: Linear


def collect_tests(exprs: Iterable[Expr]) -> tuple[Test, ...]:
    """The conditions whose outcome a range of an axis may decide."""
    found: dict[Test, None] = {}
    for expr in exprs:
        for node in core.walk(expr):
            if not isinstance(node, core.Binary) or not is_index(node.left):
                continue
            if node.op in core.COMPARE_OPS or node.op in ("min", "max"):
                op = node.op if node.op in core.COMPARE_OPS else "lt"
                form = linear(node.left).minus(linear(node.right))
                if any(isinstance(atom, core.VarRef) for atom in form.terms):
                    found[Test(op, form)] = None
    return tuple(found)


@dataclass(slots=True)
class Cutter:
    """Finds the cuts of one stage.

    Attributes:
        budget: how often the body may be copied in all.
        path: axes cut so far on the way to this point of the nest, with their number of parts.
    """

    exprs: list[Expr]
    ranges: Ranges
    budget: int
    path: list[tuple[Var, int]] = field(default_factory=list)

    def __call__(self, axis: Var, box: Box) -> list[tuple[int, int]]:
        """(start, count) parts of the axis' span, relative to its base; one if cuts do not pay."""
        span = box[axis]
        whole = [(0, span.extent)]
        self._leave(axis)
        base = const_value(span.base)
        copies = prod(count for _, count in self.path)
        if base is None or span.extent < 2 or 2 * copies > self.budget:
            return whole
        local = self._local(box)
        # What other axes have decided already is of no interest.
        tests = collect_tests(simplify(expr, local) for expr in self.exprs)
        tests = tuple(test for test in tests if self._depends(test, axis))
        points = self._points(axis, tests, base, span.extent, local)
        parts = self._merge(axis, tests, points, base, local)
        if len(parts) == 1 or len(parts) > min(MAX_PARTS, self.budget // copies):
            return whole
        self.path.append((axis, len(parts)))
        return parts

    def interior(self, axis: Var, box: Box) -> tuple[int, int] | None:
        """First and last value of the widest part of an axis in which every test is decided, for
        a span that begins at no constant; None when no test is open, or none is ever decided."""
        span = box[axis]
        if const_value(span.base) is not None or self.budget < INTERIOR_COPIES:
            return None
        local = self._local(box)
        low, high = local[axis]
        found = collect_tests(simplify(expr, local) for expr in self.exprs)
        tests = tuple(test for test in found if self._depends(test, axis))
        points = self._points(axis, tests, low, high - low + 1, local)
        parts = self._merge(axis, tests, points, low, local)
        start, count = max(parts, key=lambda part: part[1])
        first, last = low + start, low + start + count - 1
        decided = (self._verdict(test, axis, first, last, local) for test in tests)
        return (first, last) if len(parts) > 1 and None not in decided else None

    def _leave(self, axis: Var) -> None:
        """Forgets this axis and those inside it: the walk is back at its loop."""
        for k, (other, _) in enumerate(self.path):
            if other == axis:
                del self.path[k:]
                return

    @staticmethod
    def _depends(test: Test, axis: Var) -> bool:
        direct = any(isinstance(a, core.VarRef) and a.var == axis for a in test.form.terms)
        hidden = any(
            axis in free_vars(atom) for atom in test.form.terms if not isinstance(atom, core.VarRef)
        )
        return direct and not hidden

    def _local(self, box: Box) -> dict[Var, tuple[int, int]]:
        local = dict(self.ranges)
        for var, span in box.items():
            low, high = range_of_linear(linear(span.base), self.ranges)
            local[var] = (low, high + span.extent - 1)
        return local

    @staticmethod
    def _split(test: Test, axis: Var, ranges: Ranges) -> tuple[int, int, int]:
        """Coefficient of the axis, and the range of the rest of the form."""
        factor = 0
        rest: dict[Expr, int] = {}
        for atom, k in test.form.terms.items():
            if isinstance(atom, core.VarRef) and atom.var == axis:
                factor = k
            else:
                rest[atom] = k
        low, high = range_of_linear(Linear(rest, test.form.const), ranges)
        return factor, low, high

    def _points(
        self, axis: Var, tests: tuple[Test, ...], base: int, extent: int, ranges: Ranges
    ) -> list[int]:
        points = {0, extent}
        for test in tests:
            factor, low, high = self._split(test, axis, ranges)
            for rest in (low, high):
                crossing = -(rest // factor)  # smallest t with factor * t + rest >= 0, factor > 0
                for t in (crossing - 1, crossing, crossing + 1):
                    if 0 < t - base < extent:
                        points.add(t - base)
        return sorted(points)

    def _merge(
        self, axis: Var, tests: tuple[Test, ...], points: list[int], base: int, ranges: Ranges
    ) -> list[tuple[int, int]]:
        """Neighbouring parts in which every test comes out the same become one."""
        parts: list[tuple[int, int]] = []
        verdicts: list[list[bool | None]] = []
        for start, stop in pairwise(points):
            verdict = [
                self._verdict(test, axis, base + start, base + stop - 1, ranges) for test in tests
            ]
            if parts and verdicts[-1] == verdict:
                parts[-1] = (parts[-1][0], stop - parts[-1][0])
            else:
                parts.append((start, stop - start))
                verdicts.append(verdict)
        return parts

    def _verdict(self, test: Test, axis: Var, first: int, last: int, ranges: Ranges) -> bool | None:
        factor, low, high = self._split(test, axis, ranges)
        ends = (factor * first, factor * last)
        return decide(test.op, low + min(ends), high + max(ends))


def cutter(exprs: list[Expr], ranges: Ranges) -> Cutter:
    """Cuts for a stage that evaluates ``exprs``."""
    nodes = max(1, sum(size(expr) for expr in exprs))
    useful = [expr for expr in exprs if collect_tests((expr,))]
    return Cutter(useful, ranges, min(16, MAX_COPIED_NODES // nodes) if useful else 1)
