"""Choices that put several stages into one nest: epilogues, and rows of a chain."""

from __future__ import annotations

from collections.abc import Iterator

from edgekernelbench.agents.tuner.choices import Choice, Machine, loops_line, piece
from edgekernelbench.agents.tuner.views import AxisView, StageView, readers
from edgekernelbench.ir import surface as s

Views = tuple[StageView, ...]


def loop_names(line: s.LoopsLine) -> list[str]:
    """Names of a nest's loops, outermost first, as `place` refers to them."""
    totals: dict[str, int] = {}
    for p in line.pieces:
        totals[p.axis] = totals.get(p.axis, 0) + 1
    seen: dict[str, int] = {}
    names = []
    for p in line.pieces:
        number = seen.get(p.axis, 0)
        seen[p.axis] = number + 1
        names.append(p.label or (p.axis if totals[p.axis] == 1 else f"{p.axis}{number}"))
    return names


# ---------------------------------------------------------------- epilogues
def epilogue(views: Views, root: StageView) -> tuple[StageView, ...]:
    """Maps that may run on a tile of ``root``: each the only reader of the one before it."""
    chain: list[StageView] = []
    last = root
    while True:
        after = readers(views, last.name)
        if len(after) != 1 or last.output or after[0].kind != "map":
            return tuple(chain)
        if after[0].loops != root.loops or not _same_points(after[0], last):
            return tuple(chain)
        last = after[0]
        chain.append(last)


def _same_points(reader: StageView, source: StageView) -> bool:
    """Each element is read exactly once, at a permutation of the reader's axes."""
    if len(reader.spatial) != len(source.spatial):
        return False
    reads = reader.reads_of(source.name)
    own = {a.uid for a in reader.spatial}
    for read in reads:
        uids = []
        for form in read.dims:
            if form is None or form.const or len(form.terms) != 1 or form.terms[0][1] != 1:
                return False
            uids.append(form.terms[0][0])
        if set(uids) & own != own:
            return False
    return len(set(reads)) == 1


def with_epilogue(choice: Choice, root: StageView, chain: tuple[StageView, ...]) -> Choice | None:
    """The choice with a chain of maps placed just outside the root's register tile."""
    line = next(
        li for li in choice.lines if isinstance(li, s.LoopsLine) and li.stage.name == root.name
    )
    reduction = {a.name for a in root.reduction}
    names = loop_names(line)
    outside = 0
    while line.pieces[outside].axis not in reduction:
        outside += 1
    if outside == 0 or not chain:
        return None
    place = s.PlaceLine(tuple(s.Ref(v.name) for v in chain), s.Ref(root.name), names[outside - 1])
    lane = next((p.axis for p in line.pieces if p.annotation == "vectorize"), None)
    tiles = [_tile_line(root, v, lane) for v in chain]
    return Choice(
        f"{choice.label} + epilogue",
        choice.root,
        (*choice.lines, place, *(t for t in tiles if t is not None)),
        choice.layouts,
        choice.claims | {v.name for v in chain},
        choice.cost * 0.99,
    )


def _tile_line(root: StageView, view: StageView, lane: str | None) -> s.LoopsLine | None:
    """The nest of a placed map on its tile: lanes last, as in the root."""
    names = [a.name for a in view.spatial]
    position = next((i for i, a in enumerate(root.spatial) if a.name == lane), len(names) - 1)
    if position >= len(names):
        return None
    vector = names[position]
    return loops_line(
        view.name, [*(piece(n) for n in names if n != vector), piece(vector, None, "vectorize")]
    )


# ---------------------------------------------------------------- rows of a chain
def row_groups(views: Views, root: StageView, depth: int) -> tuple[StageView, ...]:
    """Producers that the outermost ``depth`` axes of ``root`` cut into rows, in program order."""
    rows = row_axes(views, root, depth)
    return tuple(view for view in views if view.name in rows and view.name != root.name)


