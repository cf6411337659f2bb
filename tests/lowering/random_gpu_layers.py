"""Random schedule and memory layers of GPUs for a program: often legal, often nearly so."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from edgekernelbench.ir import surface
from edgekernelbench.ir.core import Program, Reduce, Stage
from edgekernelbench.ir.diagnostics import Report
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.surface import CacheLine, LayoutLine, LoopsLine, Name, Num, Piece, Ref
from edgekernelbench.lowering.directives.caches import Caches, resolve_caches
from edgekernelbench.lowering.expr.rewrite import Names, loads
from edgekernelbench.lowering.graph import Graph, build_graph
from edgekernelbench.lowering.normalize import normalize
from edgekernelbench.lowering.passes.caches import holds
from edgekernelbench.lowering.passes.inline import refusal
from edgekernelbench.lowering.together import siblings

from .random_layers import (
    _axes,
    _choose_places,
    _in_order,
    _landing,
    _loop_names,
    _ragged,
    _random_layouts,
)

_STEPS = (1, 2, 3, 4, 5, 7, 8, 16, 32)
_BLOCK, _TEAM, _THREAD, _OWN = range(4)
"""Phases of a nest: blocks, what all threads take together, threads, what is inside of one."""


def random_gpu_layers(
    program: Program, rng: random.Random
) -> tuple[surface.ScheduleLayer, surface.MemoryLayer]:
    target: surface.TargetName = "gpu" if rng.random() < 0.75 else "opencl"
    normal = normalize(program)
    graph = build_graph(normal)
    placed, kin = _choose_places(graph, rng), siblings(graph)
    for name, group in kin.items():
        if rng.random() < 0.8:  # components of one reduction are placed together
            placed.pop(name, None)
            if group[0] in placed and placed[group[0]] not in group:
                placed[name] = placed[group[0]]
    nests = _nests(graph, rng, placed)
    lines: list[surface.ScheduleLine] = [LoopsLine(Ref(n), tuple(p)) for n, p in nests.items()]
    lines += _places(graph, rng, placed, nests)
    loose = [n for n in graph.places if n not in placed and n not in nests]
    loose = [n for n in loose if refusal(graph, n) is None or rng.random() < 0.1]
    if loose and rng.random() < 0.2:
        lines.append(surface.InlineLine((Ref(rng.choice(loose)),)))
    memory = _Memory(normal, graph, rng)
    memory.copies(nests)
    lines += memory.loops
    rng.shuffle(lines)
    layouts = _random_layouts(program, graph, rng) if rng.random() < 0.5 else ()
    memory.lines += layouts
    return (
        surface.ScheduleLayer(target, tuple(lines)),
        surface.MemoryLayer(target, tuple(memory.lines)),
    )


def _nests(graph: Graph, rng: random.Random, placed: dict[str, str]) -> dict[str, list[Piece]]:
    kin = siblings(graph)
    out: dict[str, list[Piece]] = {}
    for name in graph.places:
        if any(other in out for other in kin.get(name, ())) and rng.random() < 0.8:
            continue  # the nest of one component holds for all
        if rng.random() < 0.6 or name in placed.values():
            nest = random_gpu_nest(graph.stage(name), rng, name in placed)
            if nest:  # a scalar stage has no loops
                out[name] = nest
    return out


def _places(
    graph: Graph, rng: random.Random, placed: dict[str, str], nests: dict[str, list[Piece]]
) -> list[surface.PlaceLine]:
    """All into one loop of a target, most often: such a loop as they have a chance in."""
    kin = siblings(graph)
    common: dict[str, str] = {}
    out = []
    for name, target in placed.items():
        nest = next((nests[n] for n in (target, *kin.get(target, ())) if n in nests), None)
        loops = _loop_names(graph.stage(target), nest)
        if loops:
            first = common.setdefault(target, rng.choice(loops[: rng.choice([1, 2, 9])]))
            loop = first if rng.random() < 0.8 else rng.choice(loops)
            out.append(surface.PlaceLine((Ref(name),), Ref(target), loop))
    return out


# ---------------------------------------------------------------- nests
def random_gpu_nest(stage: Stage, rng: random.Random, placed: bool) -> list[Piece]:
    """Split axes in blocks, threads and loops between and inside; now and then in disorder."""
    kinds = {name: reduction for name, _, reduction in _axes(stage)}
    ragged = _ragged(stage)
    pool: list[tuple[str, int, int]] = []
    for name, extent, reduction in _axes(stage):
        steps = _steps(extent, rng)
        phases = sorted(_phase(rng, placed, reduction, name in ragged) for _ in (*steps, 0))
        pool += [(name, step, phase) for step, phase in zip((*steps, 0), phases, strict=True)]
    rng.shuffle(pool)
    if rng.random() < 0.9:
        pool.sort(key=lambda piece: piece[2])
    order = _in_order([(name, step) for name, step, _ in pool])
    marked = [
        Piece(_mark(phase, rng), name, Num(step) if step else None)
        for (name, step), (_, _, phase) in zip(order, pool, strict=True)
    ]
    if isinstance(stage.expr, Reduce) and marked:
        marked = _landing(stage, marked, kinds, rng)
    return marked


def _steps(extent: int, rng: random.Random) -> list[int]:
    """Falling steps; seldom one as large as the axis or larger."""
    out, left = [], extent
    while left > 1 and rng.random() < 0.5:
        most = left if rng.random() < 0.9 else left + 2
        left = rng.choice([s for s in _STEPS if s < most] or [1])
        out.append(left)
    return sorted(out, reverse=True)


def _phase(rng: random.Random, placed: bool, reduction: bool, ragged: bool) -> int:
    if ragged and rng.random() < 0.97:
        return rng.choice((_TEAM, _OWN, _OWN))
    if reduction:
        first = () if placed else (_BLOCK,)
        return rng.choice((*first, _TEAM, _TEAM, _THREAD, _OWN, _OWN, _OWN, _OWN))
    if placed and rng.random() < 0.97:
        return rng.choice((_TEAM, _THREAD, _THREAD, _OWN))
    return rng.choice((_BLOCK, _BLOCK, _TEAM, _THREAD, _THREAD, _OWN))


def _mark(phase: int, rng: random.Random) -> surface.Annotation | None:
    match phase:
        case 0:
            return "block"
        case 1:
            return rng.choice([None, None, None, "unroll"])
        case 2:
            return "thread"
    return rng.choice([None, None, "unroll", "unroll", "vectorize"])


# ---------------------------------------------------------------- memory
@dataclass(slots=True)
class _Memory:
    """Copies of what stages read, with layouts, loops and prefetches of their own."""

    program: Program
    graph: Graph
    rng: random.Random
    lines: list[surface.MemoryLine] = field(default_factory=list)
    loops: list[LoopsLine] = field(default_factory=list)

    def copies(self, nests: dict[str, list[Piece]]) -> None:
        wish = self.rng.choice([0.0, 0.3, 0.8])
        for name, nest in nests.items():
            for tensor in {x.tensor.name: x.tensor for x in loads(self.graph.stage(name).expr)}:
                if self.rng.random() < wish:
                    self._copy(name, tensor, nest)
        caches = self._resolved()
        for (_, tensor), copy in caches.made.items():
            stage = build_graph(caches.program).stage(copy)
            self._dress(copy, tensor, stage)

    def _copy(self, stage: str, tensor: str, nest: list[Piece]) -> None:
        rng = self.rng
        loops = _loop_names(self.graph.stage(stage), nest)
        if not loops:
            return
        loop = rng.choice(loops)
        dtype = self._wider(stage, tensor) if rng.random() < 0.2 else None
        self.lines.append(CacheLine((surface.Cached(Ref(tensor), dtype),), Ref(stage), loop))
        if rng.random() < 0.35:
            ahead = Num(1 if rng.random() < 0.95 else 2)
            self.lines.append(surface.PrefetchLine((Ref(tensor),), Ref(stage), loop, ahead))

    def _wider(self, stage: str, tensor: str) -> DType:
        found = next(
            x.tensor.dtype for x in loads(self.graph.stage(stage).expr) if x.tensor.name == tensor
        )
        return self.rng.choice([d for d in DType if holds(d, found)])

    def _resolved(self) -> Caches:
        """With the stages that the lines make, for their names and axes."""
        layer = surface.MemoryLayer("gpu", tuple(self.lines))
        return resolve_caches(layer, self.program, Names(self.program.next_uid), Report())

    def _dress(self, copy: str, tensor: str, stage: Stage) -> None:
        rng = self.rng
        axes = tuple(f"d{k}" for k in range(len(stage.tensor.shape)))
        if axes and rng.random() < 0.3:
            order = list(axes)
            rng.shuffle(order)
            self.lines.append(LayoutLine(Ref(copy), axes, tuple(Name(a) for a in order)))
        if rng.random() < 0.25:
            nest = random_gpu_nest(stage, rng, True)
            if nest:
                self.loops.append(LoopsLine(Ref(copy), tuple(nest)))
