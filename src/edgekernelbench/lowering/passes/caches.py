"""`cache X in S.k0`: the reads of a tensor by one stage go through a copy that is placed there.

The copy is a stage ``X.cache`` of its own, ``X.cache[i, k] = X[i, k]``: being placed, it exists
only for what one iteration of the loop reads, so its buffer is a small contiguous tile. Border
reads (``pad``) test the border once per element of the copy, and not at every read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Program, Stage, Tensor
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.linear import int_const, shifted
from edgekernelbench.lowering.expr.ranges import range_of
from edgekernelbench.lowering.expr.rewrite import Names, free_vars, loads, map_children
from edgekernelbench.lowering.graph import Place, axis_ranges, build_graph, map_stages
from edgekernelbench.lowering.passes.pads import (
    all_of,
    axis_names,
    fits,
    inside_tests,
    is_plain,
)
from edgekernelbench.lowering.together import siblings

MAX_BORDER = 1 << 20


@dataclass(frozen=True, slots=True)
class Request:
    """A stage reads a tensor through a copy of ``dtype`` (which holds all values of the tensor)."""

    stage: str
    tensor: str
    dtype: DType


def holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of one dtype is a value of the other."""
    if DType.BOOL in (wide, narrow) or wide is narrow:
        return wide is narrow
    if narrow.is_float:
        return wide.is_float and wide.bits > narrow.bits
    if wide.is_float:
        mantissa = {DType.F16: 11, DType.F32: 24, DType.F64: 53}[wide]
        return narrow.bits - narrow.is_signed <= mantissa
    (low, high), (least, most) = wide.int_range, narrow.int_range
    return low <= least and most <= high


def add_caches(
    program: Program, requests: Iterable[Request], names: Names
) -> tuple[Program, dict[tuple[str, str], str]]:
    """The program with a copy in front of each stage that asks for one.

    Copies are called ``X.cache``, ``X.cache1``, ... in program order of their readers. The
    components of one reduction read the same copy.

    Returns:
        the program, and the names of the copies by (stage, tensor). None where the stage reads
        the tensor only to know what it reads of another one, which its copy does in its place.
    """
    graph = build_graph(program)
    groups = siblings(graph)
    wanted: dict[str, dict[str, Request]] = {}
    for request in requests:
        first = groups.get(request.stage, (request.stage,))[0]
        wanted.setdefault(first, {}).setdefault(request.tensor, request)
    taken = set(graph.places) | {t.name for t in (*program.inputs, *program.outputs)}
    stages = {name: place.stage for name, place in graph.places.items()}
    copies: dict[str, list[Stage]] = {}
    made: dict[tuple[str, str], str] = {}
    for name, place in graph.places.items():
        for tensor, request in sorted(wanted.get(name, {}).items()):
            here = Place(stages[name], place.loops, place.rank)
            if all(load.tensor.name != tensor for load in loads(stages[name].expr)):
                continue  # its reads went into the copy of another tensor, whose indices they are
            copier = _Copier(here, request, names, taken)
            copies.setdefault(name, []).append(copier.define())
            for member in groups.get(name, (name,)):
                stages[member] = copier.redirected(stages[member])
                made[member, tensor] = copier.copy.name
    if not made:
        return program, made
    change: dict[str, tuple[core.Node, ...]] = {
        name: (*copies.get(name, ()), stages[name]) for name, _ in made
    }
    body = map_stages(program.body, change)
    return replace(program, body=body, next_uid=names.next_uid), made


@dataclass(frozen=True, slots=True)
class _Dim:
    """A dimension of the copy: it starts at index ``first`` of dimension ``of`` of the tensor."""

    of: int
    first: int
    extent: int


