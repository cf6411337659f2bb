"""All lines of the layers that apply to a target, resolved against the stages of a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.core import Program, Tensor
from edgekernelbench.ir.diagnostics import Report, Span
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.directives.layouts import LayoutResolver
from edgekernelbench.lowering.directives.loops import LoopsResolver
from edgekernelbench.lowering.directives.names import unknown
from edgekernelbench.lowering.directives.places import Placement
from edgekernelbench.lowering.directives.prefetches import Wish
from edgekernelbench.lowering.directives.values import Numbers
from edgekernelbench.lowering.expr.rewrite import Names
from edgekernelbench.lowering.graph import Graph
from edgekernelbench.lowering.options import Options
from edgekernelbench.lowering.passes.inline import refusal
from edgekernelbench.lowering.plan import Layout, Nest
from edgekernelbench.targets.model import Gpu, Target


def select_layers(
    kernel: surface.Kernel, target: Target
) -> tuple[surface.ScheduleLayer | None, surface.MemoryLayer | None]:
    """The layers for a target: the backend's own replaces that of its class."""
    schedule = memory = None
    for name in reversed(target.section_names):
        schedule = next((s for s in kernel.schedules if s.target == name), schedule)
        memory = next((m for m in kernel.memories if m.target == name), memory)
    return schedule, memory


def resolve_layouts(
    memory: surface.MemoryLayer | None,
    program: Program,
    graph: Graph,
    numbers: Numbers,
    names: Names,
    report: Report,
) -> dict[str, Layout]:
    """Layouts by tensor name (inputs and stages)."""
    resolver = LayoutResolver(numbers, names, report)
    tensors: dict[str, Tensor] = {t.name: t for t in program.inputs}
    tensors |= {name: place.stage.tensor for name, place in graph.places.items()}
    out: dict[str, Layout] = {}
    seen: set[str] = set()
    for line in memory.lines if memory else ():
        if not isinstance(line, surface.LayoutLine):
            continue
        name = line.tensor.name
        if name not in tensors:
            unknown(rules.UNKNOWN_TENSOR, "tensor", line.tensor, tensors, report)
        elif name in seen:
            message = f"`{name}` has two layouts"
            report.error(rules.REPEATED_LAYOUT, message, line.span, ["keep one"])
        elif tensors[name].kind == "output":
            message = f"`{name}` is an output: its layout is fixed"
            help = [f"give the stage before it a layout, and copy it into `{name}` at the end"]
            report.error(rules.OUTPUT_LAYOUT, message, line.span, help)
        else:
            layout = resolver.resolve(line, tensors[name])
            if layout is not None:
                out[name] = layout
        seen.add(name)
    return out


@dataclass(slots=True)
class ScheduleLines:
    """The lines of a schedule by stage, with their names checked.

    Attributes:
        loops: `loops` lines.
        places: placed stages.
        inlined: stages that are substituted away, with the place in the text.
        waves: `wave` lines of known stages.
        caches: copies that the memory layer places, with the stage that reads each.
        wishes: prefetches.
        spans: the line that decides each stage, for later findings.
    """

    loops: dict[str, surface.LoopsLine] = field(default_factory=dict)
    places: dict[str, Placement] = field(default_factory=dict)
    inlined: dict[str, Span] = field(default_factory=dict)
    waves: list[surface.WaveLine] = field(default_factory=list)
    caches: dict[str, str] = field(default_factory=dict)
    wishes: tuple[Wish, ...] = ()

    @property
    def mentioned(self) -> set[str]:
        """Stages that default rules leave alone."""
        fetched = {name for wish in self.wishes for name in (wish.stage, wish.tensor)}
        return {*self.loops, *self.places, *self.inlined, *self.targets, *fetched}

    @property
    def targets(self) -> set[str]:
        """Stages in whose loops something else happens."""
        targets = {place.target for place in self.places.values()}
        return targets | {wish.stage for wish in self.wishes}

    def with_placed(
        self, places: Mapping[str, Placement], caches: Mapping[str, str]
    ) -> ScheduleLines:
        """The same with stages that rules place, copies among them."""
        return replace(self, places={**self.places, **places}, caches={**self.caches, **caches})

    @property
    def spans(self) -> dict[str, Span]:
        found = {name: line.span for name, line in self.loops.items()}
        return {**found, **{name: place.span for name, place in self.places.items()}}


def read_schedule(
    schedule: surface.ScheduleLayer | None,
    program: Program,
    graph: Graph,
    report: Report,
    caches: Iterable[Placement] = (),
    wishes: tuple[Wish, ...] = (),
) -> ScheduleLines:
    """Sorts the lines of a schedule by stage; ``caches`` are placed by the memory layer."""
    places = {place.stage: place for place in caches}
    readers = {name: place.target for name, place in places.items()}
    lines = ScheduleLines(places=places, caches=readers, wishes=wishes)
    return _Reader(program, graph, report, lines).read(schedule)


