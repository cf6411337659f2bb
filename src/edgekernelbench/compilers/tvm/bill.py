"""What a loop program costs by counting: operations of one call, bytes of its arrays."""

from __future__ import annotations

from edgekernelbench.compilers.base import StaticFacts
from edgekernelbench.compilers.tvm.contraction import unique_nodes
from edgekernelbench.ir import core
from edgekernelbench.ir.core import Program
from edgekernelbench.lowering import nest

_UNKNOWN = (float(-(1 << 31)), float(1 << 31))


def static_facts(
    module: nest.Module, program: Program, code_bytes: int | None, seconds: float
) -> StaticFacts:
    """The bill of a compiled loop program."""
    return StaticFacts(
        flops=operations(module.main),
        io_bytes=sum(t.bytes for t in (*program.inputs, *program.outputs)),
        packed_bytes=sum(t.bytes for t in module.packed),
        workspace_bytes=module.workspace_bytes,
        code_bytes=code_bytes,
        compile_seconds=seconds,
        nest=module.nest,
    )


def operations(function: nest.Function) -> float:
    """Arithmetic operations on values (not on indices) of one call; a multiply-add counts 2.

    Loops whose extent varies with outer loops count the middle of its range, loops whose extent is
    read from data the least it can be, and each branch of an `If` counts half.
    """
    return _Counter().statement(function.body)


class _Counter:
    """Walks a function; knows the ranges of its integer variables and which depend on data."""

    def __init__(self) -> None:
        self._ranges: dict[int, tuple[float, float]] = {}
        self._data: set[int] = set()

    def statement(self, statement: nest.Stmt) -> float:
        match statement:
            case nest.For():
                return self._loop(statement)
            case nest.Seq(body=parts):
                return sum(self.statement(part) for part in parts)
            case nest.If(then=then, other=other):
                either = 0.0 if other is None else self.statement(other)
                return (self.statement(then) + either) / 2
            case nest.LetValue(var=var, value=value):
                if value.dtype.is_int:
                    self._ranges[var.uid] = _range(value, self._ranges)
                    if self._reads_data(value):
                        self._data.add(var.uid)
                return float(_value_operations(value))
            case nest.Store(value=value):
                return float(_value_operations(value))
            case _:
                return 0.0

    def _loop(self, loop: nest.For) -> float:
        first, last = _range(loop.lo, self._ranges)
        least, most = (max(0.0, bound) for bound in _range(loop.extent, self._ranges))
        self._ranges[loop.var.uid] = (first, last + max(0.0, most - 1))
        times = least if self._reads_data(loop.extent) else (least + most) / 2
        return times * self.statement(loop.body)

    def _reads_data(self, expr: core.Expr) -> bool:
        return any(
            isinstance(node, core.Load)
            or (isinstance(node, core.VarRef) and node.var.uid in self._data)
            for node in unique_nodes(expr)
        )


def _value_operations(value: core.Expr) -> int:
    """Operators and intrinsics of ``value`` outside the indices of its loads."""
    indices: set[int] = set()
    for node in unique_nodes(value):
        if isinstance(node, core.Load):
            indices |= {id(n) for index in node.indices for n in unique_nodes(index)}
    return sum(
        isinstance(node, (core.Binary, core.Call)) and id(node) not in indices
        for node in unique_nodes(value)
    )


def _range(expr: core.Expr, ranges: dict[int, tuple[float, float]]) -> tuple[float, float]:
    """Lowest and highest value of an integer expression, roughly."""
    values: dict[int, tuple[float, float]] = {}
    for node in unique_nodes(expr):
        below = [values[id(child)] for child in core.children(node)]
        values[id(node)] = _node_range(node, below, ranges)
    return values[id(expr)]


def _node_range(
    node: core.Expr, below: list[tuple[float, float]], ranges: dict[int, tuple[float, float]]
) -> tuple[float, float]:
    match node:
        case core.Const(value=value):
            return float(value), float(value)
        case core.VarRef(var=var):
            return ranges.get(var.uid, _UNKNOWN)
        case core.Binary(op=op):
            (a, b), (c, d) = below
            match op:
                case "add":
                    return a + c, b + d
                case "sub":
                    return a - d, b - c
                case "mul":
                    products = (a * c, a * d, b * c, b * d)
                    return min(products), max(products)
                case "min":
                    return min(a, c), min(b, d)
                case "max":
                    return max(a, c), max(b, d)
                case "fdiv" if c > 0:
                    return a // d, b // c
                case _:
                    return _UNKNOWN
        case core.Select():
            return min(below[1][0], below[2][0]), max(below[1][1], below[2][1])
        case core.Cast():
            return below[0]
        case _:
            return _UNKNOWN
