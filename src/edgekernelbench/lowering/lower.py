"""The lowering: a program and the layers of its kernel become a loop program.

Phases, each of which keeps the results of the compute layer:

1. reductions get stages of their own (`normalize`);
2. border reads inside reductions become padded copies;
3. memory layer: caches become copy stages; inputs with a layout get a copy stage in front;
4. schedule layer: names are resolved, `inline` is carried out;
5. dot products get the kinds of bytes that the target's instructions take;
6. stages that read only constants move into ``prepack``; cheap stages are inlined by rule;
7. `loops` and `place` become a plan, default rules fill the rest;
8. the plan is emitted.

All that is wrong with the layers is reported together, as far as a phase can still be reached.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Program, Tensor, Var
from edgekernelbench.ir.diagnostics import Diagnostic, Report, Span
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.directives.caches import (
    TensorNames,
    cached_pairs,
    resolve_caches,
    without_refused,
)
from edgekernelbench.lowering.directives.gpu import check_doubled, read_doubled, refuse_on_gpu
from edgekernelbench.lowering.directives.options import resolve_options
from edgekernelbench.lowering.directives.places import PlaceChecker, nest_note, resolve_loops
from edgekernelbench.lowering.directives.prefetches import (
    Wish,
    read_prefetches,
    resolve_prefetches,
)
from edgekernelbench.lowering.directives.resolve import (
    ScheduleLines,
    read_schedule,
    resolve_layouts,
    resolve_nests,
    select_layers,
)
from edgekernelbench.lowering.directives.threads import check_levels
from edgekernelbench.lowering.directives.values import Numbers
from edgekernelbench.lowering.directives.waves import check_waves, resolve_waves
from edgekernelbench.lowering.dots.bias import fit_products, operand_names
from edgekernelbench.lowering.emit.body import BodyEmitter
from edgekernelbench.lowering.emit.buffers import plan_buffers
from edgekernelbench.lowering.emit.context import Context, Storage
from edgekernelbench.lowering.emit.lanes import native_lanes
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.expr.rewrite import Names, loads
from edgekernelbench.lowering.facts import workspace_bytes
from edgekernelbench.lowering.gpu.body import DeviceBody
from edgekernelbench.lowering.gpu.buffers import plan_device_buffers
from edgekernelbench.lowering.gpu.device import Device
from edgekernelbench.lowering.gpu.modes import loop_modes, stage_levels
from edgekernelbench.lowering.gpu.products import tile_products
from edgekernelbench.lowering.graph import build_graph
from edgekernelbench.lowering.nest import Function, Module
from edgekernelbench.lowering.normalize import NormalizeError, normalize
from edgekernelbench.lowering.options import Options
from edgekernelbench.lowering.passes.constants import (
    Split,
    add_packed_copies,
    constant_stages,
    split_constants,
)
from edgekernelbench.lowering.passes.inline import TooLarge, cheap_stages, inline_stages
from edgekernelbench.lowering.passes.pads import materialise_pads
from edgekernelbench.lowering.passes.waves import keep_by_diagonals
from edgekernelbench.lowering.plan import Layout, Nest, Plan, Wave
from edgekernelbench.lowering.planner import parallel_loops, plan_stages
from edgekernelbench.lowering.sketch import sketch
from edgekernelbench.lowering.together import joined
from edgekernelbench.targets.model import Target

RECURSION = 20_000


@dataclass(frozen=True, slots=True)
class LowerResult:
    """A module, or the errors that say why there is none (warnings may come with one)."""

    module: Module | None
    diagnostics: tuple[Diagnostic, ...] = ()


def lower(kernel: Kernel, program: Program, target: Target) -> LowerResult:
    """Applies the schedule and memory layers of ``kernel`` that hold for ``target``.

    Args:
        kernel: the file as written; a hole that is left counts as its first choice.
        program: ``kernel`` elaborated and verified, on the sizes to build for.
    """
    report = Report()
    with _room():
        module = _Lowering(kernel, target, report).run(program)
    return LowerResult(None if report.has_errors else module, report.sorted())


@contextmanager
def _room() -> Iterator[None]:
    """Room for recursion over the deepest expressions and nests that the passes let through."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@dataclass(slots=True)
