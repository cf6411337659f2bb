"""Static facts of a loop program: operations, bytes moved, workspace."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor, Var
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.expr.ranges import range_of
from edgekernelbench.lowering.nest import Stmt

_ARITHMETIC = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "fdiv",
        "mod",
        "pow",
        "min",
        "max",
        "shl",
        "shr",
        "bitand",
        "bitor",
        "bitxor",
    ]
)


@dataclass(slots=True)
class Traffic:
    """Accesses of one buffer, in bytes: as the program states them, caches not considered."""

    tensor: Tensor
    read: float = 0.0
    written: float = 0.0


@dataclass(slots=True)
class Facts:
    """What one call of a function does.

    Attributes:
        flops: arithmetic operations on data (a multiply-add is two); index arithmetic,
            comparisons and selections are not counted, an intrinsic counts as one.
        dots: those of them that are part of dot products of bytes.
        traffic: per buffer, by name.
    """

    flops: float = 0.0
    dots: float = 0.0
    traffic: dict[str, Traffic] = field(default_factory=dict)


def function_facts(function: nest.Function) -> Facts:
    """Counts a function's work.

    A loop whose length varies with outer loops counts the middle of its range, one whose length
    is read from data its least length. A branch on loop variables counts by its share of the
    iterations, one on data half. What stands under a `Select` counts in full.
    """
    counter = _Counter()
    counter.walk(function.body, 1.0)
    return counter.facts


class _Counter:
    def __init__(self) -> None:
        self.facts = Facts()
        self.ranges: dict[Var, tuple[int, int]] = {}
        self.data: set[Var] = set()

    def walk(self, statement: Stmt, times: float) -> None:
        match statement:
            case nest.Seq(body=body):
                for inner in body:
                    self.walk(inner, times)
            case nest.For():
                self._loop(statement, times)
            case nest.Store(tensor=tensor, indices=indices, value=value):
                self._expr(value, times)
                self._indices(indices, times)
                self._traffic(tensor).written += times * tensor.dtype.bytes
            case nest.LetValue(var=var, value=value):
                self._expr(value, times)
                if not value.dtype.is_float:
                    self.ranges[var] = range_of(value, self.ranges)
                if self._reads_data(value):
                    self.data.add(var)
            case nest.If(cond=cond, then=then, other=other):
                self._expr(cond, times)
                share = self._share(cond)
                self.walk(then, times * share)
                if other is not None:
                    self.walk(other, times * (1 - share))
            case nest.Prefetch(indices=indices):
                self._indices(indices, times)
            case nest.Dot():
                self._dot(statement, times)
            case nest.Atomic(tensor=tensor, indices=indices, value=value):
                self._expr(value, times)
                self._indices(indices, times)
                self.facts.flops += times
                self._traffic(tensor).read += times * tensor.dtype.bytes
                self._traffic(tensor).written += times * tensor.dtype.bytes
            case nest.Matrices(source=source):
                self._indices(source.indices, times)
                self._traffic(source.tensor).read += times * 16
            case nest.Packed(elements=elements):
                for element in elements:
                    self._expr(element, times)
            case nest.Mma():
                self.facts.flops += times * statement.operations
            case nest.Alloc():
                pass

    def _loop(self, loop: nest.For, times: float) -> None:
        least, most = (max(0, bound) for bound in range_of(loop.extent, self.ranges))
        first, last = range_of(loop.lo, self.ranges)
        self.ranges[loop.var] = (first, max(first, last + most - 1))
        count = least if self._reads_data(loop.extent) else (least + most) / 2
        self.walk(loop.body, times * count)

    def _dot(self, dot: nest.Dot, times: float) -> None:
        operations = times * 2 * dot.lanes * dot.count
        self.facts.flops += operations
        self.facts.dots += operations
        for operand in (dot.a, dot.b):
            self._indices(operand.indices, times)
            lanes = dot.lanes if operand.moving else 1
            self._traffic(operand.tensor).read += times * lanes * dot.count
        self._indices(dot.indices, times)
        result = self._traffic(dot.tensor)
        result.read += times * dot.lanes * dot.tensor.dtype.bytes
        result.written += times * dot.lanes * dot.tensor.dtype.bytes

    def _reads_data(self, expr: Expr) -> bool:
        return any(
            isinstance(node, core.Load) or (isinstance(node, core.VarRef) and node.var in self.data)
            for node in core.unique_nodes(expr)
        )

    def _share(self, cond: Expr) -> float:
        """How often a condition holds: exact for ``variable < number``, else one half."""
        match cond:
            case core.Binary(op="lt", left=core.VarRef(var=var), right=core.Const(value=value)):
                if var in self.ranges and var not in self.data:
                    low, high = self.ranges[var]
                    return min(1.0, max(0.0, (int(value) - low) / (high - low + 1)))
        return 0.5

    def _expr(self, expr: Expr, times: float) -> None:
        seen: set[int] = set()
        stack = [expr]
        while stack:
            node = stack.pop()
            if id(node) in seen:  # shared: computed once
                continue
            seen.add(id(node))
            match node:
                case core.Load(tensor=tensor, indices=indices):
                    self._traffic(tensor).read += times * tensor.dtype.bytes
                    self._indices(indices, times)
                    continue
                case core.Binary(op=op) if op in _ARITHMETIC:
                    self.facts.flops += times
                case core.Call() | core.Unary(op="neg" | "inv"):
                    self.facts.flops += times
                case _:
                    pass
            stack.extend(core.children(node))

    def _indices(self, indices: tuple[Expr, ...], times: float) -> None:
        """Indices may read data themselves; their arithmetic is not counted."""
        for index in indices:
            for node in core.unique_nodes(index):
                if isinstance(node, core.Load):
                    self._traffic(node.tensor).read += times * node.tensor.dtype.bytes

    def _traffic(self, tensor: Tensor) -> Traffic:
        return self.facts.traffic.setdefault(tensor.name, Traffic(tensor))


def workspace_bytes(function: nest.Function, threads: int) -> int:
    """Bytes of all ``global`` buffers of a call; those of a thread count once per thread."""
    return _workspace(function.body, 1, threads)


def _workspace(statement: Stmt, copies: int, threads: int) -> int:
    match statement:
        case nest.Seq(body=body):
            return sum(_workspace(inner, copies, threads) for inner in body)
        case nest.For(kind=kind, extent=extent, body=body):
            count = extent.value if isinstance(extent, core.Const) else threads
            shares = min(threads, int(count)) if kind == "parallel" else 1
            return _workspace(body, copies * shares, threads)
        case nest.If(then=then, other=other):
            both = 0 if other is None else _workspace(other, copies, threads)
            return _workspace(then, copies, threads) + both
        case nest.Alloc(tensor=tensor, scope="global"):
            return tensor.bytes * copies
        case _:
            return 0
