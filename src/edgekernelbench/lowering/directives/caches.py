"""`cache` lines of a memory layer: which stage reads which tensor through a copy."""

from __future__ import annotations

from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class Caches:
    """The program with the copies, and where each is placed."""

    program: Program
    places: tuple[Placement, ...] = ()


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
    reader = _Reader(program, build_graph(program), report)
    for line in memory.lines if memory else ():
        if isinstance(line, surface.CacheLine):
            for item in line.tensors:
                reader.read(line, item)
    changed, made = add_caches(program, reader.requests.values(), names)
    places = tuple(
        Placement(made[pair], pair[0], line.loop, span)
        for pair, (line, span) in reader.lines.items()
    )
    return Caches(changed, places)


@dataclass(slots=True)
class _Reader:
    program: Program
    graph: Graph
    report: Report
    requests: dict[tuple[str, str], Request] = field(default_factory=dict)
    lines: dict[tuple[str, str], tuple[surface.CacheLine, Span]] = field(default_factory=dict)

    def read(self, line: surface.CacheLine, item: surface.Cached) -> None:
        stage, name = line.target.name, item.tensor.name
        if stage not in self.graph.places:
            unknown(rules.UNKNOWN_STAGE, "stage", line.target, self.graph.places, self.report)
            return
        read = {load.tensor.name: load.tensor for load in loads(self.graph.stage(stage).expr)}
        if name not in read:
            self._unread(item, stage, list(read))
        elif (stage, name) in self.requests:
            message = f"`{stage}` reads `{name}` through two caches"
            help = [f"keep one, or cache the copy again: `cache {name}.cache in ...`"]
            self.report.error(rules.REPEATED_CACHE, message, item.span, help)
        else:
            dtype = self._dtype(item, read[name])
            if dtype is not None:
                self.requests[stage, name] = Request(stage, name, dtype)
                self.lines[stage, name] = (line, item.span)

    def _unread(self, item: surface.Cached, stage: str, read: list[str]) -> None:
        name = item.tensor.name
        tensors = {t.name: t for t in (*self.program.inputs, *self.program.outputs)}
        tensors |= {n: place.stage.tensor for n, place in self.graph.places.items()}
        tensors |= {t.tensor.name: t.tensor for t in self.program.tables}
        if name not in tensors:
            unknown(rules.UNKNOWN_TENSOR, "tensor", item.tensor, tensors, self.report)
            return
        through = [n for n in self.graph.places if n.startswith(f"{stage}.") and self._has(n, name)]
        message = f"`{stage}` does not read `{name}`"
        help = [f"`{through[0]}` does: name it as the stage"] if through else []
        listed = ", ".join(f"`{n}`" for n in read) or "nothing"
        self.report.error(rules.UNREAD, message, item.span, [*help, f"it reads {listed}"])

    def _has(self, stage: str, tensor: str) -> bool:
        return any(load.tensor.name == tensor for load in loads(self.graph.stage(stage).expr))

    def _dtype(self, item: surface.Cached, tensor: Tensor) -> DType | None:
        dtype = item.dtype or tensor.dtype
        if holds(dtype, tensor.dtype):
            return dtype
        legal = ", ".join(d.value for d in DType if holds(d, tensor.dtype))
        message = f"{dtype.value} does not hold every {tensor.dtype.value} of `{tensor.name}`"
        self.report.error(rules.CACHE_DTYPE, message, item.span, [f"a copy may be {legal}"])
        return None
