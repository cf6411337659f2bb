"""Results that stay with the thread that computed them.

A reduction whose loops the threads of a block share leaves its results in their registers. What is
placed behind it may take them from there if every thread reads only what it has itself: if the
``thread`` loops of the reader are those of the reduction, in the same order.
"""

from __future__ import annotations

from dataclasses import replace

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Stage, Var
from edgekernelbench.lowering.expr.rewrite import loads
from edgekernelbench.lowering.plan import Piece, StagePlan, own_axes


def element_axes(reader: Stage, stage: Stage) -> dict[Var, Var] | None:
    """The axes of a stage as those of what reads it element by element, None if it does not."""
    found = [load for load in loads(reader.expr) if load.tensor.name == stage.name]
    own, theirs = own_axes(stage), own_axes(reader)
    out: dict[Var, Var] = {}
    for load in found:
        for var, index in zip(stage.lhs, load.indices, strict=True):
            if var not in own:
                continue
            if not isinstance(index, core.VarRef) or theirs.get(index.var) != own[var]:
                return None
            if out.setdefault(var, index.var) != index.var:
                return None
    return out if len(set(out.values())) == len(out) == len(own) else None


def mirrored_pieces(reader: Stage, target: StagePlan, depth: int) -> tuple[Piece, ...] | None:
    """The loops of ``target`` inside loop ``depth``, as a nest of its reader; None where the reader
    cannot have them."""
    axes = element_axes(reader, target.stage)
    inner = [p for p in target.pieces[depth + 1 :] if not p.reduction]
    if axes is None or (
        not isinstance(reader.expr, core.Reduce) and len(axes) != len(own_axes(reader))
    ):
        return None
    if isinstance(reader.expr, core.Reduce) or not any(p.kind == "thread" for p in inner):
        return None
    outside = set(own_axes(target.stage)) - {p.axis for p in inner}
    if any(not any(p.axis == v and p.last for p in target.pieces[: depth + 1]) for v in outside):
        return None
    once = [p for p in target.pieces[: depth + 1] if p.axis in outside and p.last]
    inner = [replace(p, kind="serial") for p in once] + inner  # one value of these axes in a block
    kinds = {"thread": "thread", "vectorize": "unroll"}
    return tuple(replace(p, axis=axes[p.axis], kind=kinds.get(p.kind, p.kind)) for p in inner)


def reads_own(reader: StagePlan, target: StagePlan, depth: int) -> bool:
    """Whether each thread reads just the results that it has in its registers, in a reader that is
    placed in loop ``depth``, outside the reduction."""
    inner = target.pieces[depth + 1 :]
    threads = [p for p in inner if p.kind == "thread"]
    axes = element_axes(reader.stage, target.stage)
    if axes is None or not threads or any(p.reduction for p in threads) or target.cooperative:
        return False
    if any(p.kind == "thread" for p in target.pieces[: depth + 1]):
        return False
    return _digits(target, axes, depth + 1) == _digits(reader, {v: v for v in axes.values()}, 0)


def _digits(plan: StagePlan, axes: dict[Var, Var], first: int) -> list[tuple[Var | None, int, int]]:
    """The ``thread`` loops with the range that each cuts (-1: all of it) and its step."""
    out: list[tuple[Var | None, int, int]] = []
    reach: dict[Var, int] = {}
    for piece in plan.pieces[first:]:
        if piece.kind == "thread":
            found = (axes.get(piece.axis), reach.get(piece.axis, -1), piece.step)
            out.append(found)
        reach[piece.axis] = piece.step
    return out
