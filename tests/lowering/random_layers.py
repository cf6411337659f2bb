"""Random schedule and memory layers for a program: often legal, often nearly so."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

from edgekernelbench.ir import surface
from edgekernelbench.ir.core import Loop, Program, Reduce, Stage, VarRef
from edgekernelbench.ir.surface import LayoutLine, LoopsLine, Name, Num, Piece, PlaceLine, Ref
from edgekernelbench.lowering.dots import product
from edgekernelbench.lowering.graph import Graph, build_graph
from edgekernelbench.lowering.normalize import normalize
from edgekernelbench.lowering.passes.inline import refusal
from edgekernelbench.lowering.passes.scatter import scatters
from edgekernelbench.lowering.together import siblings


def random_layers(
    program: Program, rng: random.Random
) -> tuple[surface.ScheduleLayer, surface.MemoryLayer]:
    graph = build_graph(normalize(program))
    names = list(graph.places)
    lines: list[surface.ScheduleLine] = []
    nests: dict[str, list[Piece]] = {}
    placed, kin = _choose_places(graph, rng), siblings(graph)
    for name, group in kin.items():
        if rng.random() < 0.7:  # components of one reduction are placed together
            placed.pop(name, None)
            if group[0] in placed and placed[group[0]] not in group:
                placed[name] = placed[group[0]]
    for name in names:
        if any(other in nests for other in kin.get(name, ())) and rng.random() < 0.7:
            continue  # the nest of one component holds for all
        if rng.random() < 0.75 or name in placed.values():
            nest = random_nest(graph.stage(name), rng, name in placed)
            if nest:  # a scalar stage has no loops
                nests[name] = nest
                lines.append(LoopsLine(Ref(name), tuple(nest)))
    for name, target in placed.items():
        nest = next((nests[n] for n in (target, *kin.get(target, ())) if n in nests), None)
        loops = _loop_names(graph.stage(target), nest)
        if loops:
            lines.append(PlaceLine((Ref(name),), Ref(target), rng.choice(loops)))
    loose = [n for n in names if n not in placed and n not in nests]
    loose = [n for n in loose if refusal(graph, n) is None or rng.random() < 0.1]
    if loose and rng.random() < 0.3:
        lines.append(surface.InlineLine((Ref(rng.choice(loose)),)))
    lines += _random_waves(graph, rng)
    rng.shuffle(lines)
    layouts = {line.tensor.name: line for line in _random_layouts(program, graph, rng)}
    layouts |= {line.tensor.name: line for line in _quads(graph, nests, rng)}
    return surface.ScheduleLayer("cpu", tuple(lines)), surface.MemoryLayer(
        "cpu", tuple(layouts.values())
    )


def _random_waves(graph: Graph, rng: random.Random) -> list[surface.WaveLine]:
    """For pairs of nested loops, most often of ``seq`` loops one alone in the other."""
    lines: list[surface.WaveLine] = []
    seen: set[str] = set()
    for name, place in graph.places.items():
        pairs = list(pairwise(place.loops))
        rng.shuffle(pairs)
        for outer, inner in pairs:
            fits = outer.kind == inner.kind == "seq" and outer.body == (inner,)
            both = {outer.var.name, inner.var.name}
            if len(both) == 2 and not seen & both and rng.random() < (0.8 if fits else 0.01):
                lines.append(surface.WaveLine(Ref(name), _wave(outer, inner, rng)))
                seen |= both
    return lines


def _wave(outer: Loop, inner: Loop, rng: random.Random) -> tuple[Piece, ...]:
    """The pieces of a wave in one of its forms; seldom in none."""
    names = [outer.var.name, inner.var.name]
    last = list(names)
    steps = [rng.choice([1, 2, 3, 4, 5, 8, 16]) for _ in names]
    if rng.random() < 0.5:
        steps[1] = steps[0]
    counts = (outer.hi - outer.lo, inner.hi - inner.lo)
    steps = [
        min(step, max(1, n)) if rng.random() < 0.97 else step
        for step, n in zip(steps, counts, strict=True)
    ]
    plain = all(isinstance(x, Stage) and not _axes(x) for x in inner.body)
    tiled, lanes = rng.random() < 0.6, rng.random() < (0.6 if plain else 0.05)
    if lanes and rng.random() < 0.5:
        last.reverse()
    threads = rng.random() < (0.6 if tiled else 0.2 if lanes else 0.4)
    out = [Piece(None, name, None) for name in last]
    if lanes:
        out[-1] = Piece("vectorize", last[-1], None)
    if tiled:
        first = [Piece(None, name, Num(step)) for name, step in zip(names, steps, strict=True)]
        out = [*(first if rng.random() < 0.7 else first[::-1]), *out]
    if threads:
        out[0] = Piece("parallel", out[0].axis, out[0].step)
    return tuple(out)


def _choose_places(graph: Graph, rng: random.Random) -> dict[str, str]:
    """Producers into a reader, or consumers into a producer; seldom nonsense."""
    placed: dict[str, str] = {}
    wish = rng.choice([0.0, 0.4, 0.8, 1.0])
    forward = rng.random() < 0.6
    for name in graph.places:
        if rng.random() > wish:
            continue
        readers, producers = graph.readers(name), graph.producers(name)
        options = list(readers if forward else producers)
        if rng.random() < 0.15:
            options = [*readers, *producers]
        if rng.random() < 0.05:
            options = list(graph.places)
        same = [n for n in options if graph.places[n].body == graph.places[name].body]
        options = same if rng.random() < 0.9 else options
        if options:
            placed[name] = rng.choice(options)
    return placed


def _axes(stage: Stage) -> list[tuple[str, int, bool]]:
    out = [(a.var.name, a.extent, False) for a in stage.axes]
    if isinstance(stage.expr, Reduce):
        out += [(a.var.name, a.extent, True) for a in stage.expr.axes]
    return out


def random_nest(stage: Stage, rng: random.Random, placed: bool) -> list[Piece]:
    """A permutation of split axes with annotations."""
    axes = _axes(stage)
    kinds = {name: reduction for name, _, reduction in axes}
    pool: list[tuple[str, int]] = []
    for name, extent, _ in axes:
        left = extent
        while left > 1 and rng.random() < 0.45:
            left = rng.choice([s for s in (2, 3, 4, 5, 7, 8, 16) if s < left] or [1])
            pool.append((name, left))
        pool.append((name, 0))
    if rng.random() < 0.6:
        pool.sort(key=lambda p: (kinds[p[0]], rng.random()))  # spatial loops outside
    else:
        rng.shuffle(pool)
    reductions = [k for k, (name, _) in enumerate(pool) if kinds[name]]
    if reductions and rng.random() < 0.25:  # outermost, so that it may be parallel
        pool.insert(0, pool.pop(rng.choice(reductions)))
    nest = _annotated(_in_order(pool), kinds, rng, placed, _ragged(stage))
    return _dotted(stage, _landing(stage, nest, kinds, rng), rng)


def _dotted(stage: Stage, nest: list[Piece], rng: random.Random) -> list[Piece]:
    """Most products of bytes by fours, seldom another stage."""
    if rng.random() < (0.99 if product.refusal(stage) is not None else 0.2):
        return nest
    own = [axis.var.name for axis in stage.axes]
    inner = [name for name, extent, reduction in _axes(stage) if reduction and extent >= 4]
    if not own or not inner:
        return nest
    lane, axis = own[-1] if rng.random() < 0.9 else rng.choice(own), rng.choice(inner)
    rest = [p for p in nest if p.axis != axis and (p.axis != lane or p.step is not None)]
    rest = [replace(p, annotation=None) if p.annotation == "vectorize" else p for p in rest]
    step = Num(4 if rng.random() < 0.99 else 8)
    threads = sum(piece.annotation == "parallel" for piece in rest)
    rest.insert(rng.randint(threads, len(rest)), Piece(None, axis, step))
    return [*rest, Piece("vectorize", lane, None), Piece("dot4", axis, None)]


def _quads(graph: Graph, nests: dict[str, list[Piece]], rng: random.Random) -> list[LayoutLine]:
    """Layouts that dot products want of what moves along their lanes."""
    out: dict[str, LayoutLine] = {}
    for name, nest in nests.items():
        reduce = graph.stage(name).expr
        found = product.factors(reduce) if isinstance(reduce, Reduce) else None
        if found is None or nest[-1].annotation != "dot4":
            continue
        lane, axis = nest[-2].axis, nest[-1].axis
        for load in (side.load for side in found):
            dims = [i.var.name if isinstance(i, VarRef) else "" for i in load.indices]
            if not {lane, axis} <= set(dims) or not all(dims) or load.tensor.kind == "output":
                continue
            tile = Num(rng.choice([2, 4, 8, 16]))
            rest: list[surface.Expr] = [Name(d) for d in dims if d not in (lane, axis)]
            cut = [(lane, tile), (axis, Num(4))]
            outer = [surface.Binary("//", Name(d), n) for d, n in cut]
            inner = [surface.Binary("%", Name(d), n) for d, n in cut]
            target = (outer[0], *rest, outer[1], *inner)
            out[load.tensor.name] = LayoutLine(Ref(load.tensor.name), tuple(dims), target)
    return list(out.values())


def _landing(
    stage: Stage, nest: list[Piece], kinds: dict[str, bool], rng: random.Random
) -> list[Piece]:
    """Now and then the nest of a scatter: one axis has no loops, elements land along it."""
    able = list(scatters(stage))
    if not able or rng.random() < 0.3:
        return nest
    axis = rng.choice(able).name
    nest = [piece for piece in nest if piece.axis != axis]
    last = max(k for k, piece in enumerate(nest) if kinds[piece.axis])
    at = rng.randint(last + 1, len(nest)) if rng.random() < 0.9 else rng.randint(0, len(nest))
    if nest[-1].annotation == "vectorize" and kinds[nest[-1].axis] and rng.random() < 0.9:
        nest[-1] = Piece(None, nest[-1].axis, None)
    nest.insert(at, Piece("scatter", axis, None))
    return nest


def _ragged(stage: Stage) -> set[str]:
    if not isinstance(stage.expr, Reduce):
        return set()
    return {a.var.name for a in stage.expr.axes if not a.is_constant}


def _in_order(pool: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Steps of each axis from large to small, keeping the places of the axis in the nest."""
    steps: dict[str, list[int]] = {}
    for name, step in pool:
        steps.setdefault(name, []).append(step)
    for found in steps.values():
        found.sort(key=lambda s: -s if s else 1)
    return [(name, steps[name].pop(0)) for name, _ in pool]


