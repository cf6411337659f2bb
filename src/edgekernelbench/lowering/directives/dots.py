"""``dot4 k`` at the end of a nest: where it may stand, and what it can compute."""

from __future__ import annotations

from collections.abc import Sequence

from edgekernelbench.ir import surface
from edgekernelbench.ir.core import Stage
from edgekernelbench.ir.diagnostics import Report
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.dots.product import WIDTH, refusal
from edgekernelbench.lowering.plan import Piece, reduce_axes


def check_dot(
    stage: Stage, line: surface.LoopsLine, pieces: Sequence[Piece], report: Report
) -> None:
    """Reports what is wrong with the pieces that are marked ``dot4``."""
    for k, (written, piece) in enumerate(zip(line.pieces, pieces, strict=True)):
        if not piece.dot:
            continue
        axis = piece.axis.name
        before = pieces[k - 1] if k else None
        last = pieces[-1].name
        if not piece.reduction:
            message = f"`{axis}` is no reduction axis of `{stage.name}`"
            names = [var.name for var in reduce_axes(stage)]
            help = [f"its reduction axes are {', '.join(names)}"] if names else []
        elif k + 1 < len(pieces):
            message, help = f"`{last}` is inside of it", [f"move `dot4 {axis}` to the end"]
        elif before is None or before.kind != "vectorize" or before.reduction:
            message = "no vectorised spatial axis stands right before it"
            help = [f"end the nest in `vectorize j, dot4 {axis}`, with `j` the axis of the lanes"]
        elif (count := _values(stage, pieces, piece)) != WIDTH:
            message = f"it would take {count} values of `{axis}`"
            help = [f"write `{axis} by {WIDTH}` further out and nothing of `{axis}` between"]
            if count < WIDTH and reduce_axes(stage)[piece.axis].extent < WIDTH:
                help = [f"the range of `{axis}` is too short: drop `dot4`, or join axes in a stage"]
        else:
            _check_product(stage, piece, written, report)
            continue
        report.error(rules.DOT, message, written.span, help)


def _values(stage: Stage, pieces: Sequence[Piece], dot: Piece) -> int:
    """How many values of its axis the last piece covers."""
    left = reduce_axes(stage)[dot.axis].extent
    for piece in pieces:
        if piece.axis == dot.axis and not piece.last:
            left = min(left, piece.step)
    return left


def _check_product(stage: Stage, piece: Piece, written: surface.Piece, report: Report) -> None:
    if not reduce_axes(stage)[piece.axis].is_constant:
        message = f"the range of `{piece.axis.name}` is not constant"
        report.error(rules.DOT, message, written.span, ["drop `dot4`"])
        return
    reason = refusal(stage)
    if reason is not None:
        help = [
            "write `sum[k: K](A[i, k] * W[k, j])` of s8 or u8 tensors: the sum is an s32",
            "a stage of bytes is `T: s8[i: M, k: K] = s8(..)`",
            "a zero point goes outside: `acc[i, j] - z * s[j]` with `s[j: N] = sum[k: K](W[k, j])`",
        ]
        report.error(rules.DOT_PRODUCT, reason, written.span, help)