def row_axes(views: Views, root: StageView, depth: int) -> dict[str, tuple[int, ...]]:
    """Of ``root`` and these producers by name, the axes that its outermost ``depth`` ones select.

    Each is read only within the group, and each read moves along with all of these axes, so no
    row is computed twice.
    """
    rows = {root.name: tuple(a.uid for a in root.spatial[:depth])}
    for view in reversed(views):
        if view.name == root.name or view.output or view.loops != root.loops:
            continue
        after = readers(views, view.name)
        if not after or any(r.name not in rows for r in after):
            continue
        cut = {_cut(r, view, rows[r.name]) for r in after}
        if len(cut) == 1 and (axes := cut.pop()) is not None:
            rows[view.name] = axes
    return rows


def _cut(reader: StageView, source: StageView, rows: tuple[int, ...]) -> tuple[int, ...] | None:
    """The axes of ``source`` that the reader's row axes select, or None if a read strays."""
    found: set[tuple[int, ...]] = set()
    for read in reader.reads_of(source.name):
        axes: list[int] = []
        for uid in rows:
            dims = [d for d, stride in enumerate(read.strides(uid)) if stride]
            if len(dims) != 1 or read.strides(uid)[dims[0]] != 1 or dims[0] >= len(source.spatial):
                return None
            form = read.dims[dims[0]]
            if form is None or len(form.terms) != 1 or form.const:
                return None
            axes.append(source.spatial[dims[0]].uid)
        found.add(tuple(axes))
    return found.pop() if len(found) == 1 else None


def row_choices(views: Views, root: StageView, machine: Machine, inner: bool) -> Iterator[Choice]:
    """A map or reduction as the root of its chain: one row, or block of rows, at a time."""
    for depth in range(1, len(root.spatial) + (root.kind == "reduce")):
        group = row_groups(views, root, depth)
        if not group:
            continue
        yield _rows_choice(root, group, depth, inner)


def _rows_choice(root: StageView, group: tuple[StageView, ...], depth: int, inner: bool) -> Choice:
    pieces = [s.Piece(None if inner else "parallel", a.name, None) for a in root.spatial[:depth]]
    rest = [piece(a.name) for a in (*root.spatial[depth:], *root.reduction)]
    lane = _lane_of(root, root.spatial[:depth])
    if rest and lane is not None:
        rest = [p for p in rest if p.axis != lane.name]
        rest.append(piece(lane.name, None, "vectorize"))
    line = loops_line(root.name, [*pieces, *rest])
    place = s.PlaceLine(
        tuple(s.Ref(v.name) for v in group), s.Ref(root.name), root.spatial[depth - 1].name
    )
    lines: list[s.ScheduleLine] = [line, place]
    for view in group:
        own = _lane_of(view)
        if own is None:
            continue
        axes = [a for a in (*view.spatial, *view.reduction) if a.uid != own.uid]
        lines.append(
            loops_line(
                view.name, [*(piece(a.name) for a in axes), piece(own.name, None, "vectorize")]
            )
        )
    return Choice(
        f"rows of {depth} with {len(group)} placed",
        root.name,
        tuple(lines),
        (),
        frozenset({root.name, *(v.name for v in group)}),
        3.0 if any(wants_tile(v) for v in (root, *group)) else 0.8,
    )


def wants_tile(view: StageView) -> bool:
    """A product of operands that a register tile would use again: rows waste that."""
    tensors = {read.tensor.name for read in view.reads}
    return view.kind == "reduce" and len(tensors) > 1 and len(view.spatial) > 1


def _lane_of(view: StageView, taken: tuple[AxisView, ...] = ()) -> AxisView | None:
    """The axis whose lanes read best: contiguous or broadcast everywhere, longest first."""
    best: tuple[int, int, AxisView] | None = None
    candidates = (*view.spatial, *view.reduction[-1:]) if view.rectangular else view.spatial
    for axis in candidates:
        if axis in taken or axis.extent < 4 or (axis in view.reduction and axis.extent < 16):
            continue
        bad = sum(r.lane_form(axis.uid) in ("strided", "gather") for r in view.reads)
        stores = axis in view.spatial and axis.uid != view.spatial[-1].uid
        key = (bad + stores, -axis.extent)
        if best is None or key < best[:2]:
            best = (*key, axis)
    return None if best is None else best[2]
