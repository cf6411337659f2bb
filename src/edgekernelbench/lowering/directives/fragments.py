"""``warp`` loops and ``mma i, mma j, mma k`` at the end of a nest: form, product, sizes, target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgekernelbench.ir import surface
from edgekernelbench.ir.core import Reduce, Stage
from edgekernelbench.ir.diagnostics import Report, Rule
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.gpu import fragments
from edgekernelbench.lowering.gpu.fragments import FIRST_ARCH, ROWS
from edgekernelbench.lowering.plan import Piece, extents_of, reduce_axes
from edgekernelbench.targets.model import Gpu

_FORM = "(block i by 64, block j by 64, k by 32, warp i by 32, warp j by 32, mma i, mma j, mma k)"


def check_fragments(
    stage: Stage,
    line: surface.LoopsLine,
    pieces: Sequence[Piece],
    placed: bool,
    gpu: Gpu,
    report: Report,
) -> None:
    """Reports what is wrong with ``warp`` and ``mma`` pieces.

    Args:
        placed: the nest is for tiles whose sizes are not known yet.
    """
    checker = _Checker(stage, line, pieces, report)
    if not any(piece.fragment for piece in pieces):
        checker.lone_warps()
        return
    before = len(report.items)
    checker.form()
    if len(report.items) == before:
        checker.product()
        checker.architecture(gpu)
    if len(report.items) == before and not placed:
        checker.sizes()


@dataclass(slots=True)
class _Checker:
    stage: Stage
    line: surface.LoopsLine
    pieces: Sequence[Piece]
    report: Report

    def _error(self, rule: Rule, k: int, message: str, *help: str) -> None:
        self.report.error(rule, message, self.line.pieces[k].span, list(help))

    def lone_warps(self) -> None:
        for k, written in enumerate(self.line.pieces):
            if written.annotation == "warp":
                axis = written.axis
                help = f"write `thread {axis}`", "or end the nest in `mma i, mma j, mma k`"
                self._error(rules.MMA, k, f"`warp {axis}` in a nest without `mma`", *help)

    def form(self) -> None:
        """Where the pieces stand, and what stands beside them."""
        marked = [k for k, piece in enumerate(self.pieces) if piece.fragment]
        count, end = len(self.pieces), [self.pieces[k] for k in marked]
        if marked != list(range(count - 3, count)):
            message = f"{len(marked)} `mma` pieces that are not the last three of the nest"
            self._error(rules.MMA, marked[0], message, f"write `{_FORM}`")
            return
        if [p.reduction for p in end] != [False, False, True] or end[0].axis == end[1].axis:
            names = ", ".join(p.axis.name for p in end)
            message = f"`mma` for {names}: not two spatial axes and then a reduction axis"
            self._error(rules.MMA, marked[0], message, f"write `{_FORM}`")
            return
        inside = False
        for k, (written, piece) in enumerate(zip(self.line.pieces, self.pieces, strict=True)):
            inside |= piece.reduction and piece.kind != "block"
            if not piece.fragment:
                self._beside(k, written, piece, inside)

    def _beside(self, k: int, written: surface.Piece, piece: Piece, inside: bool) -> None:
        axis = piece.axis.name
        if written.annotation == "thread":
            message = f"`thread {axis}` beside `mma`, which takes whole warps"
            self._error(rules.MMA, k, message, f"write `warp {axis}`")
        elif written.annotation == "warp" and piece.reduction:
            message = f"`warp {axis}`: warps would add up terms of the same results"
            self._error(rules.MMA, k, message, f"write `{axis}` as a plain loop, or `block`")
        elif inside and not piece.reduction and written.annotation != "warp":
            message = f"`{piece.name}` runs between the reduction loops and `mma`"
            help = f"drop it: `mma {axis}` covers all that is left of `{axis}`"
            self._error(rules.MMA, k, message, help, f"or write `warp {axis}`")

    def product(self) -> None:
        i, j, k = (piece.axis for piece in self.pieces[-3:])
        at = len(self.pieces) - 3
        reason = fragments.refusal(self.stage)
        if reason is None and not reduce_axes(self.stage)[k].is_constant:
            reason = f"the range of `{k.name}` is not constant"
        if reason is not None:
            help = (
                "write `sum[k: K](A[i, k] * B[k, j])` of f16 tensors: the sum is an f32",
                "a stage of halves is `T: f16[i: M, k: K] = ..`",
                "or drop `mma` and write `thread` for `warp`",
            )
            self._error(rules.MMA_PRODUCT, at, reason, *help)
            return
        assert isinstance(self.stage.expr, Reduce)
        if fragments.factors(self.stage.expr, i, j) is None:
            message = f"no factor moves along `{i.name}` and the other one along `{j.name}`"
            self._error(rules.MMA_PRODUCT, at, message, "name the axes that the factors differ in")

    def architecture(self, gpu: Gpu) -> None:
        digits = (gpu.arch or "").removeprefix("sm_").rstrip("af")
        if digits.isdigit() and int(digits) < FIRST_ARCH:
            message = f"{gpu.arch} has no such instruction"
            help = "state a nest without `mma` in `schedule for gpu`: `thread` for `warp`"
            self._error(rules.MMA_ARCH, len(self.pieces) - 3, message, help)

    def sizes(self) -> None:
        """Every loop of the three axes divides what it cuts, and whole fragments are left."""
        assert isinstance(self.stage.expr, Reduce)
        i, j, k = (piece.axis for piece in self.pieces[-3:])
        found = fragments.factors(self.stage.expr, i, j)
        assert found is not None
        units = {i: ROWS, j: ROWS, k: found.depth}
        left = extents_of(self.stage)
        for at, piece in enumerate(self.pieces):
            unit = units.get(piece.axis)
            if unit is None:
                continue
            whole = left[piece.axis]
            step = unit if piece.fragment else min(piece.step, whole)
            if whole % step:
                axis = piece.axis.name
                message = f"{step} does not divide {whole} of `{axis}`"
                if piece.fragment:
                    message = f"`mma {axis}` is left {whole} of `{axis}`, no multiple of {unit}"
                help = f"steps of `{axis}` are multiples of {unit} that divide {whole}"
                pad = f"or fill `{axis}` up with zeros in a stage of its own"
                self._error(rules.MMA_TILE, at, message, help, pad)
            left[piece.axis] = step