@dataclass(slots=True)
class _Copier:
    """Makes one copy, and the stages that read it.

    Attributes:
        other: what border reads yield outside the tensor, None when they keep their own test.
        dims: dimensions of the copy; the others are the same index in all reads.
    """

    place: Place
    request: Request
    names: Names
    taken: set[str]
    other: Expr | None = None
    dims: list[_Dim] = field(default_factory=list)
    copy: Stage = field(init=False)

    def define(self) -> Stage:
        """The stage that copies."""
        stage = self.place.stage
        borders, plain = self._reads(stage.expr)
        reads = [*(load for _, load in borders), *plain]
        fixed = self._fixed(reads)
        self.other = self._common_border(borders, fixed)
        self._choose_dims(reads[0].tensor, borders, fixed)
        self.copy = self._define(reads, fixed)
        return self.copy

    def redirected(self, stage: Stage) -> Stage:
        """A stage that reads the copy."""
        return replace(stage, expr=self._redirect(stage.expr))

    def _is_read(self, expr: Expr) -> TypeGuard[core.Load]:
        return isinstance(expr, core.Load) and expr.tensor.name == self.request.tensor

    def _reads(self, expr: Expr) -> tuple[list[tuple[core.Select, core.Load]], list[core.Load]]:
        """The border reads with their tests, and all other reads, of the tensor."""
        borders: list[tuple[core.Select, core.Load]] = []
        plain: list[core.Load] = []
        inside: set[int] = set()
        for node in core.walk(expr):  # a test comes before the read that it guards
            if isinstance(node, core.Select) and node.border and self._is_read(node.then):
                borders.append((node, node.then))
                inside.add(id(node.then))
            elif self._is_read(node) and id(node) not in inside:
                plain.append(node)
        return borders, plain

    def _fixed(self, reads: list[core.Load]) -> dict[int, Expr]:
        """Dimensions at which every read has the same index, of loops around the stage alone."""
        loops = {loop.var for loop in self.place.loops}
        out: dict[int, Expr] = {}
        for dim, index in enumerate(reads[0].indices):
            same = all(load.indices[dim] == index for load in reads)
            if same and free_vars(index) <= loops:
                out[dim] = index
        return out

    # ---------------------------------------------------------- the border
    def _common_border(
        self, borders: list[tuple[core.Select, core.Load]], fixed: dict[int, Expr]
    ) -> Expr | None:
        """What all border reads yield outside, if the copy can hold it in its place."""
        others = list(dict.fromkeys(select.other for select, _ in borders))
        if len(others) != 1 or not is_plain(others[0]) or not fits(others[0], self.request.dtype):
            return None
        if any(self._reach(dim, borders) is None for dim in self._open(borders, fixed)):
            return None
        return others[0]

    @staticmethod
    def _open(
        borders: list[tuple[core.Select, core.Load]], fixed: dict[int, Expr]
    ) -> Iterable[int]:
        return (dim for dim in range(len(borders[0][1].indices)) if dim not in fixed)

    def _reach(
        self, dim: int, borders: list[tuple[core.Select, core.Load]]
    ) -> tuple[int, int] | None:
        """Lowest and highest index of the border reads; None when data decides."""
        ranges = axis_ranges(self.place)
        size = borders[0][1].tensor.shape[dim]
        low, high = 0, size - 1
        for _, load in borders:
            index = load.indices[dim]
            if not free_vars(index) <= ranges.keys() or _has_data(index):
                return None
            least, most = range_of(index, ranges)
            low, high = min(low, least), max(high, most)
        return (low, high) if max(-low, high - size) <= MAX_BORDER else None

    def _choose_dims(
        self,
        tensor: Tensor,
        borders: list[tuple[core.Select, core.Load]],
        fixed: dict[int, Expr],
    ) -> None:
        for dim, extent in enumerate(tensor.shape):
            if dim in fixed:
                continue
            reach = None if self.other is None else self._reach(dim, borders)
            low, high = reach or (0, extent - 1)
            self.dims.append(_Dim(dim, low, high - low + 1))

    # ---------------------------------------------------------- the copy
    def _define(self, reads: list[core.Load], fixed: dict[int, Expr]) -> Stage:
        source, dtype = reads[0].tensor, self.request.dtype
        labels = axis_names(self.place.stage, [reads[0].indices[d.of] for d in self.dims])
        axes = tuple(
            core.Axis(self.names.var(label), dim.extent)
            for label, dim in zip(labels, self.dims, strict=True)
        )
        indices = [fixed.get(dim, int_const(0)) for dim in range(len(source.shape))]
        tests: list[Expr] = []
        for dim, index in fixed.items():
            tests += inside_tests(index, source.shape[dim], axis_ranges(self.place))
        for axis, dim in zip(axes, self.dims, strict=True):
            here = shifted(core.VarRef(axis.var), dim.first)
            indices[dim.of] = here
            own = {axis.var: (0, axis.extent - 1)}
            tests += inside_tests(here, source.shape[dim.of], own)
        value = _converted(core.Load(source, tuple(indices)), dtype)
        if tests:
            other = core.Const(0.0 if value.dtype.is_float else 0, value.dtype)
            outside = other if self.other is None else _converted(self.other, dtype)
            value = core.Select(all_of(tests), value, outside, value.dtype, True)
        tensor = Tensor(self._name(), dtype, tuple(d.extent for d in self.dims), "stage")
        return Stage(tensor.name, tensor, tuple(a.var for a in axes), axes, value)

    def _name(self) -> str:
        number = 0
        while (name := f"{self.request.tensor}.cache{number or ''}") in self.taken:
            number += 1
        self.taken.add(name)
        return name

    # ---------------------------------------------------------- the reader
    def _redirect(self, expr: Expr) -> Expr:
        """The expression with its reads taken from the copy."""
        if isinstance(expr, core.Cast) and expr.dtype is self.request.dtype.widened:
            load = self._replaced(expr.arg)
            if load is not None:  # what the copy holds already
                return self._from_copy(load)
        load = self._replaced(expr)
        if load is not None:
            return _as(self._from_copy(load), expr.dtype)
        return map_children(expr, self._redirect)

    def _replaced(self, expr: Expr) -> core.Load | None:
        """The read that the copy serves, with the border test around it that the copy makes."""
        if isinstance(expr, core.Select) and expr.border and self.other is not None:
            expr = expr.then
        return expr if self._is_read(expr) else None

    def _from_copy(self, load: core.Load) -> core.Load:
        indices: list[Expr] = []
        for dim in self.dims:
            indices.append(shifted(self._redirect(load.indices[dim.of]), -dim.first))
        return core.Load(self.copy.tensor, tuple(indices), load.span)


def _as(value: Expr, dtype: DType) -> Expr:
    return value if value.dtype is dtype else core.Cast(value, dtype)


def _converted(value: Expr, dtype: DType) -> Expr:
    """A value to be stored as ``dtype``: loads widen, and stores narrow again by themselves."""
    return value if value.dtype in (dtype, dtype.widened) else core.Cast(value, dtype.widened)


def _has_data(expr: Expr) -> bool:
    return any(isinstance(node, core.Load) for node in core.walk(expr))
