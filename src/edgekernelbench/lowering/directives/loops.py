"""``loops S (...)`` lines: from pieces as written to a checked nest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from edgekernelbench.ir import surface
from edgekernelbench.ir.core import Stage, Var
from edgekernelbench.ir.diagnostics import Report
from edgekernelbench.ir.words import did_you_mean
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.directives.dots import check_dot
from edgekernelbench.lowering.directives.fragments import check_fragments
from edgekernelbench.lowering.directives.scatters import check_atomic, resolve_landing
from edgekernelbench.lowering.directives.threads import ThreadChecker
from edgekernelbench.lowering.directives.values import Numbers
from edgekernelbench.lowering.dots.product import WIDTH
from edgekernelbench.lowering.gpu.fragments import with_lanes
from edgekernelbench.lowering.nest import LoopKind
from edgekernelbench.lowering.options import DEFAULT_UNROLLED, MAX_UNROLLED
from edgekernelbench.lowering.plan import (
    Nest,
    Part,
    Piece,
    chunk_count,
    extents_of,
    name_pieces,
    own_axes,
    reduce_axes,
)
from edgekernelbench.targets.model import Gpu

_KINDS: dict[surface.Annotation | None, LoopKind] = {
    None: "serial", "parallel": "parallel", "block": "block", "thread": "thread", "warp": "thread",
    "vectorize": "vectorize", "unroll": "unroll", "dot4": "serial", "mma": "serial",
}  # fmt: skip
"""How the loops of pieces run; a `scatter` is none."""
MAX_PIECES = 32
MAX_CHUNKS = 256
MAX_PARTIALS = 1 << 26  # elements


@dataclass(slots=True)
class LoopsResolver:
    """Checks one line.

    Attributes:
        placed: the nest is for a tile inside another stage's loop.
        hoisted: stages that the reductions inside this one became.
        unroll_limit: copies of the body that unrolled loops may make.
        gpu: of the target, None on a CPU.
        atomic: elements land from many threads at once: loops need no results of their own.
    """

    stage: Stage
    numbers: Numbers
    report: Report
    placed: bool
    hoisted: tuple[str, ...] = ()
    unroll_limit: int = DEFAULT_UNROLLED
    gpu: Gpu | None = None
    atomic: bool = False

    def resolve(self, line: surface.LoopsLine) -> Nest | None:
        """The nest, None after diagnostics."""
        before = len(self.report.items)
        if len(line.pieces) > MAX_PIECES:
            self.report.error(rules.TOO_DEEP, f"{len(line.pieces)} loops", line.span)
            return None
        extents = extents_of(self.stage)
        axes = self._axes(line, extents)
        if axes is None:
            return None
        complete = self._last_pieces(line, axes, extents)
        steps = self._steps(line, axes, extents)
        landing = resolve_landing(self.stage, line, axes, self.placed, self.report)
        if landing is not None and self.gpu is not None:
            self.atomic = True
            check_atomic(self.stage, line, landing[1], self.report)
        loops = [k for k, piece in enumerate(line.pieces) if piece.annotation != "scatter"]
        line = replace(line, pieces=tuple(line.pieces[k] for k in loops))
        pieces = self._pieces(line, [axes[k] for k in loops], [steps[k] for k in loops])
        self._labels(line, pieces)
        self._parallel(line, pieces, extents)
        ThreadChecker(self.stage, line, self.report, self.placed, self.gpu).check(pieces, extents)
        self._vectorize(line, pieces, extents)
        if complete:
            check_dot(self.stage, line, pieces, self.report)
            if self.gpu is not None:
                check_fragments(self.stage, line, pieces, self.placed, self.gpu, self.report)
        self._unroll(line, pieces, extents)
        if len(self.report.items) != before:
            return None
        pieces = with_lanes(pieces)
        if landing is None:
            return Nest(pieces)
        return Nest(pieces, *landing, atomic=self.atomic)

    # ---------------------------------------------------------- axes and steps
    def _axes(self, line: surface.LoopsLine, extents: Mapping[Var, int]) -> list[Var] | None:
        by_name = {var.name: var for var in extents}
        written = describe_axes(self.stage)
        out: list[Var] = []
        for piece in line.pieces:
            if piece.axis in by_name:
                out.append(by_name[piece.axis])
                continue
            close = did_you_mean(piece.axis, by_name)
            help = [f"did you mean `{close}`?"] if close else [f"its axes are {written}"]
            if self.hoisted:
                inner = " and ".join(f"`{name}`" for name in self.hoisted)
                help.append(f"the reduction inside it is a stage of its own: {inner}")
            message = f"`{self.stage.name}` has no axis `{piece.axis}`"
            self.report.error(rules.AXES, message, piece.span, help)
        missing = [name for name, var in by_name.items() if var not in out]
        if missing and len(out) == len(line.pieces):
            names = ", ".join(missing)
            message = f"`{self.stage.name}` has axes {written}; missing: {names}"
            help = [f"add {names} where the loop shall run"]
            self.report.error(rules.AXES, message, line.span, help)
        return out if len(out) == len(line.pieces) and not missing else None

    def _last_pieces(
        self, line: surface.LoopsLine, axes: list[Var], extents: Mapping[Var, int]
    ) -> bool:
        """Whether the last piece of each axis, and no other, is without a step."""
        before = len(self.report.items)
        for k, (piece, axis) in enumerate(zip(line.pieces, axes, strict=True)):
            last = axis not in axes[k + 1 :]
            if last and piece.step is not None:
                message = f"the last piece of `{axis.name}` has a step"
                help = [f"add a piece `{axis.name}` without `by` further inside"]
                self.report.error(rules.LAST_PIECE, message, piece.span, help)
            elif not last and piece.step is None:
                message = f"`{axis.name}` is complete here, and has another piece further inside"
                inner = line.pieces[axes.index(axis, k + 1)]
                step = likely_step(extents[axis], inner.annotation)
                help = [f"write `{axis.name} by {step}` here", "or remove the inner piece"]
                if inner.annotation == "dot4":
                    help = [f"write `{axis.name} by {step}` here: `dot4` takes four values"]
                self.report.error(rules.LAST_PIECE, message, piece.span, help)
        return len(self.report.items) == before

    def _steps(
        self, line: surface.LoopsLine, axes: list[Var], extents: Mapping[Var, int]
    ) -> list[int]:
        left = dict(extents)
        out: list[int] = []
        for piece, axis in zip(line.pieces, axes, strict=True):
            step = 1
            if piece.step is not None:
                step = self.numbers.step(piece.step) or 1
                if step > left[axis] and not self.placed:
                    message = f"step {step} of `{axis.name}` is larger than {left[axis]}, its range"
                    help = [
                        f"at most {left[axis]}; divisors of {left[axis]} are {divisors(left[axis])}"
                    ]
                    self.report.error(rules.STEP, message, piece.span, help)
                left[axis] = min(step, left[axis])
            out.append(step)
        return out

    def _pieces(
        self, line: surface.LoopsLine, axes: list[Var], steps: list[int]
    ) -> tuple[Piece, ...]:
        reductions = reduce_axes(self.stage)
        parts = []
        trivial = self._trivial_outside(line, axes, steps)
        for k, (piece, axis, step) in enumerate(zip(line.pieces, axes, steps, strict=True)):
            note = "parallel" if k in trivial else piece.annotation
            marks = note == "dot4", note == "mma"
            parts.append(Part(axis, step, _KINDS[note], axis in reductions, piece.label, *marks))
        return name_pieces(parts)

    def _trivial_outside(
        self, line: surface.LoopsLine, axes: list[Var], steps: list[int]
    ) -> set[int]:
        """Plain loops of one iteration around a parallel one: they may as well be parallel."""
        left, reductions = extents_of(self.stage), reduce_axes(self.stage)
        found: list[int] = []
        last = -1
        for k, (piece, axis, step) in enumerate(zip(line.pieces, axes, steps, strict=True)):
            once = left[axis] <= step and axis not in reductions
            left[axis] = min(step, left[axis])
            if piece.annotation == "parallel":
                last = k
            elif piece.annotation is None and once:
                found.append(k)
            else:
                break
        return set() if self.placed else {k for k in found if k < last}

    def _labels(self, line: surface.LoopsLine, pieces: tuple[Piece, ...]) -> None:
        seen: set[str] = set()
        for written, piece in zip(line.pieces, pieces, strict=True):
            if piece.name in seen:
                message = f"two loops are called `{piece.name}`"
                self.report.error(rules.LABEL, message, written.span, ["choose another label"])
            seen.add(piece.name)

    # ---------------------------------------------------------- annotations
    def _parallel(
        self, line: surface.LoopsLine, pieces: tuple[Piece, ...], extents: Mapping[Var, int]
    ) -> None:
        outside: list[Piece] = []
        split = ""
        for written, piece in zip(line.pieces, pieces, strict=True):
            if piece.kind == "block" and piece.reduction:
                self._chunks(written, piece, extents[piece.axis])
            if piece.kind != "parallel":
                outside.append(piece)
                continue
            reason, help = "", ["move it to the front of the nest, or drop `parallel`"]
            if self.placed:
                reason = f"`{self.stage.name}` is placed in another stage's loop"
                help = ["mark the outermost loop of the stage it is placed in"]
            elif outside:
                reason = f"`{piece.name}` is inside a loop that is not parallel"
                if all(p.kind == "serial" and not p.reduction for p in outside):
                    names = ", ".join(f"`{p.name}`" for p in outside)
                    help.append(f"or mark the loops outside of it parallel, too: {names}")
            elif piece.reduction and split:
                reason = f"`{piece.name}` is a reduction axis, and `{split}` is split already"
                help = [f"drop `parallel` from `{piece.name}`"]
            if reason:
                message = f"{reason}: it cannot be parallel"
                self.report.error(rules.PARALLEL, message, written.span, help)
            elif piece.reduction:
                split = piece.name
                self._chunks(written, piece, extents[piece.axis])

    def _chunks(self, written: surface.Piece, piece: Piece, extent: int) -> None:
        """A parallel reduction axis has a partial result of the whole stage for each chunk."""
        count, results = chunk_count(piece, extent), prod(own_axes(self.stage).values())
        most = min(MAX_CHUNKS, MAX_PARTIALS // results)
        if self.atomic:
            return
        lacks_a_piece = piece.last and written.step is not None  # which has been said
        if count <= max(1, most) or lacks_a_piece:
            return
        axis = piece.axis.name
        message = f"`{piece.name}` cuts `{axis}` into {count} chunks, with {results} results each"
        help = [f"`{piece.kind} {axis} by N` with N from {-(-extent // max(1, most))} on"]
        if most < 2:
            help = ["mark a spatial axis instead"]
        self.report.error(rules.PARALLEL, message, written.span, help)

    def _vectorize(
        self, line: surface.LoopsLine, pieces: tuple[Piece, ...], extents: Mapping[Var, int]
    ) -> None:
        for k, (written, piece) in enumerate(zip(line.pieces, pieces, strict=True)):
            if piece.kind != "vectorize":
                continue
            if not piece.last:
                axis, step = piece.axis.name, likely_step(extents[piece.axis], "vectorize")
                help = [f"write `{axis} by {step}` and, innermost, `vectorize {axis}`"]
                message = f"`{piece.name}` has further pieces inside"
                self.report.error(rules.VECTORIZE, message, written.span, help)
            elif k + 1 < len(pieces) and not pieces[k + 1].dot:
                message = f"`{pieces[-1].name}` is inside the vectorised loop `{piece.name}`"
                help = [f"move `vectorize {piece.axis.name}` to the end"]
                self.report.error(rules.VECTORIZE, message, written.span, help)
            elif piece.reduction:
                self._simd(written, pieces)

    def _simd(self, written: surface.Piece, pieces: tuple[Piece, ...]) -> None:
        if self.gpu is not None:
            message = f"`vectorize {written.axis}`: a thread of a GPU has no lanes to add up"
            help = [f"write `thread {written.axis}`, or `unroll {written.axis}` for a short loop"]
            self.report.error(rules.ON_GPU, message, written.span, help)
            return
        loops = [k for k, p in enumerate(pieces) if p.reduction and p.kind != "parallel"]
        first = loops[0]  # a parallel one makes chunks, each a reduction of its own
        plain = [p for p in pieces[first:] if not p.reduction and p.kind != "unroll"]
        if plain:
            names = ", ".join(piece.name for piece in plain)
            message = f"{names} runs inside the reduction and is not unrolled"
            help = [f"move {names} outside the reduction loops", f"or unroll {names}"]
            self.report.error(rules.SIMD, message, written.span, help)

    def _unroll(
        self, line: surface.LoopsLine, pieces: tuple[Piece, ...], extents: Mapping[Var, int]
    ) -> None:
        left = dict(extents)
        copies = 1
        ragged = {v for v, a in reduce_axes(self.stage).items() if not a.is_constant}
        for written, piece in zip(line.pieces, pieces, strict=True):
            count = -(-left[piece.axis] // piece.step)
            left[piece.axis] = piece.step
            if piece.kind != "unroll" and (piece.kind != "vectorize" or self.gpu is None):
                continue
            if piece.axis in ragged:
                message = f"the range of `{piece.axis.name}` is not constant"
                self.report.error(rules.UNROLL, message, written.span, ["drop `unroll`"])
            copies *= count
            if copies > self.unroll_limit:
                message = f"the unrolled loops make {copies} copies of the body"
                help = [
                    f"at most {self.unroll_limit}: use smaller steps, or unroll fewer loops",
                    f"in `schedule for llvm`, `option unroll_limit {MAX_UNROLLED}` allows more",
                ][: 2 if self.gpu is None else 1]
                self.report.error(rules.UNROLL, message, written.span, help)
                return


def likely_step(extent: int, inner: str | None) -> int:
    """A step to propose for a piece outside of one with the prefix ``inner``."""
    usual = {"dot4": WIDTH, "vectorize": 32}.get(inner or "", 8)
    return min(usual, extent)


def describe_axes(stage: Stage) -> str:
    """``i (100), j (30), k (64)``: the axes with their extents."""
    extents = extents_of(stage)
    return ", ".join(f"{var.name} ({extent})" for var, extent in extents.items()) or "none"


def divisors(n: int) -> str:
    """The divisors of a number, in words; the largest ones where they are many."""
    found = [d for d in range(1, min(n, 4096) + 1) if n % d == 0]
    if n > 4096:
        found += [n]
    text = [str(d) for d in found]
    return ", ".join(text if len(text) <= 16 else [*text[:15], "..."])
