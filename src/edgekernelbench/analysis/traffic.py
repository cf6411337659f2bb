"""Bytes that a loop program moves between memory levels, by footprints.

For a cache of a given size, a loop whose whole footprint fits is loaded once; a loop whose body
fits, but which does not, keeps what its variable does not select and loads the rest anew in each
iteration; larger loops multiply. The footprint of a tensor is the hull of all accesses to it, or,
where that is less, the sum of what each of them can reach: a stride, a row that data choose or a
workspace shared by two stages leaves most of the hull untouched.
The model knows no associativity, no prefetching and no line size: read it as a lower estimate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import Ranges
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store: the tensor and, per dimension, its index expression."""

    tensor: core.Tensor
    indices: tuple[core.Expr, ...]


Footprint = dict[str, float]
"""Tensor name -> distinct bytes."""


@dataclass(frozen=True, slots=True)
class LevelTraffic:
    """Bytes that cross into a level of ``capacity`` bytes during one call."""

    name: str
    capacity: int
    bytes: float


def level_traffic(function: nest.Function, cache_bytes: tuple[int, ...]) -> list[LevelTraffic]:
    """Traffic into each cache, from the registers outwards: what L1 loads, what L2 loads, ..."""
    model = _Model(function.body)
    out: list[LevelTraffic] = []
    least = math.inf
    for level, size in enumerate(cache_bytes, 1):
        # A farther level never loads more than a nearer one, but the hull of a larger part of the
        # nest may hold gaps that those of its smaller parts do not.
        least = min(least, sum(model.traffic(function.body, size).values()))
        out.append(LevelTraffic(f"L{level}", size, least))
    return out


def footprint_bytes(function: nest.Function) -> float:
    """Distinct bytes that one call touches."""
    return sum(_Model(function.body).footprint(function.body).values())


