"""The plan of a kernel: every decision of the schedule and memory layers, resolved and checked.

`emit` turns a plan into a loop program without taking further decisions that could be wrong:
whatever a plan says, the results are those of the compute layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Reduce, Stage, Var
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.lowering.expr.rewrite import free_vars
from edgekernelbench.lowering.graph import Graph
from edgekernelbench.lowering.nest import LoopKind, Mode


@dataclass(frozen=True, slots=True)
class Piece:
    """One loop of a nest.

    Attributes:
        axis: the axis that it is a piece of.
        name: what it is called (``j0``; the axis itself when it has one piece).
        step: values of the axis that one iteration covers; 1 for the last piece.
        last: the innermost piece of its axis.
        reduction: a piece of a reduction axis.
        dot: its four values are taken together, by a dot product.
        fragment: it is part of what tensor cores take at once.
    """

    axis: Var
    name: str
    step: int
    kind: LoopKind
    last: bool
    reduction: bool
    dot: bool = False
    fragment: bool = False


@dataclass(frozen=True, slots=True)
class Attach:
    """Computed inside loop number ``depth`` of stage ``target``."""

    target: str
    depth: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where an element is stored: ``index`` over ``formals``, one per dimension of the tensor."""

    formals: tuple[Var, ...]
    index: tuple[Expr, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ahead:
    """In loop number ``depth`` of a stage, what it reads of ``tensor`` ``ahead`` iterations later
    is fetched into the cache. ``label`` is the tensor's name as the author knows it."""

    tensor: str
    depth: int
    ahead: int
    label: str
    span: Span


@dataclass(frozen=True, slots=True)
class Scatter:
    """``out[.., v, ..] op= body`` over the reduction axes, with ``v = index`` where in range.

    Attributes:
        axis: the spatial axis that ``where`` compares with data; it has no loop.
        index: the position that an element lands on; other spatial axes in it run outside.
        test: the comparison, which landing settles.
        where: the rest of the condition, None when there is none.
        depth: the number of loops outside the point where elements land.
        atomic: elements land from many threads at once, each in one step.
    """

    axis: Var
    index: Expr
    test: Expr
    where: Expr | None = None
    depth: int = 0
    atomic: bool = False


@dataclass(frozen=True, slots=True)
class Nest:
    """The loops of a stage as stated, outermost first.

    Attributes:
        lands: the axis that has no loop, because elements land along it.
        depth: how many loops are outside the point where they do.
        cooperative: the threads of a block, however many, share the terms of each result.
        atomic: elements land from many threads at once.
    """

    pieces: tuple[Piece, ...]
    lands: Var | None = None
    depth: int = 0
    cooperative: bool = False
    atomic: bool = False


@dataclass(frozen=True, slots=True)
class StagePlan:
    """How one stage is computed.

    Attributes:
        pieces: its nest, outermost first; for a scatter without the axis that elements land along,
            and without the piece ``dot``: the innermost point has four values of that axis.
        value: the expression of a stage without a reduction, safe to evaluate anywhere.
        reduce: the reduction, with bounds that are known where its loops start.
        eager_body: the reduction's body and condition, safe to evaluate where the condition fails;
            ``eager_more`` the further components of its elements.
        merge: the nest over the results of a reduction that is split over threads.
        dot: the reduction axis of which four values at a time are one dot product.
        cooperative: the threads of a block, however many, share the terms of each result.
    """

    stage: Stage
    pieces: tuple[Piece, ...]
    value: Expr | None = None
    reduce: Reduce | None = None
    eager_body: Expr | None = None
    eager_more: tuple[Expr, ...] = ()
    eager_where: Expr | None = None
    scatter: Scatter | None = None
    merge: tuple[Piece, ...] = ()
    dot: Var | None = None
    cooperative: bool = False

    @property
    def exprs(self) -> list[Expr]:
        """What is evaluated at each point of the nest."""
        found = (self.value, self.eager_body, *self.eager_more, self.eager_where)
        return [expr for expr in found if expr is not None]

    @property
    def first_fragment(self) -> int:
        """Number of pieces outside of what tensor cores take at once (all, when there is none)."""
        found = (k for k, p in enumerate(self.pieces) if p.fragment)
        return next(found, len(self.pieces))

    @property
    def split(self) -> Piece | None:
        """The parallel loop over chunks of a reduction axis, if there is one."""
        kinds = ("parallel", "block")
        if self.scatter is not None and self.scatter.atomic:
            return None
        return next((p for p in self.pieces if p.reduction and p.kind in kinds), None)

    @property
    def first_reduction(self) -> int:
        """Number of pieces outside the reduction loops (all, when there are none).

        A loop over chunks (`split`) counts as outside: each chunk is a reduction of its own.
        Unrolled loops right outside a vectorised reduction axis count as inside: their results
        advance together.
        """
        threads = [k for k, p in enumerate(self.pieces) if p.kind in ("parallel", "block")]
        none = len(self.pieces) if self.split is None else threads[-1] + 1  # chunks of one element
        inner = (k for k, p in enumerate(self.pieces) if p.reduction and k not in threads)
        return min(next(inner, none), self.first_shared, self._first_sharing)

    @property
    def in_order(self) -> bool:
        """Whether every partial result takes its terms in the order of their positions: row-major
        over the axes of the reduction, however each of them is cut."""
        if self.reduce is None:
            return True
        ranks = {axis.var: k for k, axis in enumerate(self.reduce.axes)}
        seen = [ranks[p.axis] for p in self.pieces[self.first_reduction :] if p.reduction]
        return seen == sorted(seen)

    @property
    def _first_sharing(self) -> int:
        """Number of the first loop of threads that add up terms of one result together: the block
        brings their results together, not one of them."""
        threads = [k for k, p in enumerate(self.pieces) if p.kind == "thread"]
        sharing = not self.cooperative and any(self.pieces[k].reduction for k in threads)
        return threads[0] if sharing else len(self.pieces)

    @property
    def first_shared(self) -> int:
        """Number of the first loop that runs inside the vectors of a vectorised reduction axis.

        These are the unrolled spatial loops right outside it that its range does not depend on.
        """
        last = len(self.pieces) - 1
        if last < 0 or self.pieces[last].kind != "vectorize" or not self.pieces[last].reduction:
            return len(self.pieces)
        axes = () if self.reduce is None else self.reduce.axes
        bounds = [b for a in axes if a.var == self.pieces[last].axis for b in (a.lo, a.hi)]
        fixed = {var for bound in bounds for var in free_vars(bound)}
        while last and self._joins(self.pieces[last - 1], fixed):
            last -= 1
        return last

    @staticmethod
    def _joins(piece: Piece, fixed: set[Var]) -> bool:
        return piece.kind == "unroll" and not piece.reduction and piece.axis not in fixed

    def piece_index(self, name: str) -> int | None:
        return next((k for k, piece in enumerate(self.pieces) if piece.name == name), None)


@dataclass(frozen=True, slots=True)
class Wave:
    """Two ``seq`` loops, one alone in the body of the other, that run by diagonals.

    Iteration (u, v), counted from 0 in the direction of each loop, is on diagonal
    ``factor * u + v``. Tiles run by diagonals of tiles; what is in them, too, with factor 1.

    Attributes:
        outer, inner: the indices of the loops.
        stage: one in their body, which the author names the loops by.
        tile: iterations (u, v) of a tile; None where single iterations run by diagonals.
        parallel: the tiles (or iterations) of a diagonal run on several threads.
        lanes: the loop along which iterations of a diagonal (in a tile) run as SIMD lanes; None
            where they run one by one, those of a tile in the order of the program.
    """

    outer: Var
    inner: Var
    stage: str
    factor: int
    tile: tuple[int, int] | None
    parallel: bool
    lanes: Var | None
    span: Span


@dataclass(frozen=True, slots=True)
class Plan:
    """All stages of one function (``main`` or ``prepack``).

    Attributes:
        attach: stages computed inside another's loop; all others have their own nest. The target
            is never a stage that another one computes.
        layouts: storage of stage tensors, by name.
        parallel_loops: ``each`` loops whose iterations run on several threads (of a CPU).
        modes: how the loops of the program run on a GPU.
        together: components of a reduction that another stage, one of them too, computes.
        caches: copies that serve one stage, with the stage's name.
        ahead: what is prefetched in the loops of a stage.
        waves: pairs of loops that run by diagonals, by the index of the outer one.
        doubled: copies of which blocks of a GPU fetch the next while they use one.
    """

    graph: Graph
    stages: Mapping[str, StagePlan]
    attach: Mapping[str, Attach] = field(default_factory=dict)
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    parallel_loops: frozenset[Var] = frozenset()
    modes: Mapping[Var, Mode] = field(default_factory=dict)
    together: Mapping[str, str] = field(default_factory=dict)
    caches: Mapping[str, str] = field(default_factory=dict)
    ahead: Mapping[str, tuple[Ahead, ...]] = field(default_factory=dict)
    waves: Mapping[Var, Wave] = field(default_factory=dict)
    doubled: frozenset[str] = frozenset()

    def wave_around(self, name: str) -> Wave | None:
        """The wave that a stage stands in the body of."""
        loops = self.graph.places[name].loops
        return next((self.waves[loop.var] for loop in loops if loop.var in self.waves), None)


def own_axes(stage: Stage) -> dict[Var, int]:
    """Spatial axes of a stage with their extents."""
    return {axis.var: axis.extent for axis in stage.axes}


def reduce_axes(stage: Stage) -> dict[Var, core.ReduceAxis]:
    """Axes of the top-level reduction of a stage."""
    if isinstance(stage.expr, Reduce):
        return {axis.var: axis for axis in stage.expr.axes}
    return {}


def extents_of(stage: Stage) -> dict[Var, int]:
    """Spatial, then reduction axes of a stage with their (largest) extents."""
    return {**own_axes(stage), **{v: a.extent for v, a in reduce_axes(stage).items()}}


def chunk_count(split: Piece, extent: int) -> int:
    """Number of chunks that the outermost piece of an axis cuts it into."""
    return -(-extent // min(split.step, extent))


@dataclass(frozen=True, slots=True)
class Part:
    """A loop before it has a name: ``step`` is ignored for an axis' last one."""

    axis: Var
    step: int = 1
    kind: LoopKind = "serial"
    reduction: bool = False
    label: str | None = None
    dot: bool = False
    fragment: bool = False


def name_pieces(parts: Sequence[Part]) -> tuple[Piece, ...]:
    """Pieces in nest order, numbered per axis from outside unless they have a label."""
    counts: dict[Var, int] = {}
    for part in parts:
        counts[part.axis] = counts.get(part.axis, 0) + 1
    seen: dict[Var, int] = {}
    out: list[Piece] = []
    for part in parts:
        rank = seen.get(part.axis, 0)
        seen[part.axis] = rank + 1
        name = part.axis.name if counts[part.axis] == 1 else f"{part.axis.name}{rank}"
        last = rank == counts[part.axis] - 1
        step = 1 if last else part.step
        label = part.label or name
        marks = part.dot, part.fragment
        out.append(Piece(part.axis, label, step, part.kind, last, part.reduction, *marks))
    return tuple(out)
