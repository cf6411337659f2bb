"""``wave S (...)`` lines: which loops run by diagonals, and whether their order allows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edgekernelbench.ir import surface
from edgekernelbench.ir.core import Loop, Program, Stage, Var
from edgekernelbench.ir.diagnostics import Report
from edgekernelbench.ir.verify.diagonals import Crossing, DiagonalProofs, Pair
from edgekernelbench.ir.verify.text import read
from edgekernelbench.ir.words import did_you_mean
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.directives.values import Numbers
from edgekernelbench.lowering.graph import Graph
from edgekernelbench.lowering.plan import Plan, Wave, own_axes, reduce_axes

MAX_FACTOR = 8
_FORMS = (
    "`(i, j)`, `(i, vectorize j)`",
    "`(parallel i by 32, j by 32, i, j)`, `(parallel i by 32, j by 32, i, vectorize j)`",
)


def resolve_waves(
    lines: Iterable[surface.WaveLine],
    program: Program,
    graph: Graph,
    numbers: Numbers,
    report: Report,
) -> dict[Var, Wave]:
    """The waves of a schedule that can run, by the index of their outer loop."""
    out: dict[Var, Wave] = {}
    seen: set[Var] = set()
    for line in lines:
        resolver = WaveResolver(line, program, graph, numbers, report)
        pair = resolver.loops()
        if pair is None:
            continue
        if seen & {loop.var for loop in pair}:
            message = f"the loops around `{line.stage.name}` have a `wave` already"
            report.error(rules.REPEATED, message, line.span, ["keep one"])
            continue
        seen |= {loop.var for loop in pair}
        wave = resolver.resolve(*pair)
        if wave is not None:
            out[wave.outer] = wave
    return out


@dataclass(frozen=True, slots=True)
class WaveResolver:
    """Checks one line."""

    line: surface.WaveLine
    program: Program
    graph: Graph
    numbers: Numbers
    report: Report

    # ---------------------------------------------------------- which loops
    def loops(self) -> tuple[Loop, Loop] | None:
        """The pair of loops, outer first; None after a diagnostic."""
        around = {loop.var.name: loop for loop in self.graph.places[self.line.stage.name].loops}
        for piece in self.line.pieces:
            if piece.axis not in around:
                self._unknown(piece, around)
                return None
        named = {piece.axis for piece in self.line.pieces}
        pair = [loop for loop in around.values() if loop.var.name in named]
        if len(pair) != 2:
            message = f"{len(pair)} of the loops around `{self.line.stage.name}`"
            self._error(rules.WAVE_LOOPS, message, self.line.span, self._ways(around))
            return None
        outer, inner = pair
        reason = self._misfit(outer, inner)
        if reason is not None:
            self._error(rules.WAVE_LOOPS, reason[0], self.line.span, [reason[1]])
            return None
        return outer, inner

    def _unknown(self, piece: surface.Piece, around: Mapping[str, Loop]) -> None:
        close = did_you_mean(piece.axis, around)
        name = self.line.stage.name
        own = piece.axis in {axis.var.name for axis in self.graph.stage(name).axes}
        message = f"there is no loop `{piece.axis}` around `{name}`"
        help = [f"did you mean `{close}`?"] if close else self._ways(around)
        if own:
            message = f"`{piece.axis}` is an axis of `{name}`, and no `seq` loop around it"
            help = [f"its own loops stand in `loops {name} (...)`", *self._ways(around)]
        self._error(rules.WAVE_LOOPS, message, piece.span, help)

    @staticmethod
    def _ways(around: Mapping[str, Loop]) -> list[str]:
        listed = ", ".join(f"`{loop.kind} {name}`" for name, loop in around.items())
        return [f"the loops around it are {listed}" if listed else "no loop is around it"]

    @staticmethod
    def _misfit(outer: Loop, inner: Loop) -> tuple[str, str] | None:
        """Why a pair of loops cannot run by diagonals, and a way out."""
        each = next((loop for loop in (outer, inner) if loop.kind == "each"), None)
        if each is not None:
            name = each.var.name
            message = f"`{name}` is an `each` loop: its iterations are independent as they are"
            return message, f"name two `seq` loops, or none: `each {name}` runs in parallel by rule"
        if outer.body == (inner,):
            return None
        names = [node.name for node in outer.body if isinstance(node, Stage)]
        if inner in outer.body and names:
            message = f"`{names[0]}` runs between `{outer.var.name}` and `{inner.var.name}`"
            return message, f"move it into `seq {inner.var.name}`, or out of `seq {outer.var.name}`"
        message = f"`{inner.var.name}` is not alone in the body of `{outer.var.name}`"
        return message, "name two loops of which one is the whole body of the other"

    # ---------------------------------------------------------- the form
    def resolve(self, outer: Loop, inner: Loop) -> Wave | None:
        """The wave over a pair of loops; None after a diagnostic."""
        pieces, before = self.line.pieces, len(self.report.items)
        if len(pieces) not in (2, 4):
            message = f"{len(pieces)} loops"
            self._error(rules.WAVE_FORM, message, self.line.span, list(_FORMS))
            return None
        self._axes(outer, inner)
        self._prefixes()
        tile = self._tile(outer, inner)
        if len(self.report.items) != before:
            return None
        last = pieces[-1]
        lanes: Var | None = None
        if last.annotation == "vectorize":
            lanes = outer.var if last.axis == outer.var.name else inner.var
        factor = self._factor(outer, inner, tile is not None, lanes)
        if factor is None:
            return None
        parallel = pieces[0].annotation == "parallel"
        name, span = self.line.stage.name, self.line.span
        return Wave(outer.var, inner.var, name, factor, tile, parallel, lanes, span)

    def _axes(self, outer: Loop, inner: Loop) -> None:
        """Each pair of pieces names both loops; a tile runs in order unless it has lanes."""
        pieces = self.line.pieces
        for first, second in zip(pieces[::2], pieces[1::2], strict=True):
            if first.axis == second.axis:
                message = f"`{first.axis}` twice, one after the other"
                self._error(rules.WAVE_FORM, message, second.span, list(_FORMS))
        plain = all(piece.annotation is None for piece in pieces[2:])
        if len(pieces) == 4 and plain and pieces[2].axis == inner.var.name:
            order = f"{outer.var.name}, {inner.var.name}"
            message = f"`{inner.var.name}` outside `{outer.var.name}` in a tile"
            help = [f"a tile runs in the order of the program: `{order}`, or in lanes"]
            self._error(rules.WAVE_FORM, message, pieces[2].span, help)

    def _prefixes(self) -> None:
        pieces, last = self.line.pieces, len(self.line.pieces) - 1
        for k, piece in enumerate(pieces):
            if piece.label is not None:
                message, help = "loops of a wave have no labels", [f"write `{piece.axis}`"]
                self._error(rules.WAVE_FORM, message, piece.span, help)
            mark = piece.annotation
            if mark is None or (mark, k) in (("parallel", 0), ("vectorize", last)):
                continue
            help = {
                "parallel": ["mark the first loop: all tiles of a diagonal run in parallel"],
                "vectorize": ["mark the last loop: the iterations of a diagonal are the lanes"],
            }.get(mark, [f"drop `{mark}`"])
            message = f"`{mark} {piece.axis}` in loop {k + 1} of {last + 1}"
            self._error(rules.WAVE_FORM, message, piece.span, help)
        if last == 1 and pieces[0].annotation and pieces[1].annotation:
            a, b = pieces[0].axis, pieces[1].axis
            message = "threads and lanes of the same diagonal need tiles"
            help = [f"`(parallel {a} by 32, {b} by 32, {a}, vectorize {b})`"]
            self._error(rules.WAVE_FORM, message, self.line.span, help)

    def _tile(self, outer: Loop, inner: Loop) -> tuple[int, int] | None:
        """The steps of the outer pair, in the order of the loops."""
        pieces, steps = self.line.pieces, dict[str, int]()
        for k, piece in enumerate(pieces):
            tiled = len(pieces) == 4 and k < 2
            if tiled != (piece.step is not None):
                way = f"`{piece.axis} by N`" if tiled else f"`{piece.axis}`"
                message = "a tile needs steps" if tiled else "a step without a loop for its rest"
                self._error(rules.WAVE_FORM, message, piece.span, [f"write {way}", *_FORMS])
            elif piece.step is not None:
                loop = outer if piece.axis == outer.var.name else inner
                steps[piece.axis] = self._step(piece, piece.step, loop)
        if len(steps) < 2:
            return None
        return steps[outer.var.name], steps[inner.var.name]

    def _step(self, piece: surface.Piece, written: surface.Expr, loop: Loop) -> int:
        step, count = self.numbers.step(written) or 1, loop.hi - loop.lo
        if step > max(1, count):
            message = f"step {step} of `{piece.axis}` is larger than {count}, its range"
            self._error(rules.STEP, message, piece.span, [f"at most {max(1, count)}"])
        return step

    # ---------------------------------------------------------- the order
    def _factor(self, outer: Loop, inner: Loop, tiled: bool, lanes: Var | None) -> int | None:
        """The smallest number that makes all reads go to earlier diagonals."""
        proofs = DiagonalProofs(self.program, Pair(outer.var, inner.var))
        i, j = outer.var.name, inner.var.name
        factors = [f for f in range(1, MAX_FACTOR + 1) if not proofs.late(f)]
        if tiled:
            outside = proofs.outside()
            if not outside:
                return 1
            ways = [f"without tiles it works: `({j}, vectorize {i})`"] if factors else []
            self._late(outside[0], "below or right of it", ways)
            return None
        if not factors:
            far = proofs.late(MAX_FACTOR)[0]
            reason = f"on an earlier diagonal of {i} + {j}, nor of {MAX_FACTOR}*{i} + {j}"
            self._late(far, reason, ["keep the order of the program: drop `wave`"])
            return None
        if factors[0] > 1 and lanes == inner.var:
            crossing = proofs.late(1)[0]
            text = read(crossing.load)
            message = f"`{text}` makes the diagonals {factors[0]}*{i} + {j}: lanes go along `{i}`"
            self._error(rules.WAVE_FORM, message, crossing.load.span, [f"`({j}, vectorize {i})`"])
            return None
        return factors[0]

    def _late(self, crossing: Crossing, reason: str, help: list[str]) -> None:
        text, name = read(crossing.load), crossing.reader.name
        if reason.startswith("below"):
            message = f"`{name}` reads `{text}`, which may be in a tile {reason}"
        else:
            message = f"`{name}` reads `{text}`, which is not provably {reason}"
        note = f"for `wave {self.line.stage.name} ({', '.join(p.axis for p in self.line.pieces)})`"
        help = [*help, "or read earlier iterations of both loops only, such as `D[i-1, j-1]`"]
        self.report.error(rules.WAVE_ORDER, message, crossing.load.span, help, [note])

    def _error(self, rule: rules.Rule, message: str, span: surface.Span, help: list[str]) -> None:
        self.report.error(rule, message, span, help)


def check_waves(plan: Plan, report: Report) -> None:
    """What stands in the body of a wave must be able to run as the wave does."""
    for name, place in plan.graph.places.items():
        wave = plan.wave_around(name)
        if wave is None:
            continue
        stage, pieces = place.stage, plan.stages[name].pieces
        if wave.parallel and any(piece.kind == "parallel" for piece in pieces):
            message = f"`{name}` has parallel loops inside a parallel wave"
            help = [f"drop `parallel` in `loops {name}`", "or in the wave"]
            report.error(rules.PARALLEL, message, wave.span, help)
        if name in plan.layouts and wave.inner in stage.lhs and wave.outer not in stage.lhs:
            message = f"`{name}` lives for one iteration of `{wave.outer.name}`, and has a layout"
            left = ", ".join(var.name for var in (wave.outer, *stage.lhs))
            help = [f"drop the layout, or keep all iterations: `{name}[{left}] = ...`"]
            report.error(rules.WAVE_LAYOUT, message, wave.span, help)
        if wave.lanes is None:
            continue
        own = [*own_axes(stage), *reduce_axes(stage)]
        deeper = [loop.var for loop in place.loops[_depth(place.loops, wave.inner) + 1 :]]
        if own or deeper:
            axes = ", ".join(f"`{var.name}`" for var in (*own, *deeper))
            message = f"`{name}` has {axes}: it is no single value of a lane"
            help = [
                f"drop `vectorize` in the wave, and vectorise in `loops {name} (...)`",
                "or compute it in a stage outside the loops",
            ]
            report.error(rules.WAVE_LANES, message, wave.span, help)


def _depth(loops: tuple[Loop, ...], var: Var) -> int:
    return next(k for k, loop in enumerate(loops) if loop.var == var)
