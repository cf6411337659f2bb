"""`cache` lines of a memory layer: which stage reads which tensor through a copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from edgekernelbench.ir import surface
from edgekernelbench.ir.core import Program, Tensor
from edgekernelbench.ir.diagnostics import Report, Span
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.directives.names import unknown
from edgekernelbench.lowering.directives.places import Placement
from edgekernelbench.lowering.expr.rewrite import Names, loads
from edgekernelbench.lowering.graph import Graph, build_graph
from edgekernelbench.lowering.passes.caches import Request, add_caches, holds
from edgekernelbench.lowering.together import siblings


@dataclass(frozen=True, slots=True)
class Caches:
    """The program with the copies, where each is placed, its name by (stage, tensor), and tensors
    with a refused one."""

    program: Program
    places: tuple[Placement, ...] = ()
    made: Mapping[tuple[str, str], str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()

    def means_refused(self, name: str) -> bool:
        """Whether a name is that of a copy that there would be, had its line been legal."""
        there = any(place.stage == name for place in self.places)
        return not there and _copied(name) in self.refused


def _copied(name: str) -> str:
    """The tensor that a name is a copy of, if it looks like one, else nothing."""
    tensor, _, copy = name.rpartition(".")
    return tensor if copy.rstrip("0123456789") == "cache" else ""


def cached_pairs(memory: surface.MemoryLayer | None) -> set[tuple[str, str]]:
    """(stage, tensor) of all `cache` lines as written, whether they are legal or not."""
    return {
        (line.target.name, item.tensor.name)
        for line in (memory.lines if memory else ())
        if isinstance(line, surface.CacheLine)
        for item in line.tensors
    }


def resolve_caches(
    memory: surface.MemoryLayer | None, program: Program, names: Names, report: Report
) -> Caches:
    """Checks the `cache` lines and carries them out."""
    graph = build_graph(program)
    reader = _Reader(TensorNames(program, graph, report), siblings(graph))
    for line in memory.lines if memory else ():
        if isinstance(line, surface.CacheLine):
            for item in line.tensors:
                reader.read(line, item)
    changed, made = add_caches(program, reader.requests.values(), names)
    for pair in reader.lines.keys() - made.keys():
        reader.taken_over(*pair)
    places = tuple(
        Placement(made[pair], line.target.name, line.loop, span)
        for pair, (line, span) in reader.lines.items()
        if pair in made
    )
    return Caches(changed, places, made, frozenset(reader.refused))


def without_refused(
    caches: Caches, schedule: surface.ScheduleLayer | None, memory: surface.MemoryLayer | None
) -> tuple[surface.ScheduleLayer | None, surface.MemoryLayer | None]:
    """The layers without lines about refused copies: their only fault is that of the `cache`."""

    def concerns(line: surface.ScheduleLine | surface.MemoryLine) -> bool:
        return any(caches.means_refused(ref.name) for ref in _refs(line))

    if not caches.refused:
        return schedule, memory
    if schedule is not None:
        left = tuple(line for line in schedule.lines if not concerns(line))
        schedule = replace(schedule, lines=left)
    if memory is not None:
        rest = tuple(line for line in memory.lines if not concerns(line))
        memory = replace(memory, lines=rest)
    return schedule, memory


def _refs(line: surface.ScheduleLine | surface.MemoryLine) -> tuple[surface.Ref, ...]:
    match line:
        case surface.LoopsLine(stage=stage) | surface.WaveLine(stage=stage):
            return (stage,)
        case surface.PlaceLine(stages=stages, target=target):
            return (*stages, target)
        case surface.InlineLine(stages=stages):
            return stages
        case surface.LayoutLine(tensor=tensor):
            return (tensor,)
        case surface.PrefetchLine(tensors=tensors, target=target):
            return (*tensors, target)
        case surface.CacheLine() | surface.OptionLine():
            return ()


@dataclass(slots=True)
class TensorNames:
    """Looks up which tensor a line means, and whether the stage that it names reads it."""

    program: Program
    graph: Graph
    report: Report

    def read_by(self, stage: surface.Ref, ref: surface.Ref, name: str) -> Tensor | None:
        """The tensor ``name`` (written as ``ref``) if the stage reads it, None after an error."""
        if stage.name not in self.graph.places:
            unknown(rules.UNKNOWN_STAGE, "stage", stage, self.graph.places, self.report)
            return None
        read = {load.tensor.name: load.tensor for load in loads(self.graph.stage(stage.name).expr)}
        if name not in read:
            self._unread(ref, stage.name, name, list(read))
        return read.get(name)

    def _unread(self, ref: surface.Ref, stage: str, name: str, read: list[str]) -> None:
        tensors: dict[str, object] = {t.name: t for t in self.program.inputs}
        tensors |= {table.tensor.name: table for table in self.program.tables}
        tensors |= self.graph.places
        if name not in tensors:
            unknown(rules.UNKNOWN_TENSOR, "tensor", ref, tensors, self.report)
            return
        through = [n for n in read if n in self.graph.places and self._reads(n, name)]
        message = f"`{stage}` does not read `{ref.name}`"
        help = [f"`{through[0]}` does: name it as the stage"] if through else []
        listed = ", ".join(f"`{n}`" for n in read) or "nothing"
        self.report.error(rules.UNREAD, message, ref.span, [*help, f"it reads {listed}"])

    def _reads(self, stage: str, tensor: str) -> bool:
        return any(load.tensor.name == tensor for load in loads(self.graph.stage(stage).expr))


@dataclass(slots=True)
class _Reader:
    names: TensorNames
    groups: Mapping[str, tuple[str, ...]]
    requests: dict[tuple[str, str], Request] = field(default_factory=dict)
    lines: dict[tuple[str, str], tuple[surface.CacheLine, Span]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    def read(self, line: surface.CacheLine, item: surface.Cached) -> None:
        name, before = item.tensor.name, len(self.names.report.items)
        if _copied(name) in self.refused and name not in self.names.graph.places:
            self.refused.add(name)
            return
        self._read(line, item)
        if len(self.names.report.items) > before:
            self.refused.add(name)

    def _read(self, line: surface.CacheLine, item: surface.Cached) -> None:
        stage, name = line.target.name, item.tensor.name
        tensor = self.names.read_by(line.target, item.tensor, name)
        if tensor is None:
            return
        first = self.groups.get(stage, (stage,))[0]  # components of a reduction share a copy
        if name in self.groups.get(stage, (stage,)):
            message = f"`{stage}` reads itself: a copy of what it has not finished is no use"
            help = ["make what reads the history a stage of its own, and cache it there"]
            self.names.report.error(rules.OWN_HISTORY, message, item.span, help)
        elif (first, name) in self.requests:
            message = f"`{stage}` reads `{name}` through two caches"
            help = [f"keep one, or cache the copy again: `cache {name}.cache in ...`"]
            self.names.report.error(rules.REPEATED_CACHE, message, item.span, help)
        else:
            dtype = self._dtype(item, tensor)
            if dtype is not None:
                self.requests[first, name] = Request(first, name, dtype)
                self.lines[first, name] = (line, item.span)

    def taken_over(self, stage: str, name: str) -> None:
        """Reports a tensor of which nothing is left to copy."""
        _, span = self.lines[stage, name]
        message = f"`{stage}` reads `{name}` only for an index of what it has another copy of"
        help = [f"drop `{name}`: the stage that makes that copy reads it, once"]
        self.names.report.error(rules.UNREAD, message, span, help)
        self.refused.add(name)

    def _dtype(self, item: surface.Cached, tensor: Tensor) -> DType | None:
        dtype = item.dtype or tensor.dtype
        if holds(dtype, tensor.dtype):
            return dtype
        legal = ", ".join(d.value for d in DType if holds(d, tensor.dtype))
        message = f"{dtype.value} does not hold every {tensor.dtype.value} of `{tensor.name}`"
        self.names.report.error(rules.CACHE_DTYPE, message, item.span, [f"a copy may be {legal}"])
        return None