def _annotated(
    pool: list[tuple[str, int]],
    kinds: dict[str, bool],
    rng: random.Random,
    placed: bool,
    ragged: set[str],
) -> list[Piece]:
    vector = rng.random() < 0.7
    if vector and pool:  # some last piece becomes the innermost loop
        at = rng.choice([k for k, (_, step) in enumerate(pool) if step == 0])
        pool = [*pool[:at], *pool[at + 1 :], pool[at]]
    parallel = 0 if placed or rng.random() < 0.4 else rng.randint(1, 2)
    out: list[Piece] = []
    inside = False
    for k, (name, step) in enumerate(pool):
        mark: surface.Annotation | None = None
        inside = inside or kinds[name]
        if vector and k == len(pool) - 1:
            mark = "vectorize"
        elif k < parallel and (not kinds[name] or rng.random() < 0.8):
            mark = "parallel"
        elif name not in ragged and rng.random() < (0.5 if inside else 0.15):
            mark = "unroll"
        out.append(Piece(mark, name, Num(step) if step else None))
    return out


def _loop_names(stage: Stage, nest: list[Piece] | None) -> list[str]:
    if nest is None:
        return [name for name, _, _ in _axes(stage)]
    counts: dict[str, int] = {}
    out = []
    for piece in nest[:-1] if nest[-1].annotation == "vectorize" else nest:
        if piece.annotation in ("scatter", "dot4"):
            continue
        several = sum(p.axis == piece.axis for p in nest) > 1
        rank = counts.get(piece.axis, 0)
        counts[piece.axis] = rank + 1
        out.append(f"{piece.axis}{rank}" if several else piece.axis)
    return out


def _random_layouts(program: Program, graph: Graph, rng: random.Random) -> tuple[LayoutLine, ...]:
    tensors = [*program.inputs, *(p.stage.tensor for p in graph.places.values())]
    lines = []
    for tensor in tensors:
        if not tensor.shape or tensor.kind == "output" or rng.random() > 0.3:
            continue
        axes = tuple(f"d{k}" for k in range(len(tensor.shape)))
        order = list(axes)
        rng.shuffle(order)
        target: list[surface.Expr] = [Name(a) for a in order]
        if rng.random() < 0.6:
            axis, tile = rng.choice(axes), rng.choice([2, 3, 4, 8])
            at = order.index(axis)
            target[at] = surface.Binary("//", Name(axis), Num(tile))
            target.append(surface.Binary("%", Name(axis), Num(tile)))
        lines.append(LayoutLine(Ref(tensor.name), axes, tuple(target)))
    return tuple(lines)
