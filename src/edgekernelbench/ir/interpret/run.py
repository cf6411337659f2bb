"""Runs the statements of a program: loops in order, stages as whole arrays in bounded pieces."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.interpret import limits
from edgekernelbench.ir.interpret.compile import Ahead, Compiler, Group
from edgekernelbench.ir.interpret.frame import Frame, GridVar, lift
from edgekernelbench.ir.interpret.loads import Fn
from edgekernelbench.ir.interpret.storage import Plan

Step = Callable[[Frame], None]


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a stage's value goes: per dimension of the storage a slot, and the grid axis if any."""

    number: int
    slots: tuple[int, ...]
    grid: tuple[bool, ...]
    hidden: tuple[bool, ...]
    order: tuple[int, ...]
    ndim: int

    def write(self, frame: Frame, value: object) -> None:
        picks: list[int | slice] = []
        for slot, is_grid, is_hidden in zip(self.slots, self.grid, self.hidden, strict=True):
            first = frame.start[slot] - (frame.origin[slot] if is_hidden else 0)
            picks.append(slice(first, first + frame.count[slot]) if is_grid else first)
        if self.ndim:
            value = lift(value, self.ndim).transpose(self.order)
        frame.store[self.number][tuple(picks)] = value


@dataclass(frozen=True, slots=True)
class _Pieces:
    """A grid cut along some variables: each with the length of its pieces."""

    vars: tuple[GridVar, ...]
    lengths: tuple[int, ...]

    def run(self, frame: Frame, each: Callable[[], None]) -> None:
        whole = [(frame.start[v.slot], frame.count[v.slot]) for v in self.vars]
        cuts = [
            [(at, min(at + length, first + count)) for at in range(first, first + count, length)]
            for (first, count), length in zip(whole, self.lengths, strict=True)
        ]
        for piece in itertools.product(*cuts):
            frame.tick()
            for var, (low, high) in zip(self.vars, piece, strict=True):
                var.bind(frame, low, high)
            each()
        for var, (first, count) in zip(self.vars, whole, strict=True):
            var.bind(frame, first, first + count)


class Builder:
    """Compiles the statements of a program into steps."""

    def __init__(self, compiler: Compiler, plan: Plan) -> None:
        self.compiler = compiler
        self.plan = plan
        self.each: list[GridVar] = []

    def node(self, node: core.Node) -> Step:
        return self._stage(node) if isinstance(node, core.Stage) else self._loop(node)

    def _body(self, body: tuple[core.Node, ...]) -> Step:
        steps = [self.node(node) for node in body]

        def run(frame: Frame) -> None:
            for step in steps:
                step(frame)

        return run

    # ------------------------------------------------------------ loops
    def _loop(self, loop: core.Loop) -> Step:
        if loop.var.uid in self.plan.widths:
            return self._each(loop, self.plan.widths[loop.var.uid])
        slot = self.compiler.scalar_var(loop.var)
        make = loop.var.dtype.numpy.type
        values = range(loop.lo, loop.hi)
        body = self._body(loop.body)

        def run(frame: Frame) -> None:
            for at in reversed(values) if loop.reverse else values:
                frame.tick()
                frame.vals[slot] = make(at)
                frame.start[slot] = at
                body(frame)

        return run

    def _each(self, loop: core.Loop, width: int) -> Step:
        var = self.compiler.grid_var(loop.var, len(self.each), loop.hi)
        self.each.append(var)
        body = self._body(loop.body)
        self.each.pop()

        def run(frame: Frame) -> None:
            for at in range(loop.lo, loop.hi, width):
                var.bind(frame, at, min(at + width, loop.hi))
                frame.origin[var.slot] = at
                body(frame)

        return run

    # ------------------------------------------------------------ stages
    def _stage(self, stage: core.Stage) -> Step:
        compiler = self.compiler
        ndim = len(self.each) + len(stage.axes)
        own = [
            compiler.grid_var(axis.var, ndim - 1 - k, axis.extent)
            for k, axis in enumerate(stage.axes)
        ]
        compiler.groups, compiler.aheads = [], []
        compiler.lanes = _lanes(stage.expr)
        fn = compiler.expr(stage.expr, ndim).fn
        target = self._target(stage, ndim)
        grid = [*self.each, *own]
        ahead, pieces = self._cut(grid)
        if pieces is None:
            return _whole_stage(stage.name, fn, target, own)
        return _cut_stage(stage.name, fn, target, own, ahead, pieces, ndim)

    def _target(self, stage: core.Stage, ndim: int) -> _Target:
        compiler = self.compiler
        storage = compiler.storages[stage.tensor.name]
        uids = [*(var.uid for var in stage.lhs), *storage.hidden]
        grid = [uid in compiler.grid for uid in uids]
        order = [ndim - 1 - compiler.grid[uid].place for uid in uids if uid in compiler.grid]
        hidden = [k >= len(stage.lhs) for k in range(len(uids))]
        slots = [compiler.slots[uid] for uid in uids]
        return _Target(storage.number, tuple(slots), tuple(grid), tuple(hidden), tuple(order), ndim)

    def _cut(self, grid: list[GridVar]) -> tuple[list[tuple[Ahead, _Pieces]], _Pieces | None]:
        """How to cut a stage so that no temporary is too large, and what to compute before."""
        uids = {self.compiler.slots[uid]: uid for uid in self.compiler.grid}
        names = [uids[var.slot] for var in grid]
        whole = (frozenset(names), self.compiler.lanes)
        lengths = self._lengths(names, [whole, *self.compiler.groups])
        cut = {uid for uid in names if lengths[uid] < self.compiler.grid[uid].extent}
        if not cut:
            return [], None
        ahead = [item for item in self.compiler.aheads if not cut <= item.deps]
        rest = list(self.compiler.groups)
        for group in (group for item in ahead for group in item.groups):
            rest.remove(group)
        lengths = self._lengths(names, [whole, *rest])
        plans = []
        for item in ahead:
            deps = [uid for uid in names if uid in item.deps]
            plans.append((item, self._pieces(deps, self._lengths(deps, list(item.groups)))))
        return plans, self._pieces(names, lengths)

    def _pieces(self, uids: list[int], lengths: dict[int, int]) -> _Pieces:
        grid = self.compiler.grid
        return _Pieces(tuple(grid[uid] for uid in uids), tuple(lengths[uid] for uid in uids))

    def _lengths(self, uids: list[int], groups: Iterable[Group]) -> dict[int, int]:
        grid = self.compiler.grid
        lengths = {uid: max(1, grid[uid].extent) for uid in uids}

        def size_of(deps: frozenset[int]) -> int:
            return math.prod(lengths.get(uid, grid[uid].extent) for uid in deps)

        # The most oversized first: cutting for it often makes the others fit.
        for deps, cap in sorted(groups, key=lambda group: -size_of(group[0]) / group[1]):
            size = size_of(deps)
            for uid in uids:
                while uid in deps and size > cap and lengths[uid] > 1:
                    size //= lengths[uid]
                    lengths[uid] = (lengths[uid] + 1) // 2
                    size *= lengths[uid]
        return lengths