@dataclass(slots=True)
class _Reader:
    program: Program
    graph: Graph
    report: Report
    lines: ScheduleLines

    def read(self, schedule: surface.ScheduleLayer | None) -> ScheduleLines:
        for line in schedule.lines if schedule else ():
            match line:
                case surface.LoopsLine():
                    self._loops(line)
                case surface.WaveLine() if self._known(line.stage):
                    self.lines.waves.append(line)
                case surface.PlaceLine():
                    for ref in line.stages:
                        self._place(ref, line)
                case surface.InlineLine():
                    for ref in line.stages:
                        self._inline(ref)
        for name in self.lines.inlined:
            if name in self.lines.loops:
                message = f"`{name}` is inlined: it has no nest of its own"
                span = self.lines.loops[name].span
                self.report.error(rules.REPEATED, message, span, ["drop one of the two lines"])
        for place in list(self.lines.places.values()):
            if place.target in self.lines.inlined:
                message = f"`{place.target}` is inlined: it has no loop to place `{place.stage}` in"
                self.report.error(rules.NO_TARGET, message, place.span, ["drop one of the lines"])
                del self.lines.places[place.stage]
        for wish in self.lines.wishes:
            for name in {wish.stage, wish.tensor} & self.lines.inlined.keys():
                message = f"`{name}` is inlined: there is nothing to fetch ahead"
                self.report.error(rules.NO_TARGET, message, wish.span, ["drop one of the lines"])
        return self.lines

    def _known(self, ref: surface.Ref) -> bool:
        if ref.name in self.graph.places:
            return True
        if any(t.name == ref.name for t in self.program.inputs):
            message = f"`{ref.name}` is an input: only stages are computed"
            self.report.error(rules.UNKNOWN_STAGE, message, ref.span)
            return False
        unknown(rules.UNKNOWN_STAGE, "stage", ref, self.graph.places, self.report)
        return False

    def _loops(self, line: surface.LoopsLine) -> None:
        name = line.stage.name
        if not self._known(line.stage):
            return
        if name in self.lines.loops:
            message = f"`{name}` has two `loops` lines"
            self.report.error(rules.REPEATED, message, line.span, ["keep one"])
            return
        self.lines.loops[name] = line

    def _free(self, ref: surface.Ref) -> bool:
        if ref.name in self.lines.places or ref.name in self.lines.inlined:
            message = f"`{ref.name}` is placed or inlined twice"
            self.report.error(rules.REPEATED, message, ref.span, ["keep one line"])
            return False
        return True

    def _place(self, ref: surface.Ref, line: surface.PlaceLine) -> None:
        known = self._known(ref) and self._known(line.target)
        if known and ref.name == line.target.name:
            message = f"`{ref.name}` is placed in itself"
            self.report.error(rules.NO_TARGET, message, ref.span, ["name another stage's loop"])
        elif known and self._free(ref):
            place = Placement(ref.name, line.target.name, line.loop, ref.span)
            self.lines.places[ref.name] = place

    def _inline(self, ref: surface.Ref) -> None:
        if not self._known(ref) or not self._free(ref):
            return
        reason = refusal(self.graph, ref.name)
        if reason is not None:
            help = [f"`place {ref.name} in ...` computes it next to its reader"]
            self.report.error(rules.INLINE, f"{reason}", ref.span, help)
            return
        self.lines.inlined[ref.name] = ref.span


def resolve_nests(
    lines: ScheduleLines,
    graph: Graph,
    numbers: Numbers,
    report: Report,
    options: Options,
    gpu: Gpu | None = None,
) -> dict[str, Nest]:
    """The nests of the stages that have a `loops` line."""
    out: dict[str, Nest] = {}
    for name, line in lines.loops.items():
        if name not in graph.places:
            continue
        stage = graph.stage(name)
        hoisted = tuple(hoisted_names(graph, name))
        placed, limit = name in lines.places, options.unroll_limit
        resolver = LoopsResolver(stage, numbers, report, placed, hoisted, limit, gpu)
        nest = resolver.resolve(line)
        if nest is not None:
            out[name] = nest
    return out


def hoisted_names(graph: Graph, name: str) -> list[str]:
    """Stages that the reductions inside ``name`` became: ``Y.sum``, ``Y.sum1``."""
    out: list[str] = []
    for other, place in graph.places.items():
        reduce = place.stage.expr
        if isinstance(reduce, core.Reduce) and other.startswith(f"{name}.{reduce.label}"):
            out.append(other)
    return out
