"""A kernel's stages as kernels of their own, so that each can be looked at alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from edgekernelbench.ir import core
from edgekernelbench.ir import surface as s
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.edit import with_layers
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.ir.restate import restate
from edgekernelbench.lowering.directives.resolve import select_layers
from edgekernelbench.lowering.expr.rewrite import Names, loads
from edgekernelbench.lowering.graph import build_graph, map_stages, reduction
from edgekernelbench.lowering.normalize import normalize
from edgekernelbench.lowering.passes.constants import constant_stages, redirect, split_constants
from edgekernelbench.lowering.passes.inline import cheap_stages, inline_stages
from edgekernelbench.targets.model import Target


@dataclass(frozen=True, slots=True)
class Unit:
    """One statement of a compute layer (a stage, or a loop with all that is in it) by itself.

    Attributes:
        stages: names of its stages in the kernel it was cut from.
        program: what the unit reads is input, what others read of it is output. Names are plain.
        names: what the inputs and outputs are called in the kernel it was cut from.
        text: a kernel without schedule and memory layers, empty if the unit cannot be one.
        authored: the same under the author's lines for these stages; empty if there are none.
        reason: why it cannot be a kernel.
    """

    stages: tuple[str, ...]
    program: core.Program
    names: Mapping[str, str]
    text: str
    authored: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Cut:
    """The units in program order. ``flow``: yields all values that pass between them."""

    units: tuple[Unit, ...]
    flow: core.Program


def cut(kernel: s.Kernel, program: core.Program, target: Target) -> Cut:
    """Cuts a verified program where the lowering sees separate stages.

    What is computed before the timed call is part of no unit, and stages that the default rules
    inline belong to their readers unless the author says something of them.
    """
    program = normalize(program)
    schedule, memory = select_layers(kernel, target)
    constant = constant_stages(program, ())
    main = split_constants(program, constant).main
    mentioned = set(_mentioned(schedule, memory))
    inlined = set(_inlined(schedule)) | cheap_stages(build_graph(main), mentioned)
    main = inline_stages(main, inlined, Names(program.next_uid))
    consts = constant | {t.name for t in program.inputs if t.const}
    units: list[Unit] = []
    passed: dict[str, core.Tensor] = {t.name: t for t in program.outputs}
    for number, node in enumerate(main.body):
        later = {load.tensor.name for other in main.body[number + 1 :] for load in _loads(other)}
        alone = _alone(node, main, later, consts)
        units.append(_unit(alone, schedule, memory))
        stages = {stage.tensor.name: stage.tensor for _, stage in core.stages(program.body)}
        passed |= {t.name: stages[t.name] for t in alone.inputs if t.name in stages}
    return Cut(tuple(units), replace(program, outputs=tuple(passed.values())))


def _loads(node: core.Node) -> Iterator[core.Load]:
    for _, stage in core.stages((node,)):
        yield from loads(stage.expr)


def _alone(
    node: core.Node, main: core.Program, later: Collection[str], consts: Collection[str]
) -> core.Program:
    """The program of one statement."""
    tables = {table.tensor.name: table for table in main.tables}
    written = {stage.tensor.name: stage.tensor for _, stage in core.stages((node,))}
    read = {load.tensor.name: load.tensor for load in _loads(node)}
    inputs = {
        name: core.Tensor(name, t.dtype, t.shape, "input", name in consts)
        for name, t in read.items()
        if name not in written and name not in tables
    }
    outputs = {
        name: core.Tensor(name, t.dtype, t.shape, "output")
        for name, t in written.items()
        if name in later or t.kind == "output"
    }
    tensors = inputs | outputs
    change: dict[str, tuple[core.Node, ...]] = {}
    for _, stage in core.stages((node,)):
        tensor = tensors.get(stage.tensor.name, stage.tensor)
        expr = redirect(stage.expr, tensors)
        change[stage.name] = (replace(stage, tensor=tensor, expr=expr),)
    return core.Program(
        re.sub(r"\W", "_", next(iter(outputs))),
        main.sizes,
        tuple(inputs.values()),
        tuple(outputs.values()),
        tuple(table for name, table in tables.items() if name in read),
        map_stages((node,), change),
        main.next_uid,
    )


def _unit(
    alone: core.Program,
    schedule: s.ScheduleLayer | None,
    memory: s.MemoryLayer | None,
) -> Unit:
    stages = tuple(stage.name for _, stage in core.stages(alone.body))
    try:
        restated = restate(alone)
    except ValueError as error:
        return Unit(stages, alone, {}, "", "", str(error))
    text = print_kernel(restated.kernel)
    checked = check_text(text)
    if checked.program is None:
        first = next((d.message for d in checked.diagnostics), "it does not verify")
        return Unit(stages, alone, {}, "", "", first)
    carrier = _Carrier(alone, checked.program, restated.names)
    authored = carrier.text(restated.kernel, schedule, memory)
    names = {plain: name for name, plain in restated.names.items()}
    return Unit(stages, checked.program, names, text, authored)


# ---------------------------------------------------------------- the author's lines
def _mentioned(schedule: s.ScheduleLayer | None, memory: s.MemoryLayer | None) -> Iterator[str]:
    for line in schedule.lines if schedule else ():
        match line:
            case s.LoopsLine():
                yield line.stage.name
            case s.PlaceLine():
                yield line.target.name
                yield from (ref.name for ref in line.stages)
            case _:
                pass
    for line in memory.lines if memory else ():
        if isinstance(line, s.LayoutLine):
            yield line.tensor.name


def _inlined(schedule: s.ScheduleLayer | None) -> Iterator[str]:
    for line in schedule.lines if schedule else ():
        if isinstance(line, s.InlineLine):
            yield from (ref.name for ref in line.stages)


@dataclass(frozen=True, slots=True)
class _Carrier:
    """Carries lines from a program to its restatement, whose axes have other names."""

    program: core.Program
    restated: core.Program
    names: Mapping[str, str]

    def text(
        self, kernel: s.Kernel, schedule: s.ScheduleLayer | None, memory: s.MemoryLayer | None
    ) -> str:
        """The kernel under those lines that speak of nothing else; empty if there are none.

        The layout of what was a stage and is an input here would be a copy in each call.
        """
        lines = [line for old in (schedule.lines if schedule else ()) for line in self._line(old)]
        ports = (*self.program.inputs, *self.program.outputs)
        free = self.names.keys() - {t.name for t in ports if not t.const}
        layouts = tuple(
            replace(line, tensor=self._ref(line.tensor))
            for line in (memory.lines if memory else ())
            if isinstance(line, s.LayoutLine) and line.tensor.name in free
        )
        if not lines and not layouts:
            return ""
        sizes = tuple(s.Size(name, s.Num(value)) for name, value in self.program.sizes)
        layers = with_layers(
            replace(kernel, sizes=sizes),
            schedules=(s.ScheduleLayer("cpu", tuple(lines)),) if lines else (),
            memories=(s.MemoryLayer("cpu", layouts),) if layouts else (),
        )
        return print_kernel(layers)

    def _line(self, line: s.ScheduleLine) -> Iterator[s.ScheduleLine]:
        mine = {stage.name for _, stage in core.stages(self.program.body)}
        if isinstance(line, s.LoopsLine) and line.stage.name in mine:
            axes = self._axes(line.stage.name)
            pieces = tuple(replace(p, axis=axes.get(p.axis, p.axis)) for p in line.pieces)
            yield replace(line, stage=self._ref(line.stage), pieces=pieces)
        elif isinstance(line, s.WaveLine) and line.stage.name in mine:
            loops = self._loops(line.stage.name)
            pieces = tuple(replace(p, axis=loops.get(p.axis, p.axis)) for p in line.pieces)
            yield replace(line, stage=self._ref(line.stage), pieces=pieces)
        elif isinstance(line, s.PlaceLine) and line.target.name in mine:
            kept = tuple(self._ref(ref) for ref in line.stages if ref.name in mine)
            if kept:
                loop = self._loop(line.target.name, line.loop)
                yield replace(line, stages=kept, target=self._ref(line.target), loop=loop)

    def _ref(self, ref: s.Ref) -> s.Ref:
        return replace(ref, name=self.names[ref.name])

    def _axes(self, stage: str) -> dict[str, str]:
        """The author's names of a stage's axes, each with the one in the restatement."""
        old, new = _axes(self.program, stage), _axes(self.restated, self.names[stage])
        return dict(zip(old, new, strict=True))

    def _loops(self, stage: str) -> dict[str, str]:
        """The author's names of the loops around a stage, each with that in the restatement."""
        old, new = _around(self.program, stage), _around(self.restated, self.names[stage])
        return dict(zip(old, new, strict=True))

    def _loop(self, stage: str, loop: str) -> str:
        """``j0`` under the new name of ``j``."""
        for axis, new in self._axes(stage).items():
            rest = loop.removeprefix(axis)
            if loop.startswith(axis) and (not rest or rest.isdigit()):
                return new + rest
        return loop


def _around(program: core.Program, name: str) -> list[str]:
    """Names of the loops around a stage, from outside in."""
    found = next(loops for loops, stage in core.stages(program.body) if stage.name == name)
    return [loop.var.name for loop in found]


def _axes(program: core.Program, name: str) -> list[str]:
    """Names of a stage's own axes and of those of its reduction, in order."""
    stage = next(stage for _, stage in core.stages(program.body) if stage.name == name)
    reduce = reduction(stage)
    summed = () if reduce is None else reduce.axes
    return [axis.var.name for axis in (*stage.axes, *summed)]
