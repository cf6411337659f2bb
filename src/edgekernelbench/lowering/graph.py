"""Who reads whom in a program: the facts every later decision rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Loop, Program, Stage, Var
from edgekernelbench.lowering.expr.rewrite import loads


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stage stands: its enclosing loops from outside in, and its rank in program order."""

    stage: Stage
    loops: tuple[Loop, ...]
    rank: int

    @property
    def body(self) -> tuple[Var, ...]:
        """Identifies the loop body the stage is a member of."""
        return tuple(loop.var for loop in self.loops)


@dataclass(frozen=True, slots=True)
class Read:
    """One `Load` of a stage's tensor. ``current``: of the element's own loop iteration."""

    reader: str
    load: core.Load
    current: bool
    same_body: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """Stages by name in program order, and for each stage the reads of its tensor."""

    program: Program
    places: Mapping[str, Place]
    reads: Mapping[str, tuple[Read, ...]]

    def stage(self, name: str) -> Stage:
        return self.places[name].stage

    def is_output(self, name: str) -> bool:
        return self.places[name].stage.tensor.kind == "output"

    def is_kept(self, name: str) -> bool:
        """Whether the whole tensor must exist: an output, or read outside its own iteration."""
        return self.is_output(name) or any(
            not (read.current and read.same_body) for read in self.reads[name]
        )

    def readers(self, name: str) -> tuple[str, ...]:
        """Names of the stages that read it, each once, in program order."""
        return tuple(dict.fromkeys(read.reader for read in self.reads[name]))

    def producers(self, name: str) -> tuple[str, ...]:
        """Names of the stages whose element of the same iteration this stage reads."""
        found = (
            load.tensor.name
            for load in loads(self.stage(name).expr)
            if load.tensor.name in self.places
            and is_current(self.places[load.tensor.name], self.places[name], load)
        )
        return tuple(dict.fromkeys(found))


def build_graph(program: Program) -> Graph:
    places: dict[str, Place] = {}
    for rank, (loops, stage) in enumerate(core.stages(program.body)):
        places[stage.name] = Place(stage, loops, rank)
    reads: dict[str, list[Read]] = {name: [] for name in places}
    for name, place in places.items():
        for load in loads(place.stage.expr):
            source = places.get(load.tensor.name)
            if source is not None:
                current = is_current(source, place, load)
                read = Read(name, load, current, source.body == place.body)
                reads[load.tensor.name].append(read)
    return Graph(program, places, {name: tuple(found) for name, found in reads.items()})


def is_current(source: Place, reader: Place, load: core.Load) -> bool:
    """Whether the load reads what ``source`` wrote in the very same iteration of all its loops."""
    if reader.body[: len(source.body)] != source.body:
        return False
    own = {axis.var for axis in source.stage.axes}
    return all(
        isinstance(index, core.VarRef) and index.var == var
        for var, index in zip(source.stage.lhs, load.indices, strict=True)
        if var not in own
    )


def reduction(stage: Stage) -> core.Reduce | None:
    """The top-level reduction of a normalised stage."""
    return stage.expr if isinstance(stage.expr, core.Reduce) else None


def axis_ranges(place: Place) -> dict[Var, tuple[int, int]]:
    """Ranges of all variables a stage's expression may use, lets excepted."""
    out = {loop.var: (loop.lo, max(loop.lo, loop.hi - 1)) for loop in place.loops}
    for axis in place.stage.axes:
        out[axis.var] = (0, max(0, axis.extent - 1))
    for node in core.walk(place.stage.expr):
        if isinstance(node, core.Reduce):
            for axis in node.axes:
                out[axis.var] = (0, max(0, axis.extent - 1))
    return out


def map_stages(
    nodes: tuple[core.Node, ...], change: Mapping[str, tuple[core.Node, ...]]
) -> tuple[core.Node, ...]:
    """The body with stages replaced by other nodes (none: removed); empty loops vanish."""
    return tuple(_mapped(nodes, change))


def _mapped(
    nodes: tuple[core.Node, ...], change: Mapping[str, tuple[core.Node, ...]]
) -> Iterator[core.Node]:
    for node in nodes:
        if isinstance(node, Stage):
            yield from change.get(node.name, (node,))
        else:
            body = map_stages(node.body, change)
            if body:
                yield Loop(node.kind, node.var, node.lo, node.hi, node.reverse, body, node.span)
