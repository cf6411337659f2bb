"""Ways to schedule a sum of products of bytes: nests that end in a dot product."""

from __future__ import annotations

from collections.abc import Iterator

from edgekernelbench.agents.tuner.views import AxisView, Read, StageView
from edgekernelbench.ir import surface as s

FOUR = 4
_TILES = (16, 8, 4, 2)
"""Lanes that may lie together in a layout: the widest instruction takes 16."""


def dot_axis(view: StageView) -> AxisView | None:
    """The reduction axis that is taken by fours: the last one; None where that cannot be."""
    if not view.bytes or view.reduction[-1].extent < FOUR:
        return None
    return view.reduction[-1]


def dot_layouts(view: StageView, lane: AxisView, lanes: int) -> tuple[s.LayoutLine, ...] | None:
    """Layouts with four values of the axis side by side; None where a read has none.

    Args:
        lane: the vectorised axis, which loops cut into ``lanes``.
    """
    axis = view.reduction[-1]
    tile = next((n for n in _TILES if lanes % n == 0), None)
    if tile is None:
        return None
    found: dict[str, s.LayoutLine | None] = {}
    for read in view.reads:
        along, across = _moving(read, axis), _moving(read, lane)
        if along is None or across is None or len(along) != 1 or along == across:
            return None
        line = None
        if across or along != [len(read.dims) - 1]:
            if read.tensor.kind in ("table", "output"):
                return None
            line = _layout(read, along[0], across, tile)
        if found.get(read.tensor.name, line) != line:
            return None
        found[read.tensor.name] = line
    return tuple(line for line in found.values() if line is not None)


def _moving(read: Read, axis: AxisView) -> list[int] | None:
    """The dimension that moves along an axis one by one, none or one; None for all else."""
    strides = read.strides(axis.uid)
    moving = [dim for dim, stride in enumerate(strides) if stride != 0]
    return moving if len(moving) <= 1 and all(strides[dim] == 1 for dim in moving) else None


def _layout(read: Read, along: int, across: list[int], tile: int) -> s.LayoutLine:
    """``[k, j] -> [j // 16, k // 4, j % 16, k % 4]``; where no lanes move, ``[k, i] -> [i, k]``."""
    names = tuple(f"a{dim}" for dim in range(len(read.dims)))
    k, ref = s.Name(names[along]), s.Ref(read.tensor.name)
    rest = [s.Name(name) for dim, name in enumerate(names) if dim not in (along, *across)]
    if not across:
        return s.LayoutLine(ref, names, (*rest, k))
    j = s.Name(names[across[0]])
    outer = [s.Binary("//", j, s.Num(tile)), *rest, s.Binary("//", k, s.Num(FOUR))]
    inner = [s.Binary("%", j, s.Num(tile)), s.Binary("%", k, s.Num(FOUR))]
    return s.LayoutLine(ref, names, (*outer, *inner))


def dot_pieces(view: StageView) -> Iterator[s.Piece]:
    """The reduction loops around the register tile."""
    for axis in view.reduction[:-1]:
        yield s.Piece(None, axis.name, None)
    yield s.Piece(None, view.reduction[-1].name, s.Num(FOUR))
