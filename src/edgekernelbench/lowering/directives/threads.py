"""`block` and `thread` loops of a nest: where they may stand, and what a target has room for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from edgekernelbench.ir import surface
from edgekernelbench.ir.core import Stage, Var
from edgekernelbench.ir.diagnostics import Report, Span
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.gpu.device import Level
from edgekernelbench.lowering.gpu.fragments import with_lanes
from edgekernelbench.lowering.gpu.nests import level_inside
from edgekernelbench.lowering.gpu.team import iterations
from edgekernelbench.lowering.plan import Piece, Plan, reduce_axes
from edgekernelbench.targets.model import Gpu

_ON_CPU = {
    "block": "on a CPU, cores take `parallel` loops",
    "thread": "on a CPU, write `vectorize` for lanes, or a plain loop",
    "warp": "on a CPU, cores take `parallel` loops",
    "mma": "on a CPU, `dot4` adds up products of bytes",
}


@dataclass(slots=True)
class ThreadChecker:
    """Checks one `loops` line.

    Attributes:
        placed: the nest is for a tile inside another stage's loop.
        gpu: of the target, None on a CPU.
    """

    stage: Stage
    line: surface.LoopsLine
    report: Report
    placed: bool
    gpu: Gpu | None

    def check(self, pieces: tuple[Piece, ...], extents: Mapping[Var, int]) -> None:
        marked = [p for p in pieces if p.kind in ("block", "thread") or p.fragment]
        if self.gpu is None:
            self._not_here()
        elif marked:
            self._order(pieces)
            self._constant(pieces)
            if not self.placed:  # a tile of one that is placed may be smaller than its axes
                self._limit(pieces, extents, self.gpu)

    def _error(self, k: int, message: str, *help: str) -> None:
        self.report.error(rules.GPU_LOOPS, message, self.line.pieces[k].span, list(help))

    def _not_here(self) -> None:
        for written in self.line.pieces:
            if written.annotation in _ON_CPU:
                message = f"`{written.annotation} {written.axis}` in a layer for a CPU"
                help = [_ON_CPU[written.annotation], "or state the nest in `schedule for gpu`"]
                self.report.error(rules.ON_CPU, message, written.span, help)

    def _order(self, pieces: tuple[Piece, ...]) -> None:
        inner = False
        split = ""
        for k, piece in enumerate(pieces):
            axis = piece.axis.name
            if piece.kind == "parallel":
                help = f"write `block {axis}` or `thread {axis}`", "or mark no loop but `parallel`"
                self._error(k, f"`parallel {axis}` beside loops of blocks and threads", *help)
            elif piece.kind != "block":
                inner = True
            elif self.placed:
                message = f"`{self.stage.name}` is placed: it runs in the blocks of that stage"
                self._error(k, message, f"write `thread {axis}`, or a plain loop")
            elif inner:
                message = f"`block {axis}` inside a loop that each block runs"
                self._error(k, message, f"move `block {axis}` to the front of the nest")
            elif piece.reduction and split:
                message = f"`{split}` and `{piece.name}`, reduction axes, are both cut over blocks"
                self._error(k, message, f"drop `block` from `{piece.name}`")
            elif piece.reduction:
                split = piece.name

    def _constant(self, pieces: tuple[Piece, ...]) -> None:
        ragged = {v for v, a in reduce_axes(self.stage).items() if not a.is_constant}
        for k, piece in enumerate(pieces):
            if piece.kind in ("block", "thread") and piece.axis in ragged:
                message = f"the range of `{piece.axis.name}` is not constant"
                self._error(k, message, f"drop `{piece.kind}`")

    def _limit(self, pieces: tuple[Piece, ...], extents: Mapping[Var, int], gpu: Gpu) -> None:
        pieces = with_lanes(pieces)
        counts = iterations(pieces, extents)
        found = [(p.name, n) for p, n in zip(pieces, counts, strict=True) if p.kind == "thread"]
        total = prod(n for _, n in found)
        if total <= gpu.max_threads:
            return
        terms = " x ".join(f"{n} (`{name}`)" for name, n in found)
        message = f"a block of `{self.stage.name}` has {terms} = {total} threads"
        help = [
            f"the target runs at most {gpu.max_threads} together: "
            "let a thread cover more, by a loop inside it, or move a loop in front of `thread`"
        ]
        self.report.error(rules.THREADS, message, self.line.span, help)


def check_levels(
    plan: Plan, levels: Mapping[str, Level], spans: Mapping[str, Span], report: Report
) -> None:
    """Refuses `thread` loops of stages that one thread computes."""
    for name, stage in plan.stages.items():
        thread = next((p for p in stage.pieces if p.kind == "thread"), None)
        if thread is None or name in plan.together or level_of(plan, levels, name) != "thread":
            continue
        if name in plan.attach:
            place = plan.attach[name]
            loop = plan.stages[place.target].pieces[place.depth].name
            message = f"`{name}` is placed in `{place.target}.{loop}`, which each thread runs"
            outer = _block_loop(plan, levels, place.target)
            help = [f"place it in `{place.target}.{outer}`"] if outer else []
        else:
            message = f"`{name}` is part of what one thread does"
            help = []
        help.append(f"write `{thread.axis.name}` as a plain loop")
        report.error(rules.GPU_LOOPS, message, spans.get(name), help)


def _block_loop(plan: Plan, levels: Mapping[str, Level], target: str) -> str | None:
    """The innermost loop of a stage that a whole block runs."""
    pieces, level = plan.stages[target].pieces, level_of(plan, levels, target)
    found = [p.name for p in pieces if level_inside(pieces, p.name, level) == "block"]
    return found[-1] if found else None


def level_of(plan: Plan, levels: Mapping[str, Level], name: str) -> Level:
    """Where a stage runs, placements considered."""
    if name not in plan.attach:
        return levels[name]
    place = plan.attach[name]
    pieces = plan.stages[place.target].pieces
    return level_inside(pieces, pieces[place.depth].name, level_of(plan, levels, place.target))