class _Model:
    def __init__(self, body: nest.Stmt) -> None:
        self._extents: dict[int, tuple[int, int]] = {}
        self._lets: list[nest.LetValue] = []
        self._values: dict[int, core.Expr] = {}
        self._footprints: dict[int, Footprint] = {}
        self._collect(body)

    def _collect(self, body: nest.Stmt) -> None:
        """Remembers the widest range of every loop variable."""
        ranges = Ranges()
        stack = [body]
        while stack:
            statement = stack.pop()
            if isinstance(statement, nest.For):
                first = _clip(ranges.of(statement.lo).lo), _clip(ranges.of(statement.lo).hi)
                last = first[1] + max(1, _clip(ranges.of(statement.extent).hi)) - 1
                self._extents[statement.var.uid] = (first[0], last)
                ranges.bind(statement.var, first[0], last)
            elif isinstance(statement, nest.LetValue):
                ranges.bind_let(statement.var, statement.value)
                self._lets.append(statement)
                self._values[statement.var.uid] = statement.value
            stack.extend(reversed(_parts(statement)))

    def extent(self, loop: nest.For) -> int:
        low, high = self._extents[loop.var.uid]
        if isinstance(loop.extent, core.Const):
            return max(0, int(loop.extent.value))
        return max(1, (high - low + 1) // 2)

    def footprint(self, body: nest.Stmt) -> Footprint:
        """Distinct bytes of each tensor for one run of ``body``, outer variables fixed."""
        known = self._footprints.get(id(body))
        if known is None:
            known = self._footprints[id(body)] = self._boxes(body)
        return known

    def _boxes(self, body: nest.Stmt) -> Footprint:
        ranges = self._ranges(body)
        inner = {loop.var.uid: self.extent(loop) for loop in _loops(body)}
        hulls: dict[str, list[tuple[float, float]]] = {}
        reached: dict[str, float] = {}
        widths: dict[str, int] = {}
        for access in set(accesses(body)):
            spans = [
                _span(ranges, i, e)
                for i, e in zip(access.indices, access.tensor.shape, strict=True)
            ]
            name = access.tensor.name
            widths[name] = access.tensor.dtype.bytes
            moving = [self._variables_of(index) & inner.keys() for index in access.indices]
            reached[name] = reached.get(name, 0.0) + min(
                _product(inner, set().union(*moving)),
                math.prod(
                    min(high - low + 1, _product(inner, used))
                    for (low, high), used in zip(spans, moving, strict=True)
                ),
            )
            old = hulls.get(name, spans)
            hulls[name] = [
                (min(a, c), max(b, d)) for (a, b), (c, d) in zip(old, spans, strict=True)
            ]
        return {
            name: widths[name] * min(reached[name], math.prod(b - a + 1 for a, b in spans))
            for name, spans in hulls.items()
        }

    def _variables_of(self, index: core.Expr) -> set[int]:
        """The uids of the variables that an index depends on, through lets too."""
        return {node.var.uid for node in self._nodes(index) if isinstance(node, core.VarRef)}

    def _ranges(self, body: nest.Stmt) -> Ranges:
        inner = {loop.var.uid: loop.var for loop in _loops(body)}
        ranges = Ranges()
        for access_var in _variables(body, self._lets):
            low, high = self._extents.get(access_var.uid, (0, 0))
            if access_var.uid not in inner:
                low = high = (low + high) // 2
            ranges.bind(access_var, low, high)
        for let in self._lets:
            ranges.bind_let(let.var, let.value)
        return ranges

    def _nodes(self, expr: core.Expr) -> Iterable[core.Expr]:
        """All nodes of an expression and of the lets it reads."""
        stack, seen = [expr], set[int]()
        while stack:
            for node in core.walk(stack.pop()):
                yield node
                if isinstance(node, core.VarRef) and node.var.uid not in seen:
                    seen.add(node.var.uid)
                    value = self._values.get(node.var.uid)
                    stack += [] if value is None else [value]

    def _selects(self, loop: nest.For) -> set[str]:
        """Tensors whose elements depend on the loop's variable."""
        return {
            access.tensor.name
            for access in accesses(loop.body)
            if any(loop.var.uid in self._variables_of(index) for index in access.indices)
        }

    def traffic(self, body: nest.Stmt, capacity: int) -> Footprint:
        """Bytes of each tensor loaded or stored during one run of ``body``."""
        whole = self.footprint(body)
        if sum(whole.values()) <= capacity:
            return whole
        match body:
            case nest.For():
                inner = self.traffic(body.body, capacity)
                times = self.extent(body)
                fits = sum(self.footprint(body.body).values()) <= capacity
                selected = self._selects(body)
                return {
                    name: size if fits and name not in selected else times * size
                    for name, size in inner.items()
                }
            case nest.Seq() | nest.If():
                return _sum(self.traffic(part, capacity) for part in _parts(body))
        return whole


def accesses(body: nest.Stmt) -> Iterable[Access]:
    """Every load and store of a statement, each as often as it is written."""
    stack = [body]
    while stack:
        statement = stack.pop()
        for expr in nest.expressions(statement):
            for node in core.walk(expr):
                if isinstance(node, core.Load):
                    yield Access(node.tensor, node.indices)
        if isinstance(statement, nest.Store | nest.Atomic):
            yield Access(statement.tensor, statement.indices)
        if isinstance(statement, nest.Dot):
            yield from _dot_accesses(statement)
        stack.extend(reversed(_parts(statement)))


def _dot_accesses(dot: nest.Dot) -> Iterable[Access]:
    """The corners of what a dot product reads and writes: runs of elements in memory."""
    runs = [(dot.tensor, dot.indices, dot.lanes)]
    runs += [(q.tensor, q.indices, (dot.lanes if q.moving else 1) * 4) for q in (dot.a, dot.b)]
    for tensor, indices, length in runs:
        low, high = list(indices), list(indices)
        for dim in reversed(range(len(indices))):
            extent = tensor.shape[dim]
            reach = min(length, extent) - 1
            if length >= extent:
                low[dim], high[dim] = (core.Const(n, DType.S32) for n in (0, reach))
            else:
                last = core.Const(reach, DType.S32)
                high[dim] = core.Binary("add", indices[dim], last, DType.S32)
            length = -(-length // extent)
        yield Access(tensor, tuple(low))
        yield Access(tensor, tuple(high))


def _parts(statement: nest.Stmt) -> tuple[nest.Stmt, ...]:
    match statement:
        case nest.For(body=body):
            return (body,)
        case nest.Seq(body=parts):
            return parts
        case nest.If(then=then, other=other):
            return (then,) if other is None else (then, other)
    return ()


def _loops(body: nest.Stmt) -> Iterable[nest.For]:
    stack = [body]
    while stack:
        statement = stack.pop()
        if isinstance(statement, nest.For):
            yield statement
        stack.extend(_parts(statement))


def _variables(body: nest.Stmt, lets: list[nest.LetValue]) -> set[core.Var]:
    """Loop variables that index something in ``body``, through lets and by its own loops too."""
    found = {loop.var for loop in _loops(body)}
    for let in lets:
        found |= {n.var for n in core.walk(let.value) if isinstance(n, core.VarRef)}
    stack = [body]
    while stack:
        statement = stack.pop()
        for expr in nest.expressions(statement):
            found |= {n.var for n in core.walk(expr) if isinstance(n, core.VarRef)}
        stack.extend(_parts(statement))
    bound = {let.var for let in lets}
    return {var for var in found if not var.dtype.is_float and var not in bound}


def _product(times: dict[int, int], uids: set[int]) -> int:
    """How many values indices may take while loops over these variables run, ``times`` each."""
    return max(1, math.prod(times[uid] for uid in uids))


def _span(ranges: Ranges, index: core.Expr, extent: int) -> tuple[float, float]:
    found = ranges.of(index)
    low, high = max(0, found.lo), min(extent - 1, found.hi)
    return (low, high) if low <= high else (0, 0)


def _sum(parts: Iterable[Footprint]) -> Footprint:
    total: Footprint = {}
    for part in parts:
        for name, size in part.items():
            total[name] = total.get(name, 0.0) + size
    return total


def _clip(value: float) -> int:
    return int(max(-(1 << 40), min(1 << 40, value)))
