"""What `mma i, mma j, mma k` at the end of a nest stands for: the tile that a warp computes.

Tensor cores multiply 16 x 16 values (of bytes 16 x 32) by 16 columns at once. The 32 threads of a
warp keep the results: thread ``4 r + c`` has rows ``r`` and ``r + 8``, and of every eight columns
``2 c`` and ``2 c + 1``. That is a nest like any other, and so all that reads the results finds
them. A target without tensor cores runs that very nest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Reduce, Stage, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.rewrite import free_vars
from edgekernelbench.lowering.plan import Piece

ROWS = 16
"""Rows of the first factor, and columns of the second one, that are multiplied at once."""

FIRST_ARCH = 75
_BYTES = (DType.S8, DType.U8)


@dataclass(frozen=True, slots=True)
class Factors:
    """The two sides of a product: ``left`` moves along the rows, ``right`` along the columns."""

    left: core.Load
    right: core.Load

    @property
    def depth(self) -> int:
        """Values of the reduction axis that are multiplied at once."""
        return 32 // self.left.tensor.dtype.bytes


def with_lanes(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """The nest with the loops of a warp's threads in place of its three ``mma`` pieces."""
    if not any(piece.fragment for piece in pieces):
        return pieces
    i, j, k = pieces[-3:]
    return (
        *pieces[:-3],
        k,
        replace(i, step=ROWS, kind="unroll", last=False),
        replace(i, name=f"{i.name}.half", step=8, kind="unroll", last=False),
        replace(i, name=f"{i.name}.row", step=1, kind="thread"),
        replace(j, step=8, kind="unroll", last=False),
        replace(j, name=f"{j.name}.pair", step=2, kind="thread", last=False),
        replace(j, name=f"{j.name}.column", step=1, kind="unroll"),
    )


def is_product(reduce: Reduce) -> bool:
    """Whether a reduction adds up products of what tensor cores multiply."""
    return reduce.where is None and _loads(reduce) is not None


def factors(reduce: Reduce, row: Var, column: Var) -> Factors | None:
    """The sides of a product for a row and a column axis; None where they move otherwise."""
    loads = _loads(reduce)
    if loads is None:
        return None
    for left, right in (loads, loads[::-1]):
        if _moves(left, row, column) and _moves(right, column, row):
            return Factors(left, right)
    return None


def _loads(reduce: Reduce) -> tuple[core.Load, core.Load] | None:
    body = reduce.body
    if reduce.op != "sum" or not isinstance(body, core.Binary) or body.op != "mul":
        return None
    a, b = body.left, body.right
    if not isinstance(a, core.Load) or not isinstance(b, core.Load):
        return None
    kinds = a.tensor.dtype, b.tensor.dtype
    halves = kinds == (DType.F16, DType.F16) and reduce.dtype is DType.F32
    bytes_ = all(kind in _BYTES for kind in kinds) and reduce.dtype is DType.S32
    return (a, b) if halves or bytes_ else None


def _moves(load: core.Load, along: Var, not_along: Var) -> bool:
    axes = {var for index in load.indices for var in free_vars(index)}
    return along in axes and not_along not in axes


def refusal(stage: Stage) -> str | None:
    """Why a stage is no sum of products that tensor cores compute, None when it is one."""
    reduce, name = stage.expr, stage.name
    if not isinstance(reduce, Reduce) or reduce.op != "sum":
        return f"`{name}` is no sum"
    if reduce.where is not None:
        return f"`{name}` sums under a condition"
    if is_product(reduce):
        return None
    body = reduce.body
    if isinstance(body, core.Binary) and body.op == "mul":
        sides = [s for s in (body.left, body.right) if isinstance(s, core.Load)]
        if len(sides) == 2:
            kinds = " and ".join(
                f"`{s.tensor.name}`, stored as {s.tensor.dtype.value}" for s in sides
            )
            return f"`{name}` multiplies {kinds}, and sums in {reduce.dtype.value}"
    return f"what `{name}` sums is no product of two values read from tensors"


def axes_of(pieces: Sequence[Piece]) -> tuple[Var, Var, Var]:
    """Row, column and reduction axis of a nest that ends in fragments, lanes included."""
    rows = [p.axis for p in pieces if p.fragment and not p.reduction]
    depth = next(p.axis for p in pieces if p.fragment and p.reduction)
    return rows[0], rows[-1], depth
