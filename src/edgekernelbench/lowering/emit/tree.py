"""Stages computed inside the loops of others: which belong together, where their tiles live, and
which part of each is needed inside a given loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Stage, Var
from edgekernelbench.lowering.emit.boxes import Box, Span, image, union, whole, within
from edgekernelbench.lowering.expr.linear import Ranges, const_value, linear, to_expr
from edgekernelbench.lowering.expr.ranges import range_of
from edgekernelbench.lowering.expr.rewrite import loads
from edgekernelbench.lowering.expr.simplify import simplify, split_linear
from edgekernelbench.lowering.graph import Graph, is_current
from edgekernelbench.lowering.passes.total import total
from edgekernelbench.lowering.plan import Attach, Plan, extents_of, own_axes, reduce_axes

_INNERMOST = 1 << 20

Path = tuple[tuple[str, int], ...]


class Unfit(ValueError):
    """A placed consumer cannot be computed tile by tile. The message names the read."""


@dataclass(slots=True)
class Tree:
    """The placed stages of a plan. ``together``: stages that another one computes, by name."""

    graph: Graph
    attach: dict[str, Attach]
    children: dict[str, list[str]] = field(default_factory=dict)
    homes: dict[str, Attach | None] = field(default_factory=dict)
    together: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> Tree:
        tree = cls(plan.graph, dict(plan.attach), together=dict(plan.together))
        for name in sorted(plan.attach, key=lambda n: plan.graph.places[n].rank):
            tree.children.setdefault(plan.attach[name].target, []).append(name)
        for name in plan.stages:
            tree.homes[name] = tree._home(name)
        return tree

    def path(self, name: str) -> Path:
        """The loops around a placed stage, from outside in, by (stage, depth)."""
        out: list[tuple[str, int]] = []
        while name in self.attach:
            place = self.attach[name]
            out.append((place.target, place.depth))
            name = place.target
        return tuple(reversed(out))

    def root(self, name: str) -> str:
        while name in self.attach:
            name = self.attach[name].target
        return name

    def led_by(self, name: str) -> list[str]:
        """The further components that the stage may compute with its own."""
        return [other for other, leader in self.together.items() if leader == name]

    def group(self, name: str) -> list[str]:
        """The stage and those that it may compute with its own."""
        return [name, *self.led_by(name)]

    def members(self, root: str) -> list[str]:
        """The stage and everything computed with it or inside it, in program order."""
        out = {*self.group(root), *self.below(root, 0)}
        return sorted(out, key=lambda n: self.graph.places[n].rank)

    def below(self, target: str, depth: int) -> Iterator[str]:
        """Stages computed in loop ``depth`` of ``target`` or further inside."""
        for name in self.children.get(target, ()):
            if self.attach[name].depth >= depth:
                yield name
                yield from self.below(name, 0)

    def _home(self, name: str) -> Attach | None:
        """The innermost loop around the stage and all its readers; None: kept in full."""
        if self.graph.is_kept(name):
            return None
        readers = self.graph.readers(name)
        if not readers:  # computed in vain, but somewhere
            return Attach(*self.path(name)[-1]) if self.path(name) else None
        common = self._whereabouts(name)
        for reader in readers:
            common = _common(common, self._whereabouts(reader))
        return Attach(*common[-1]) if common else None

    def _whereabouts(self, name: str) -> Path:
        """The loops around the innermost statement of a stage."""
        return (*self.path(name), (self.together.get(name, name), _INNERMOST))

    # ---------------------------------------------------------- boxes
    def boxes(
        self, target: str, depth: int, box: Box, ranges: Ranges
    ) -> tuple[dict[str, Box], dict[str, str]]:
        """The part of every stage below (target, depth) that is computed there.

        Args:
            box: of ``target``, inside that loop.

        Returns:
            the boxes, and for each consumer that does not read tile by tile what is wrong (its
            box is the whole stage then).
        """
        names = sorted(set(self.below(target, depth)), key=lambda n: self.graph.places[n].rank)
        found = {
            name: self._full(name, self.alike(box, target, name)) for name in self.group(target)
        }
        unfit: dict[str, str] = {}
        for name in self._consumers(target, names):
            try:
                found[name] = self._consumed(name, found, ranges)
            except Unfit as reason:
                unfit[name] = str(reason)
                axes = own_axes(self.graph.stage(name))
                found[name] = self._full(name, {v: whole(n) for v, n in axes.items()})
        group = self.group(target)
        inside = {*group, *names}
        here = {*group, *(n for n in names if self.attach[n] == Attach(target, depth))}
        for name in reversed(names):
            if name not in found:
                box = self._needed(name, [*names, *group], found, ranges)
                found[name] = self._early(name, box, inside, here)
            if self.children.get(name):
                box = self._early(name, self._united(name, found, ranges), inside, here)
                found |= {other: self.alike(box, name, other) for other in self.group(name)}
        return found, unfit

    def _united(self, leader: str, found: dict[str, Box], ranges: Ranges) -> Box:
        """One box for all components of a reduction: what is placed inside serves them all."""
        box = found[leader]
        for name in self.led_by(leader):
            other = self.alike(found[name], name, leader)
            joint = {axis: union(box[axis], other[axis], ranges) for axis in box}
            extents = extents_of(self.graph.stage(leader))
            box = {axis: span or whole(extents[axis]) for axis, span in joint.items()}
        return box

    def alike(self, box: Box, source: str, name: str) -> Box:
        """A box of one component of a reduction as that of another one."""
        if source == name:
            return box
        pairs = zip(
            extents_of(self.graph.stage(source)), extents_of(self.graph.stage(name)), strict=True
        )
        return {other: box[axis] for axis, other in pairs if axis in box}

    def _early(self, name: str, box: Box, inside: set[str], here: set[str]) -> Box:
        """The box, whole along axes whose first value is read from a stage that is computed
        inside the same loop, but not before ``name``.

        Args:
            inside: the stages computed in the loop.
            here: those of them that no further loop is around.
        """
        rank = self.graph.places[name].rank
        extents = own_axes(self.graph.stage(name))

        def late(span: Span) -> bool:
            read = {load.tensor.name for load in loads(span.base)} & inside
            return any(n not in here or self.graph.places[n].rank > rank for n in read)

        return {
            var: whole(extents[var]) if var in extents and late(span) else span
            for var, span in box.items()
        }

    def _full(self, name: str, box: Box) -> Box:
        """A box with the reduction axes that it does not mention, whole."""
        missing = {v: whole(a.extent) for v, a in self._reduce_axes(name).items() if v not in box}
        return {**box, **missing}

    def _reduce_axes(self, name: str) -> dict[Var, core.ReduceAxis]:
        return reduce_axes(self.graph.stage(name))

    def _consumers(self, target: str, names: Iterable[str]) -> list[str]:
        """The stages that read ``target`` directly or through each other, in program order."""
        dependent = set(self.group(target))
        out: list[str] = []
        for name in names:
            if any(producer in dependent for producer in self.graph.producers(name)):
                dependent.add(name)
                out.append(name)
        return out

    def consumes(self, target: str, name: str) -> bool:
        """Whether a stage below ``target`` reads it, directly or through others there."""
        names = sorted(self.below(target, 0), key=lambda n: self.graph.places[n].rank)
        return name in self._consumers(target, names)

    def _consumed(self, name: str, known: dict[str, Box], ranges: Ranges) -> Box:
        stage = self.graph.stage(name)
        box: dict[Var, Span] = {}
        for source, dim, index, span in self._tile_reads(name, known):
            size = self.graph.stage(source).tensor.shape[dim]
            found = invert(index, span, size, own_axes(stage), self._reduce_axes(name), ranges)
            if found is None:
                if span.is_whole(size):
                    continue
                raise Unfit(_misfit(name, source, dim))
            axis, part = found
            if axis in box and box[axis] != part:
                raise Unfit(f"`{name}` reads `{source}` in two different tiles")
            box[axis] = part
        full = {var: box.get(var, whole(extent)) for var, extent in own_axes(stage).items()}
        return self._full(name, full)

    def _tile_reads(
        self, name: str, known: dict[str, Box]
    ) -> Iterator[tuple[str, int, Expr, Span]]:
        """(stage, dimension, index, span there) for every read of a stage with a known box."""
        place = self.graph.places[name]
        for load in loads(place.stage.expr):
            source = load.tensor.name
            if source not in known or not is_current(self.graph.places[source], place, load):
                continue
            for dim, var in enumerate(self.graph.stage(source).lhs):
                if var in known[source]:
                    yield source, dim, load.indices[dim], known[source][var]

    def _needed(self, name: str, readers: list[str], known: dict[str, Box], ranges: Ranges) -> Box:
        stage, place = self.graph.stage(name), self.graph.places[name]
        spans: dict[Var, Span | None] = {}
        late = self._nest_of(name)
        for reader in readers:
            for load in loads(self.graph.stage(reader).expr):
                if load.tensor.name != name or reader not in known:
                    continue
                if is_current(place, self.graph.places[reader], load):
                    extents = extents_of(self.graph.stage(reader))
                    _cover(stage, load, known[reader], extents, spans, ranges, late)
        box = {
            var: within(spans[var], extent, ranges) if var in spans else whole(extent)
            for var, extent in own_axes(stage).items()
        }
        return self._full(name, box)

    def _nest_of(self, name: str) -> frozenset[str]:
        """The stages of the same nest: what they compute is not known when a tile begins."""
        root = self.root(name)
        return frozenset(n for n in self.graph.places if self.root(n) == root)


def _cover(
    stage: Stage,
    load: core.Load,
    box: Box,
    extents: dict[Var, int],
    spans: dict[Var, Span | None],
    ranges: Ranges,
    late: frozenset[str],
) -> None:
    """Adds what one read needs. A span stays part of a division only if axis and axis coincide."""
    axes = own_axes(stage)
    for var, index in zip(stage.lhs, load.indices, strict=True):
        if var not in axes:
            continue
        seen = _seen(index, axes[var], box, ranges, late)
        same = isinstance(index, core.VarRef) and extents.get(index.var) == axes[var]
        if seen is not None and not same:
            seen = Span(seen.base, seen.extent)
        spans[var] = _both(spans[var], seen, axes[var], ranges) if var in spans else seen


def _both(a: Span | None, b: Span | None, size: int, ranges: Ranges) -> Span | None:
    """What covers two spans. Equal ones may differ in how far they reach beyond the dimension."""
    if a is not None and b is not None and a != b and a.extent == b.extent:
        first, second = within(a, size, ranges), within(b, size, ranges)
        if first.base == second.base:
            return first
    return union(a, b, ranges)


def _seen(index: Expr, size: int, box: Box, ranges: Ranges, late: frozenset[str]) -> Span | None:
    """The values of an index into a dimension of ``size``; a clamp to it is left to `within`.

    None when data decides that is ``late``, or that would take arithmetic that may overflow.
    """
    last = size - 1
    while isinstance(index, core.Binary) and index.op in ("min", "max"):
        bound = 0 if index.op == "max" else last
        sides = [s for s in (index.left, index.right) if const_value(s) != bound]
        if len(sides) != 1:
            break
        index = sides[0]
    data = [node for node in core.walk(index) if isinstance(node, core.Load)]
    if any(load.tensor.name in late for load in data):
        return None
    if data:
        known = {**ranges, **{v: range_of(s.base, ranges) for v, s in box.items()}}
        if total(index, known, index=True) != index:
            return None
    return image(index, box, ranges)


def _common(a: Path, b: Path) -> Path:
    out: list[tuple[str, int]] = []
    for (name, depth), (other, other_depth) in zip(a, b, strict=False):
        if name != other:
            break
        out.append((name, min(depth, other_depth)))
        if depth != other_depth:
            break
    return tuple(out)


def _misfit(name: str, source: str, dim: int) -> str:
    return (
        f"`{name}` does not read `{source}` element by element along dimension {dim}, "
        f"which the loop cuts into tiles"
    )


def invert(
    index: Expr,
    span: Span,
    size: int,
    axes: dict[Var, int],
    inner: dict[Var, core.ReduceAxis],
    ranges: Ranges,
) -> tuple[Var, Span] | None:
    """The axis of a consumer, and its values whose reads lie exactly within a producer's span.

    Handles ``a`` itself, ``a // n`` (each element is read n times) and ``n*a + r`` with a
    reduction axis r of extent n (disjoint windows). None for everything else.
    """
    if isinstance(index, core.VarRef) and axes.get(index.var) == size:
        return index.var, span
    match index:
        case core.Binary(op="fdiv", left=core.VarRef(var=var)):
            n = const_value(index.right)
            if n and axes.get(var) == n * size:
                base = simplify(to_expr(linear(span.base).times(n)), ranges)
                limit = None if span.limit is None else span.limit * n
                return var, Span(base, span.extent * n, span.of, limit, span.tried)
    return _invert_window(index, span, size, axes, inner, ranges)


def _invert_window(
    index: Expr,
    span: Span,
    size: int,
    axes: dict[Var, int],
    inner: dict[Var, core.ReduceAxis],
    ranges: Ranges,
) -> tuple[Var, Span] | None:
    form = linear(index)
    outer = [a for a in form.terms if isinstance(a, core.VarRef) and a.var in axes]
    if len(outer) != 1 or form.const or not isinstance(outer[0], core.VarRef):
        return None
    n, rest = form.terms[outer[0]], [a for a in form.terms if a != outer[0]]
    reach = 1
    for atom in sorted(rest, key=lambda a: form.terms[a]):
        if not isinstance(atom, core.VarRef) or atom.var not in inner:
            return None
        if form.terms[atom] != reach:
            return None
        reach *= inner[atom.var].extent
    quotient, remainder = split_linear(linear(span.base), n, ranges)
    fits = n > 0 and reach <= n and axes[outer[0].var] * n == size and span.extent % n == 0
    if not fits or quotient is None or not remainder.is_const or remainder.const:
        return None
    base = simplify(to_expr(quotient), ranges)
    limit = None if span.limit is None else span.limit // n
    return outer[0].var, Span(base, span.extent // n, span.of, limit, span.tried)