def _lanes(expr: core.Expr) -> int:
    """Elements a temporary may have, so that all lets of a stage stay within some 64 MiB."""
    lets = sum(len(e.lets) for e in core.walk(expr) if isinstance(e, core.Block))
    share = limits.LET_LANES // (lets + 8)
    return max(limits.LEAST_LANES, min(limits.PLAIN_LANES, share))


def _whole_stage(name: str, fn: Fn, target: _Target, own: list[GridVar]) -> Step:
    def run(frame: Frame) -> None:
        frame.stage = name
        for var in own:
            if frame.vals[var.slot] is None:
                var.bind(frame, 0, var.extent)
        target.write(frame, fn(frame))

    return run


def _cut_stage(
    name: str,
    fn: Fn,
    target: _Target,
    own: list[GridVar],
    ahead: list[tuple[Ahead, _Pieces]],
    pieces: _Pieces,
    ndim: int,
) -> Step:
    def run(frame: Frame) -> None:
        frame.stage = name
        for var in own:
            var.bind(frame, 0, var.extent)
        frame.memo = {item.key: _evaluate_ahead(frame, item, cut, ndim) for item, cut in ahead}
        pieces.run(frame, lambda: target.write(frame, fn(frame)))
        frame.memo = {}

    return run


def _evaluate_ahead(
    frame: Frame, item: Ahead, cut: _Pieces, ndim: int
) -> tuple[np.ndarray, dict[int, int]]:
    """A reduction over all lanes of a stage, with the first value of each variable."""
    shape = [1] * ndim
    for var in cut.vars:
        shape[ndim - 1 - var.place] = frame.count[var.slot]
    base = {var.slot: frame.start[var.slot] for var in cut.vars}
    result = None

    def collect() -> None:
        nonlocal result
        value = lift(item.fn(frame), ndim)
        result = np.empty(shape, value.dtype) if result is None else result
        picks = [slice(None)] * ndim
        for var in cut.vars:
            first = frame.start[var.slot] - base[var.slot]
            picks[ndim - 1 - var.place] = slice(first, first + frame.count[var.slot])
        result[tuple(picks)] = value

    cut.run(frame, collect)
    assert result is not None
    return result, base
