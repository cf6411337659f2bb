"""What a schedule can name: the stages of a program, their axes, reads and consumers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from edgekernelbench.ir.core import Program
from edgekernelbench.lowering.access import Stride, accesses, work
from edgekernelbench.lowering.expr.rewrite import Names
from edgekernelbench.lowering.graph import Graph, build_graph
from edgekernelbench.lowering.normalize import normalize
from edgekernelbench.lowering.passes.constants import constant_stages
from edgekernelbench.lowering.passes.pads import materialise_pads
from edgekernelbench.lowering.plan import own_axes, reduce_axes


@dataclass(frozen=True, slots=True)
class ReadInfo:
    """One read: the tensor's name, and how the address moves along each axis of the stage."""

    tensor: str
    strides: Mapping[str, Stride]


@dataclass(frozen=True, slots=True)
class StageInfo:
    """A stage as schedules see it (reductions inside expressions are stages of their own).

    Attributes:
        spatial: own axes with their extents, in order.
        reduction: reduction axes with their extents; for a ragged one its largest.
        ragged: the reduction axes whose range is not constant.
        consumers: stages that read it, in program order.
        producers: stages that it reads in its own iteration.
        loops: kinds and names of the ``seq`` and ``each`` loops around it, from outside in.
        kept: the whole tensor exists in any case (an output, or read in other iterations).
        constant: computed before the timed call unless it is placed or inlined.
        work: weighted operations of one computation of the stage.
    """

    name: str
    kind: Literal["map", "reduce"]
    spatial: tuple[tuple[str, int], ...]
    reduction: tuple[tuple[str, int], ...]
    ragged: tuple[str, ...]
    reads: tuple[ReadInfo, ...]
    consumers: tuple[str, ...]
    producers: tuple[str, ...]
    loops: tuple[tuple[str, str], ...]
    kept: bool
    constant: bool
    work: int

    @property
    def in_loop(self) -> bool:
        return bool(self.loops)


def stage_infos(program: Program) -> list[StageInfo]:
    """The stages of a verified program in program order, padded copies (``S.pad``) included.

    Raises:
        NormalizeError: see `edgekernelbench.lowering.normalize`.
    """
    program = normalize(program)
    program = materialise_pads(program, Names(program.next_uid))
    graph = build_graph(program)
    constant = constant_stages(program, ())
    return [_info(graph, name, name in constant) for name in graph.places]


def _info(graph: Graph, name: str, constant: bool) -> StageInfo:
    place = graph.places[name]
    stage, inner = place.stage, reduce_axes(place.stage)
    reads = tuple(
        ReadInfo(access.load.tensor.name, {v.name: s for v, s in access.strides.items()})
        for access in accesses(stage)
    )
    return StageInfo(
        name=name,
        kind="reduce" if inner else "map",
        spatial=tuple((v.name, n) for v, n in own_axes(stage).items()),
        reduction=tuple((v.name, a.extent) for v, a in inner.items()),
        ragged=tuple(v.name for v, a in inner.items() if not a.is_constant),
        reads=reads,
        consumers=graph.readers(name),
        producers=graph.producers(name),
        loops=tuple((loop.kind, loop.var.name) for loop in place.loops),
        kept=graph.is_kept(name),
        constant=constant,
        work=work(stage),
    )
