"""Border reads inside reductions become padded copies.

``sum[r: 3](pad(x[i + r - 1], 0) * w[r])`` tests the border at every step of the reduction. A
stage ``Y.pad[u: N + 2] = pad(x[u - 1], 0)`` in front of it tests once per element, and the
reduction reads ``Y.pad[i + r]``, contiguous and without a branch.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Program, Stage, Tensor
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.linear import int_const, linear, shifted
from edgekernelbench.lowering.expr.ranges import range_of
from edgekernelbench.lowering.expr.rewrite import Names, free_vars, map_children
from edgekernelbench.lowering.graph import Place, axis_ranges, build_graph, map_stages
from edgekernelbench.lowering.plan import own_axes, reduce_axes

MIN_REUSE = 2
MAX_GROWTH = 4


def materialise_pads(
    program: Program, names: Names, cached: Collection[tuple[str, str]] = (), lanes: int = 1
) -> Program:
    """The program with a stage ``S.pad`` (``S.pad1``, ...) for each border read that pays.

    Args:
        cached: pairs (stage, tensor) whose border reads will go through a cache.
        lanes: rows of a copy go on as if the last axis of the stage were a multiple of this, so
            that vectors need no narrower rest.
    """
    graph = build_graph(program)
    taken = set(graph.places) | {t.name for t in (*program.inputs, *program.outputs)}
    change: dict[str, tuple[core.Node, ...]] = {}
    for name, place in graph.places.items():
        if isinstance(place.stage.expr, core.Reduce):
            copier = _Copier(place, names, taken, cached, lanes)
            new = copier.rewrite(place.stage.expr)
            if copier.made:
                stage = place.stage
                changed = Stage(stage.name, stage.tensor, stage.lhs, stage.axes, new, stage.span)
                change[name] = (*copier.made, changed)
    if not change:
        return program
    body = map_stages(program.body, change)
    return Program(
        program.name,
        program.sizes,
        program.inputs,
        program.outputs,
        program.tables,
        body,
        names.next_uid,
    )


@dataclass(slots=True)
class _Copier:
    place: Place
    names: Names
    taken: set[str]
    cached: Collection[tuple[str, str]]
    lanes: int
    made: list[Stage] = field(default_factory=list)
    known: dict[object, tuple[Tensor, tuple[tuple[int, int], ...]]] = field(default_factory=dict)

    def rewrite(self, expr: Expr) -> Expr:
        if isinstance(expr, core.Select) and expr.border and isinstance(expr.then, core.Load):
            kept = (self.place.stage.name, expr.then.tensor.name) in self.cached
            copy = None if kept else self._copy(expr, expr.then)
            if copy is not None:
                return copy
        return map_children(expr, self.rewrite)

    def _copy(self, select: core.Select, load: core.Load) -> Expr | None:
        """The read of the padded copy, or None where there is none to make."""
        stage, ranges = self.place.stage, axis_ranges(self.place)
        moving = set(own_axes(stage)) | set(reduce_axes(stage))
        if not is_plain(select.other) or load.tensor.name == stage.name:
            return None
        dims: list[tuple[int, int]] = []  # of the copy: (dimension of the tensor, first index)
        shape: list[int] = []
        for dim, (index, extent) in enumerate(zip(load.indices, load.tensor.shape, strict=True)):
            used = free_vars(index)
            low, high = range_of(index, ranges)
            if high < 0 or low >= extent:
                return None  # nothing but border
            inside = low >= 0 and high < extent
            if used - set(ranges) or any(isinstance(e, core.Load) for e in core.walk(index)):
                return None  # moves with data
            if not used & moving:
                if not inside:
                    return None  # the border of a loop index: decided once per iteration
                continue
            if inside:
                dims.append((dim, 0))
                shape.append(extent)
            else:
                dims.append((dim, low))
                last = dim == len(load.indices) - 1
                shape.append(high - low + 1 + (self._spare(index) if last else 0))
        if not _pays(load, tuple(shape), stage):
            return None
        return self._read(select, load, tuple(dims), tuple(shape))

    def _spare(self, index: Expr) -> int:
        """Elements more at the end of a row, for the lanes of its last vector."""
        stage = self.place.stage
        lane = stage.lhs[-1] if stage.lhs else None
        extent = own_axes(stage).get(lane) if lane is not None else None
        if lane is None or extent is None or linear(index).terms.get(core.VarRef(lane)) != 1:
            return 0
        return -extent % self.lanes

    def _read(
        self,
        select: core.Select,
        load: core.Load,
        dims: tuple[tuple[int, int], ...],
        shape: tuple[int, ...],
    ) -> Expr:
        fixed = tuple(
            index for dim, index in enumerate(load.indices) if all(dim != d for d, _ in dims)
        )
        key = (load.tensor, select.other, dims, shape, fixed)
        if key not in self.known:
            self.known[key] = (self._define(select, load, dims, shape), dims)
        tensor, _ = self.known[key]
        indices = tuple(shifted(load.indices[dim], -first) for dim, first in dims)
        read = core.Load(tensor, indices, load.span)
        return read if read.dtype is select.dtype else core.Cast(read, select.dtype)

    def _define(
        self,
        select: core.Select,
        load: core.Load,
        dims: tuple[tuple[int, int], ...],
        shape: tuple[int, ...],
    ) -> Tensor:
        names = axis_names(self.place.stage, [load.indices[dim] for dim, _ in dims])
        axes = tuple(core.Axis(self.names.var(m), n) for m, n in zip(names, shape, strict=True))
        indices = list(load.indices)
        cond: Expr | None = None
        for axis, (dim, first) in zip(axes, dims, strict=True):
            here = shifted(core.VarRef(axis.var), first)
            indices[dim] = here
            size = load.tensor.shape[dim]
            tests = (
                [core.Binary("ge", here, int_const(0, here.dtype), DType.BOOL)] if first < 0 else []
            )
            if first + axis.extent > size:
                tests.append(core.Binary("lt", here, int_const(size, here.dtype), DType.BOOL))
            for test in tests:
                cond = test if cond is None else core.Binary("and", cond, test, DType.BOOL)
        assert cond is not None
        dtype = load.tensor.dtype if fits(select.other, load.tensor.dtype) else select.dtype
        tensor = Tensor(self._name(), dtype, shape, "stage")
        read = core.Load(load.tensor, tuple(indices), load.span)
        value = core.Select(cond, read, select.other, select.dtype, True, select.span)
        lhs = tuple(axis.var for axis in axes)
        self.made.append(Stage(tensor.name, tensor, lhs, axes, value, select.span))
        return tensor

    def _name(self) -> str:
        number = 0
        while (name := f"{self.place.stage.name}.pad{number or ''}") in self.taken:
            number += 1
        self.taken.add(name)
        return name


def axis_names(stage: Stage, indices: list[Expr]) -> list[str]:
    """Axes of a copy, each called after the first axis that moves along it: ``h + r - 1``: h."""
    order = [v.name for v in (*own_axes(stage), *reduce_axes(stage))]
    out: list[str] = []
    for number, index in enumerate(indices):
        used = {var.name for var in free_vars(index)}
        name = next((n for n in order if n in used and n not in out), f"u{number}")
        out.append(name)
    return out


def is_plain(value: Expr) -> bool:
    """A constant, or an element of an input at a constant index: the same everywhere."""
    if isinstance(value, core.Load):
        constant = all(isinstance(i, core.Const) for i in value.indices)
        return value.tensor.kind == "input" and constant
    return isinstance(value, core.Const)


def fits(value: Expr, dtype: DType) -> bool:
    """Whether the dtype stores the value exactly."""
    if isinstance(value, core.Load):
        return value.tensor.dtype is dtype
    assert isinstance(value, core.Const)
    if dtype.is_float:
        return bool(dtype.numpy.type(value.value) == value.value) or value.value != value.value
    low, high = dtype.int_range
    return not value.dtype.is_float and low <= int(value.value) <= high


def _pays(load: core.Load, shape: tuple[int, ...], stage: Stage) -> bool:
    """Whether the copy is read often enough, and not much larger than what it copies."""
    size = int(np.prod(shape, dtype=np.int64))
    reads = 1
    for extent in own_axes(stage).values():
        reads *= extent
    for axis in reduce_axes(stage).values():
        reads *= axis.extent
    return reads >= MIN_REUSE * size and size <= MAX_GROWTH * load.tensor.size + 1024
