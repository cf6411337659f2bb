"""A group's kernel rewritten for its place in a larger one: under new names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edgekernelbench.ir import surface as s
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.elaborate import elaborate
from edgekernelbench.optimize.rename import Renaming, function_names, value_names

if TYPE_CHECKING:
    from edgekernelbench.optimize.join import Place


@dataclass(frozen=True, slots=True)
class Refitted:
    """``caches``: how many copies the memory layer keeps of each tensor of the joined kernel."""

    body: tuple[s.Stmt, ...]
    schedule: tuple[s.ScheduleLine, ...]
    memory: tuple[s.MemoryLine, ...]
    caches: Mapping[str, int]


def refit(
    kernel: s.Kernel,
    schedule: s.ScheduleLayer | None,
    memory: s.MemoryLayer | None,
    place: Place,
    borders: bool,
) -> Refitted | str:
    """The kernel at ``place``; or why that cannot be, in words."""
    program = elaborate(kernel).program
    if program is None:
        return "its kernel does not hold together"
    lines = tuple(schedule.lines) if schedule is not None else ()
    layouts = tuple(memory.lines) if memory is not None else ()
    packed = _packed_inputs(kernel, layouts, place)
    renaming = _renaming(kernel, place, packed, dict(program.sizes))
    templates = _templates(kernel)
    stages = _Stages({p.name: p for p in kernel.outputs if p.name in place.stages}, templates)
    body: list[s.Stmt] = [_copy(p, place.inputs[p.name], packed[p.name], renaming)
                          for p in kernel.inputs if p.name in packed]  # fmt: skip
    for stmt in (*kernel.prelude, *kernel.compute.body):
        open_stmt = stages.opened(stmt)
        if open_stmt is None:
            return "an f16 result is that of a template: only an output rounds it"
        body.append(renaming.stmt(open_stmt))
    kept = [line for line in lines if not isinstance(line, s.OptionLine)]
    held = _held(kernel, (*lines, *layouts), place) if borders else ()
    return Refitted(
        tuple(body),
        tuple(renaming.line(line) for line in kept),  # type: ignore[arg-type]
        tuple(renaming.line(line) for line in (*layouts, *held)),  # type: ignore[arg-type]
        _caches(layouts, renaming),
    )


# ---------------------------------------------------------------- names
def _renaming(
    kernel: s.Kernel,
    place: Place,
    packed: Mapping[str, str],
    sizes: Mapping[str, int | float],
) -> Renaming:
    everything = (*kernel.prelude, *kernel.compute.body)
    values = {name: f"{place.prefix}{name}" for name in value_names(everything)}
    values |= {**place.inputs, **place.outputs, **packed}
    functions = {name: f"{place.prefix}{name}" for name in function_names(everything)}
    numbers = {size.name: sizes[size.name] for size in kernel.sizes}

    def special(name: str) -> str | None:
        head, _, tail = name.partition(".")
        if tail == "packed" and head in packed:
            return packed[head]
        number = tail.removeprefix("cache")
        before = place.copies.get(head, 0) if head not in packed else 0
        if before and number != tail and (not number or number.isdigit()):
            return f"{values[head]}.cache{before + int(number or 0)}"
        return None

    return Renaming(values, functions, numbers, special)


def _templates(kernel: s.Kernel) -> frozenset[str]:
    found = (*kernel.prelude, *kernel.compute.body)
    return frozenset(stmt.name for stmt in found if isinstance(stmt, s.TemplateStmt))


def _caches(lines: Iterable[s.MemoryLine], renaming: Renaming) -> Counter[str]:
    return Counter(
        renaming.values.get(cached.tensor.name, cached.tensor.name)
        for line in lines
        if isinstance(line, s.CacheLine)
        for cached in line.tensors
    )


# ---------------------------------------------------------------- inputs in another layout
def _packed_inputs(kernel: s.Kernel, lines: Iterable[s.MemoryLine], place: Place) -> dict[str, str]:
    """Inputs that the piece reads in a layout of its own, to the copies that have it here.

    An input of the task is copied into its layout; behind it may stand another group's result, or
    a weight that others read as well, whose layout is not this piece's to choose.
    """
    const = {param.name: param.const for param in kernel.inputs}
    laid_out = [line.tensor.name for line in lines if isinstance(line, s.LayoutLine)]
    return {
        name: f"{place.prefix}{name}_packed"
        for name in laid_out
        if name in const and (not const[name] or name in place.shared)
    }


def _copy(param: s.Param, source: str, name: str, renaming: Renaming) -> s.StageStmt:
    # An axis hides a tensor of its name, so axes are called after the copy.
    axes = [f"{name}_{number}" for number in range(len(param.dims))]
    left = tuple(
        s.LeftAxis(axis, renaming.expr(dim)) for axis, dim in zip(axes, param.dims, strict=True)
    )
    read = s.Index(source, tuple(s.Name(axis) for axis in axes))
    return s.StageStmt((name,), param.dtype, left, read)


# ---------------------------------------------------------------- outputs that become stages
@dataclass(frozen=True, slots=True)
class _Stages:
    """What the header said of an output is said by the stage itself."""

    params: Mapping[str, s.Param]
    templates: frozenset[str]

    def opened(self, stmt: s.Stmt, loops: frozenset[str] = frozenset()) -> s.Stmt | None:
        """The statement with dtype and extents; None if that cannot be said."""
        match stmt:
            case s.StageStmt(targets=targets, axes=None, dtype=None, value=s.Call(fn=fn)) if (
                fn in self.templates
            ):
                narrow = [t for t in targets if t in self.params and self._rounds(t)]
                return None if narrow else stmt
            case s.StageStmt(targets=(name,)) if name in self.params:
                return self._stage(stmt, self.params[name], loops)
            case s.TupleStmt(lefts=lefts):
                return replace(stmt, lefts=tuple(self._left(left, loops) for left in lefts))
            case s.LoopStmt(axis=axis, body=body):
                inner = [self.opened(each, loops | {axis.name}) for each in body]
                whole = [each for each in inner if each is not None]
                return replace(stmt, body=tuple(whole)) if len(whole) == len(inner) else None
        return stmt

    def _rounds(self, name: str) -> bool:
        return self.params[name].dtype is DType.F16

    def _stage(self, stmt: s.StageStmt, param: s.Param, loops: frozenset[str]) -> s.StageStmt:
        axes = None if stmt.axes is None else self._axes(stmt.axes, param, loops)
        return replace(stmt, dtype=stmt.dtype or param.dtype, axes=axes)

    def _left(self, left: s.Left, loops: frozenset[str]) -> s.Left:
        param = self.params.get(left.name)
        if param is None:
            return left
        axes = self._axes(left.axes, param, loops)
        return replace(left, dtype=left.dtype or param.dtype, axes=axes)

    @staticmethod
    def _axes(
        axes: tuple[s.LeftAxis, ...], param: s.Param, loops: frozenset[str]
    ) -> tuple[s.LeftAxis, ...]:
        return tuple(
            replace(axis, extent=dim) if axis.extent is None and axis.name not in loops else axis
            for axis, dim in zip(axes, param.dims, strict=True)
        )


def _held(
    kernel: s.Kernel, lines: Iterable[s.ScheduleLine | s.MemoryLine], place: Place
) -> list[s.LayoutLine]:
    """Layouts that change nothing, for results of which the layers say nothing. Rules never compute
    a reduction where it is read, and have better nests for one without a layout."""
    stated = {name for line in lines for name in _stated(line)}
    open_stages = set(value_names(stmt for stmt in kernel.compute.body if _may_move(stmt)))
    held: list[s.LayoutLine] = []
    for param in kernel.outputs:
        if param.name in place.stages and param.name in open_stages - stated and param.dims:
            axes = tuple(f"{place.prefix}{number}" for number in range(len(param.dims)))
            target = tuple(s.Name(axis) for axis in axes)
            held.append(s.LayoutLine(s.Ref(param.name), axes, target))
    return held


def _may_move(stmt: s.Stmt) -> bool:
    if isinstance(stmt, s.StageStmt):
        return not isinstance(stmt.value, s.Reduction)
    return isinstance(stmt, s.TupleStmt)


def _stated(line: s.ScheduleLine | s.MemoryLine) -> tuple[str, ...]:
    match line:
        case s.LoopsLine(stage=stage):
            return (stage.name,)
        case s.PlaceLine(stages=stages, target=target):
            return (*(ref.name for ref in stages), target.name)
        case s.LayoutLine(tensor=tensor):
            return (tensor.name,)
    return ()