class _Lowering:
    kernel: Kernel
    target: Target
    report: Report
    options: Options = Options()
    waves: Mapping[Var, Wave] = field(default_factory=dict)
    doubled: Mapping[str, Span] = field(default_factory=dict)

    def run(self, program: Program) -> Module | None:
        try:
            program = normalize(program)
        except NormalizeError as error:
            self.report.error(rules.NORMALISE, str(error), None)
            return None
        schedule, memory = select_layers(self.kernel, self.target)
        if self.target.gpu is not None:
            refuse_on_gpu(schedule, memory, self.report)
            if self.report.has_errors:
                return None
        numbers = Numbers(dict(program.sizes), self.report)
        self.options = resolve_options(schedule, self.target, numbers, self.report)
        self.target = self.options.applied(self.target)
        names = Names(program.next_uid)
        if self.target.gpu is None:
            lanes = native_lanes(self.target)
            program = materialise_pads(program, names, cached_pairs(memory), lanes)
        caches = resolve_caches(memory, program, names, self.report)
        schedule, memory = without_refused(caches, schedule, memory)
        program = caches.program
        graph = build_graph(program)
        layouts = resolve_layouts(memory, program, graph, numbers, names, self.report)
        inputs = {t.name for t in program.inputs}
        program = add_packed_copies(program, {n: v for n, v in layouts.items() if n in inputs})
        layouts = {f"{n}.packed" if n in inputs else n: v for n, v in layouts.items()}
        graph = build_graph(program)
        known = TensorNames(program, graph, self.report)
        packed = {n for n in inputs if f"{n}.packed" in layouts}
        wishes: tuple[Wish, ...] = ()
        if self.target.gpu is None:
            wishes = read_prefetches(memory, known, packed, numbers, self.report)
        else:
            self.doubled = read_doubled(memory, caches, numbers, self.report)
        lines = read_schedule(schedule, program, graph, self.report, caches.places, wishes)
        self.waves = resolve_waves(lines.waves, program, graph, numbers, self.report)
        program, rows = fit_products(program, lines.loops, lines.places, self.target, names)
        return self._planned(program, lines, {**layouts, **rows}, numbers, names)

    def _planned(
        self,
        program: Program,
        lines: ScheduleLines,
        layouts: dict[str, Layout],
        numbers: Numbers,
        names: Names,
    ) -> Module | None:
        try:
            program = inline_stages(program, set(lines.inlined), names)
            constant = constant_stages(program, layouts) - set(lines.places)
            constant -= lines.targets
            split = split_constants(program, closed(program, constant))
            graph = build_graph(split.main)
            kept = {*lines.mentioned, *layouts, *operand_names(graph, lines.loops)}
            cheap = cheap_stages(graph, kept)
            main = inline_stages(split.main, cheap, names)
            main = keep_by_diagonals(main, self.waves.values())
            nests: Mapping[str, Nest] = {}
            if self.target.gpu is not None:
                stated = {*lines.mentioned, *lines.caches.values(), *layouts}
                tiles = tile_products(main, stated, self.target.gpu, names)
                main, nests, layouts = tiles.program, tiles.nests, {**layouts, **tiles.layouts}
                lines = lines.with_placed(tiles.places, tiles.caches)
        except TooLarge as error:
            span = next(iter(lines.inlined.values()), None)
            message = f"`{error.stage}` becomes too large an expression"
            self.report.error(rules.TOO_LARGE, message, span, ["inline fewer stages"])
            return None
        plan = self._plan(main, lines, layouts, numbers, nests)
        before = None
        if split.before is not None:
            before = self._plan(split.before, lines, layouts, numbers, {})
        if self.report.has_errors or plan is None:
            return None
        return self._emitted(Split(split.before, main, split.packed), plan, before, lines, names)

    def _plan(
        self,
        program: Program,
        lines: ScheduleLines,
        layouts: dict[str, Layout],
        numbers: Numbers,
        chosen: Mapping[str, Nest],
    ) -> Plan | None:
        """The plan of a function; rules have ``chosen`` nests that come with copies."""
        graph = build_graph(program)
        gpu = self.target.gpu
        nests = resolve_nests(lines, graph, numbers, self.report, self.options, gpu)
        broken = lines.loops.keys() - nests.keys()
        nests |= chosen
        places = [p for p in lines.places.values() if p.stage in graph.places]
        placed = {p.stage: (p.target, p.loop) for p in places if p.target in graph.places}
        modes = loop_modes(program.body, stated=nests) if gpu is not None else {}
        levels = stage_levels(graph, modes) if gpu is not None else None
        stages = plan_stages(graph, nests, placed, lines.targets, self.target, levels)
        attach = resolve_loops(places, stages, broken, graph, self.report)
        here = {loop.var for place in graph.places.values() for loop in place.loops}
        waves = {var: wave for var, wave in self.waves.items() if var in here}
        parallel = frozenset[Var]()
        if gpu is None:
            parallel = parallel_loops(graph, stages, self.target, waves)
        mine = {name: layout for name, layout in layouts.items() if name in graph.places}
        plan = Plan(graph, stages, attach, mine, parallel, modes, caches=lines.caches, waves=waves)
        plan = joined(plan)
        ahead = resolve_prefetches(lines.wishes, plan, broken, self.report)
        plan = replace(plan, ahead=ahead)
        check_waves(plan, self.report)
        if gpu is not None:
            plan = replace(plan, doubled=frozenset(self.doubled))
            check_levels(plan, levels or {}, lines.spans, self.report)
            check_doubled(plan, levels or {}, self.doubled, self.report)
        if not self.report.has_errors:
            PlaceChecker(plan, lines.spans, self.report).run()
        return plan

    # ---------------------------------------------------------- emission
    def _emitted(
        self, split: Split, plan: Plan, before: Plan | None, lines: ScheduleLines, names: Names
    ) -> Module | None:
        packed: dict[str, Storage] = {}
        prepack: Function | None = None
        if split.before is not None and before is not None:
            packed = {t.name: packed_storage(t, before) for t in split.packed}
            buffers = tuple(packed[t.name].buffer for t in split.packed)
            params = (*read_inputs(split.before), *buffers)
            prepack = self._function("prepack", before, split.before, params, packed, lines, names)
        buffers = tuple(storage.buffer for storage in packed.values())
        outputs = split.main.outputs
        params = (*main_params(split.main, buffers), *outputs)
        main = self._function("main", plan, split.main, params, packed, lines, names)
        if self.report.has_errors:
            return None
        bytes_used = workspace_bytes(main, self.target.threads)
        return Module(main, prepack, buffers, bytes_used, sketch(main), self.options)

    def _function(
        self,
        label: str,
        plan: Plan,
        program: Program,
        params: tuple[Tensor, ...],
        packed: dict[str, Storage],
        lines: ScheduleLines,
        names: Names,
    ) -> Function:
        tree = Tree.of(plan)
        ctx = Context(plan, self.target, names)
        ctx.storages.update(packed)
        ctx.taken.update({tensor.name: 1 for tensor in params})
        given = frozenset(packed) | {t.name for t in program.outputs}
        if self.target.gpu is None:
            emitter = BodyEmitter(ctx, tree, plan_buffers(plan, tree, given))
        else:
            ctx.device = Device(self.target.gpu)
            room = self.target.gpu.shared_bytes // 2  # the rest is for tiles
            emitter = DeviceBody(ctx, tree, plan_device_buffers(plan, tree, given, room))
        body = emitter.run(program.body)
        for problem in ctx.problems.values():
            span = problem.span or lines.spans.get(problem.stage)
            place = plan.attach.get(problem.stage)
            notes = [] if place is None else [nest_note(plan.stages[place.target])]
            self.report.error(problem.rule, problem.message, span, [problem.help], notes)
        return Function(label, params, body)


