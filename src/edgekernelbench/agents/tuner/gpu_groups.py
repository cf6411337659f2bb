"""Choices for GPUs that put several stages into one kernel: epilogues, and rows of a chain."""

from __future__ import annotations

import math
from collections.abc import Iterator

from edgekernelbench.agents.tuner.choices import Choice, loops_line, piece
from edgekernelbench.agents.tuner.gpu import Team, own_choices
from edgekernelbench.agents.tuner.groups import (
    Views,
    epilogue,
    loop_names,
    row_axes,
    wants_tile,
)
from edgekernelbench.agents.tuner.views import AxisView, StageView
from edgekernelbench.ir import surface as s

_TEAMS = (32, 64, 128, 256, 512)
_ROWS_A_BLOCK = (1, 2, 4, 8)
_UNUSED_TILES = 8.0
"""Cost of rows of a product, which could use each operand again and again in a tile."""


def gpu_choices(views: Views, view: StageView, team: Team) -> list[Choice]:
    """All choices for a stage as a root, best guess first."""
    own = own_choices(view, team)
    chain = epilogue(views, view) if view.kind == "reduce" else ()
    fused = [with_device_epilogue(choice, view, chain) for choice in own]
    found = [*(c for c in fused if c is not None), *own, *device_rows(views, view, team)]
    return sorted(found, key=lambda choice: choice.cost)


def with_device_epilogue(
    choice: Choice, root: StageView, chain: tuple[StageView, ...]
) -> Choice | None:
    """The choice with a chain of maps behind the root's reduction, in the same kernel: without
    lines of their own they take its results from registers."""
    line = next(li for li in choice.lines if isinstance(li, s.LoopsLine))
    blocks = [n for n, p in enumerate(line.pieces) if p.annotation == "block"]
    if not chain or not blocks:
        return None
    place = s.PlaceLine(
        tuple(s.Ref(v.name) for v in chain), s.Ref(root.name), loop_names(line)[blocks[-1]]
    )
    return Choice(
        f"{choice.label} + epilogue",
        choice.root,
        (*choice.lines, place),
        choice.layouts,
        choice.claims | {v.name for v in chain},
        choice.cost * 0.95,
        choice.memory,
    )


def device_rows(views: Views, root: StageView, team: Team) -> Iterator[Choice]:
    """A map or reduction as the root of its chain: a block, or some threads of one, for a row."""
    if root.loops:
        return
    for depth in range(1, len(root.spatial) + (root.kind == "reduce")):
        rows = row_axes(views, root, depth)
        group = [v for v in views if v.name in rows and v.name != root.name]
        if not group or not _threaded(root, rows[root.name]):
            continue
        for threads in _TEAMS:
            for together in _ROWS_A_BLOCK:
                fits = threads * together <= min(team.max_threads, 512)
                if fits and together <= root.spatial[depth - 1].extent:
                    yield _rows(root, group, rows, (depth, threads, together), team)


def _threaded(view: StageView, rows: tuple[int, ...]) -> AxisView | None:
    """The axis that threads share: the last one that no row is cut from."""
    axes = (*view.spatial, *view.reduction) if view.rectangular else view.spatial
    return next((a for a in reversed(axes) if a.uid not in rows and a.extent > 1), None)


def _rows(
    root: StageView,
    group: list[StageView],
    rows: dict[str, tuple[int, ...]],
    shape: tuple[int, int, int],
    team: Team,
) -> Choice:
    """``shape``: axes that make a row, threads for a row, rows a block."""
    depth, threads, together = shape
    lines: list[s.ScheduleLine] = []
    for view in (root, *group):
        axis = _threaded(view, rows[view.name])
        if axis is not None:
            lines.append(_row_line(view, axis, rows[view.name], shape, view is root))
    inner = root.spatial[depth - 1].name
    loop = f"{inner}0" if together > 1 else inner
    lines.append(s.PlaceLine(tuple(s.Ref(v.name) for v in group), s.Ref(root.name), loop))
    extent = math.prod(a.extent for a in root.spatial[:depth])
    length = max(
        axis.extent for v in (root, *group) if (axis := _threaded(v, rows[v.name])) is not None
    )
    cost = team.idle(max(1, extent // together), threads * together)
    cost *= max(1.0, threads / length) * (1 + length / threads / 64)
    if any(wants_tile(view) for view in (root, *group)):
        cost *= _UNUSED_TILES
    more = f", {together} a block" if together > 1 else ""
    return Choice(
        f"{threads} threads a row of {depth} with {len(group)} placed{more}",
        root.name,
        tuple(lines),
        (),
        frozenset({root.name, *(v.name for v in group)}),
        cost,
    )


def _row_line(
    view: StageView, axis: AxisView, rows: tuple[int, ...], shape: tuple[int, int, int], root: bool
) -> s.LoopsLine:
    _, threads, together = shape
    pieces: list[s.Piece] = []
    last = rows[-1]
    for one in view.spatial:
        if one.uid == last and together > 1:
            pieces += [piece(one.name, together, "block")] if root else []
            pieces.append(piece(one.name, None, "thread"))
        elif one.uid in rows:
            pieces.append(piece(one.name, None, "block" if root else None))
        elif one.uid != axis.uid:
            pieces.append(piece(one.name))
    pieces += [piece(a.name) for a in view.reduction if a.uid != axis.uid]
    pieces += [piece(axis.name, threads)] if threads < axis.extent else []
    return loops_line(view.name, [*pieces, piece(axis.name, None, "thread")])
