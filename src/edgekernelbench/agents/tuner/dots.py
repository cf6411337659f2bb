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
    out: dict[str, s.LayoutLine | None] = {}
    for read in view.reads:
        line = _layout(read, axis, lane, tile)
        if line is False or out.get(read.tensor.name, line) != line:
            return None
        out[read.tensor.name] = line
    return tuple(line for line in out.values() if line is not None)


def _layout(read: Read, axis: AxisView, lane: AxisView, tile: int) -> s.LayoutLine | bool | None:
    """What a read needs: no layout (None), a layout, or what there is none for (False)."""
    along = [d for d, stride in enumerate(read.strides(axis.uid)) if stride != 0]
    lanes = [d for d, stride in enumerate(read.strides(lane.uid)) if stride != 0]
    last = len(read.dims) - 1
    if len(along) != 1 or read.strides(axis.uid)[along[0]] != 1:
        return False
    if not lanes and along == [last]:
        return None
    if read.tensor.kind in ("table", "output") or lanes == along or len(lanes) > 1:
        return False
    if lanes and read.strides(lane.uid)[lanes[0]] != 1:
        return False
    names = tuple(f"a{d}" for d in range(len(read.dims)))
    rest = [s.Name(names[d]) for d in range(len(names)) if d not in (*along, *lanes)]
    k = s.Name(names[along[0]])
    if not lanes:
        return s.LayoutLine(s.Ref(read.tensor.name), names, (*rest, k))
    j = s.Name(names[lanes[0]])
    outer = [s.Binary("//", j, s.Num(tile)), *rest, s.Binary("//", k, s.Num(FOUR))]
    inner = [s.Binary("%", j, s.Num(tile)), s.Binary("%", k, s.Num(FOUR))]
    return s.LayoutLine(s.Ref(read.tensor.name), names, (*outer, *inner))


def dot_pieces(view: StageView) -> Iterator[s.Piece]:
    """The reduction loops around the register tile."""
    for axis in view.reduction[:-1]:
        yield s.Piece(None, axis.name, None)
    yield s.Piece(None, view.reduction[-1].name, s.Num(FOUR))
