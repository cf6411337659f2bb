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
        traffic: per buffer, by name.
    """

    flops: float = 0.0
    traffic: dict[str, Traffic] = field(default_factory=dict)


def function_facts(function: nest.Function) -> Facts:
    """Counts a function's work. Loops of unknown length count at their longest, branches both
    count half, and an expression under a condition counts in full."""
    counter = _Counter()
    counter.walk(function.body, 1.0)
    return counter.facts


class _Counter:
    def __init__(self) -> None:
        self.facts = Facts()
        self.ranges: dict[Var, tuple[int, int]] = {}

    def walk(self, statement: Stmt, times: float) -> None:
        match statement:
            case nest.Seq(body=body):
                for inner in body:
                    self.walk(inner, times)
            case nest.For(var=var, lo=lo, extent=extent, body=body):
                count = max(0, range_of(extent, self.ranges)[1])
                first, last = range_of(lo, self.ranges)
                self.ranges[var] = (first, max(first, last + count - 1))
                self.walk(body, times * count)
            case nest.Store(tensor=tensor, indices=indices, value=value):
                self._expr(value, times)
                self._indices(indices, times)
                self._traffic(tensor).written += times * tensor.dtype.bytes
            case nest.LetValue(var=var, value=value):
                self._expr(value, times)
                if not value.dtype.is_float:
                    self.ranges[var] = range_of(value, self.ranges)
            case nest.If(cond=cond, then=then, other=other):
                self._expr(cond, times)
                self.walk(then, times if other is None else times / 2)
                if other is not None:
                    self.walk(other, times / 2)
            case nest.Alloc():
                pass

    def _expr(self, expr: Expr, times: float) -> None:
        stack = [expr]
        while stack:
            node = stack.pop()
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
            for node in core.walk(index):
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
