"""The default rule for products on a GPU: tiles in shared memory and in registers.

A product is a sum over two tensors of which each has results' axes that the other one lacks: its
values are used again and again. A block computes a tile of the results; turn by turn it copies the
part of both factors that some terms need, and each thread takes a tile of registers. What only
finishes each result follows in the same registers. A device with more room than there are tiles
gets smaller ones, then several threads for the terms of a result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Program, Reduce, Stage, Var
from edgekernelbench.lowering.access import accesses, points
from edgekernelbench.lowering.directives.places import Placement
from edgekernelbench.lowering.expr.linear import is_index, linear
from edgekernelbench.lowering.expr.rewrite import Names, free_vars, loads
from edgekernelbench.lowering.gpu.defaults import FEW_RESULTS
from edgekernelbench.lowering.gpu.own import element_axes
from edgekernelbench.lowering.gpu.tiling import Tiling, choose_tiling
from edgekernelbench.lowering.graph import Graph, build_graph
from edgekernelbench.lowering.passes.caches import Request, add_caches
from edgekernelbench.lowering.plan import Layout, Nest, name_pieces, own_axes, reduce_axes
from edgekernelbench.targets.model import Gpu

MIN_POINTS = 1 << 20
"""Terms of all results, from which on tiles are worth their barriers."""

MIN_SIDE = 8
"""Times that a value must be used, at least."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """A program with the copies that its products read, and what becomes of both."""

    program: Program
    nests: Mapping[str, Nest] = field(default_factory=dict)
    places: Mapping[str, Placement] = field(default_factory=dict)
    caches: Mapping[str, str] = field(default_factory=dict)
    layouts: Mapping[str, Layout] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Product:
    """The factors of a product, and which axes of the results move in only one of them."""

    stage: Stage
    left: str
    right: str
    rows: tuple[Var, ...]
    columns: tuple[Var, ...]

    def reads(self, name: str) -> list[core.Load]:
        return [load for load in loads(self.stage.expr) if load.tensor.name == name]


def tile_products(program: Program, stated: Collection[str], gpu: Gpu, names: Names) -> Tiles:
    """Gives the products of a program that no line of a layer mentions a nest in tiles."""
    graph = build_graph(program)
    found: dict[str, tuple[Product, Tiling]] = {}
    for name, place in graph.places.items():
        product = None if name in stated or place.loops else find_product(place.stage)
        tiling = product and choose_tiling(product, gpu)
        if product is not None and tiling is not None:
            found[name] = product, tiling
    if not found:
        return Tiles(program)
    requests = [
        Request(name, tensor, load.tensor.dtype)
        for name, (product, _) in found.items()
        for tensor in (product.left, product.right)
        for load in product.reads(tensor)[:1]
    ]
    copied, made = add_caches(program, requests, names)
    with_copies = build_graph(copied)
    nests: dict[str, Nest] = {}
    places: dict[str, Placement] = {}
    layouts: dict[str, Layout] = {}
    for name, (product, tiling) in found.items():
        pieces = name_pieces(tiling.parts)
        nests[name] = Nest(pieces)
        span, turn = product.stage.span, pieces[tiling.turn].name
        for tensor, inner in ((product.left, product.rows), (product.right, product.columns)):
            copy = made[name, tensor]
            places[copy] = Placement(copy, name, turn, span)
            layouts[copy] = _across(with_copies, name, copy, inner)
        last = _epilogue(with_copies, name, stated, places)
        if last is not None:
            places[last] = Placement(last, name, pieces[tiling.blocks - 1].name, span)
    caches = {copy: name for (name, _), copy in made.items()}
    return Tiles(copied, nests, places, caches, layouts)


def find_product(stage: Stage) -> Product | None:
    """The product that a stage is, if there is enough work for tiles to pay."""
    reduce, own = stage.expr, own_axes(stage)
    if not isinstance(reduce, Reduce) or reduce.combiner is not None or reduce.where is not None:
        return None
    if reduce.more or not all(axis.is_constant for axis in reduce.axes):
        return None
    if prod(own.values()) <= FEW_RESULTS or points(stage) < MIN_POINTS:
        return None
    moving: dict[str, set[Var]] = {}
    for access in accesses(stage):
        if not _is_affine(access.load, stage):
            return None
        axes = {axis for axis, stride in access.strides.items() if stride != "fixed"}
        moving[access.load.tensor.name] = moving.get(access.load.tensor.name, set()) | axes
    summed = [name for name, axes in moving.items() if axes & set(reduce_axes(stage))]
    for left, right in permutations(summed, 2):
        rows = tuple(v for v in own if v in moving[left] and v not in moving[right])
        columns = tuple(v for v in own if v in moving[right] and v not in moving[left])
        sides = [prod(own[v] for v in side) for side in (rows, columns)]
        if rows and columns and min(sides) >= MIN_SIDE and stage.name not in (left, right):
            return Product(stage, left, right, rows, columns)
    return None


def _is_affine(load: core.Load, stage: Stage) -> bool:
    """Whether the part of a tensor that a tile needs is known: no data in its indices, and no axis
    in anything but a sum of multiples."""
    axes = {*own_axes(stage), *reduce_axes(stage)}
    for index in load.indices:
        if any(isinstance(node, core.Load) for node in core.walk(index)) or not is_index(index):
            return False
        for atom in linear(index).terms:
            if not isinstance(atom, core.VarRef) or atom.var not in axes:
                return False
    return True


def _across(graph: Graph, name: str, copy: str, inner: tuple[Var, ...]) -> Layout:
    """The layout in which neighbours along the results' last axis are neighbours."""
    stage = graph.stage(copy)
    (load, *_) = [x for x in loads(graph.stage(name).expr) if x.tensor.name == copy]
    dims = [d for d, index in enumerate(load.indices) if inner[-1] in free_vars(index)]
    order = [d for d in range(len(stage.lhs)) if d not in dims] + dims
    index = tuple(core.VarRef(stage.lhs[d]) for d in order)
    return Layout(stage.lhs, index, tuple(stage.tensor.shape[d] for d in order))


def _epilogue(
    graph: Graph, name: str, stated: Collection[str], places: Mapping[str, Placement]
) -> str | None:
    """The stage that finishes each result of a product, if nothing else reads them, and it may take
    them from registers: not where they are rounded first."""
    readers, stage = graph.readers(name), graph.stage(name)
    if len(readers) != 1 or graph.is_kept(name) or stage.expr.dtype is not stage.tensor.dtype:
        return None
    (last,) = readers
    place = graph.places[last]
    if last in stated or last in places or place.loops or isinstance(place.stage.expr, Reduce):
        return None
    axes = element_axes(place.stage, stage)
    return last if axes is not None and len(axes) == len(own_axes(place.stage)) else None