def closed(program: Program, constant: set[str]) -> set[str]:
    """The constant stages whose constant producers are all computed before the call, too."""
    found: set[str] = set()
    stages = {stage.name: stage for _, stage in core.stages(program.body)}
    for name, stage in stages.items():
        inner = {load.tensor.name for load in loads(stage.expr)} & stages.keys()
        if name in constant and inner <= found:
            found.add(name)
    return found


def packed_storage(tensor: Tensor, plan: Plan) -> Storage:
    """How a packed tensor is stored, for the function that fills it and the one that reads it."""
    stage, layout = plan.graph.stage(tensor.name), plan.layouts.get(tensor.name)
    if layout is None:
        index = tuple(core.VarRef(var) for var in stage.lhs)
        return Storage(tensor, stage.lhs, index)
    buffer = Tensor(tensor.name, tensor.dtype, layout.shape, "stage")
    return Storage(buffer, layout.formals, layout.index)


def read_inputs(program: Program) -> tuple[Tensor, ...]:
    """The constants, then the tables, that a program reads."""
    read = {load.tensor.name for _, s in core.stages(program.body) for load in loads(s.expr)}
    consts = tuple(t for t in program.inputs if t.const and t.name in read)
    return (*consts, *(t.tensor for t in program.tables if t.tensor.name in read))


def main_params(program: Program, packed: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Parameters of ``main`` without its outputs."""
    inputs = tuple(t for t in program.inputs if not t.const)
    raw = read_inputs(program)
    consts = tuple(t for t in raw if t.kind == "input")
    return (*inputs, *consts, *packed, *(t for t in raw if t.kind == "table"))
