"""A readable sketch of a loop program, for reports and prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from types import MappingProxyType

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor, Var
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.nest import Stmt

MAX_LINES = 400
MAX_WIDTH = 110

_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "fdiv": "//", "mod": "%", "pow": "**",
    "shl": "<<", "shr": ">>", "bitand": "&", "bitor": "|", "bitxor": "^", "and": "and",
    "or": "or", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip


def sketch(function: nest.Function) -> str:
    """Loops, buffers and stores of a function, one a line, indented by nesting.

    A variable whose name a buffer or another variable has there too is shown as ``name~1``.
    """
    lines = _Lines({tensor.name for tensor in _buffers(function)})
    lines.walk(function.body, 0)
    shown = lines.lines
    if len(shown) > MAX_LINES:
        shown = [*shown[:MAX_LINES], f"... {len(shown) - MAX_LINES} more lines"]
    return "\n".join(shown)


def _buffers(function: nest.Function) -> Iterator[Tensor]:
    yield from function.params
    for statement in nest.statements(function.body):
        if isinstance(statement, nest.Alloc):
            yield statement.tensor


class _Lines:
    """The lines so far, and what the variables in scope are called in them.

    A name is in scope to the end of the block that a reader sees by its indentation.
    """

    def __init__(self, buffers: set[str]) -> None:
        self.lines: list[str] = []
        self._taken = buffers
        self._names: dict[Var, str] = {}

    def walk(self, statement: Stmt, depth: int) -> None:
        match statement:
            case nest.Seq(body=body):
                for inner in body:
                    self.walk(inner, depth)
            case nest.For():
                self._loop(statement, depth)
            case nest.If(cond=cond, then=then, other=other):
                self._line(depth, f"if {self.show(cond)}:")
                self._block(then, depth + 1)
                if other is not None:
                    self._line(depth, "else:")
                    self._block(other, depth + 1)
            case nest.LetValue(var=var, value=value):
                text = self.show(value)
                self._line(depth, f"let {self._bind(var)} = {text}")
            case _:
                self._line(depth, self._simple(statement))

    def _simple(self, statement: Stmt) -> str:
        match statement:
            case nest.Store(tensor=tensor, indices=indices, value=value):
                return f"{self._element(tensor, indices)} = {self.show(value)}"
            case nest.Prefetch(tensor=tensor, indices=indices):
                return f"prefetch {self._element(tensor, indices)}"
            case nest.Dot(tensor=tensor, indices=indices):
                a, b = self._quads(statement.a), self._quads(statement.b)
                count = "" if statement.count == 4 else f", {statement.count} of 4"
                how = f"{statement.instruction.name} x {statement.lanes}{count}"
                return f"dot {self._element(tensor, indices)} += {a} . {b}  ({how})"
            case nest.Atomic(tensor=tensor, indices=indices, op=op, value=value):
                return f"atomic {op} {self._element(tensor, indices)}, {self.show(value)}"
            case nest.Matrices(registers=registers, first=first, source=source):
                how = ", transposed" if statement.transposed else ""
                place = f"{registers.name}[{first}..{first + 3}]"
                return f"{place} = matrices at {self.show(source)}{how}"
            case nest.Packed(registers=registers, place=place, elements=elements):
                values = ", ".join(self.show(element) for element in elements)
                return f"{registers.name}[{place}] = {values}"
            case nest.Mma(tensor=tensor, indices=indices, left=left, right=right):
                a = f"{left.name}[{statement.left_first}..]"
                b = f"{right.name}[{statement.right_first}..]"
                return f"mma {self._element(tensor, indices[0])}.. += {a} . {b}"
            case nest.Alloc(tensor=tensor, scope=scope):
                shape = ", ".join(map(str, tensor.shape))
                return f"{scope} {tensor.name}: {tensor.dtype.value}[{shape}]"
            case nest.Barrier():
                return "barrier"
            case _:
                raise AssertionError(f"{type(statement).__name__} has lines of its own")

    def _loop(self, loop: nest.For, depth: int) -> None:
        word = {"serial": "for", "vectorize": "lanes"}.get(loop.kind, loop.kind)
        zero = isinstance(loop.lo, core.Const) and loop.lo.value == 0
        extent = self.show(loop.extent)
        reach = extent if zero else f"{self.show(loop.lo)} + {extent}"
        before = len(self._names)
        self._line(depth, f"{word} {self._bind(loop.var)} in {reach}:")
        self._block(loop.body, depth + 1)
        self._forget(before)

    def _block(self, body: Stmt, depth: int) -> None:
        before = len(self._names)
        self.walk(body, depth)
        self._forget(before)

    def _bind(self, var: Var) -> str:
        if var in self._names:
            return self._names[var]
        candidates = (f"{var.name}~{n}" if n else var.name for n in count())
        name = next(name for name in candidates if name not in self._taken)
        self._taken.add(name)
        self._names[var] = name
        return name

    def _forget(self, before: int) -> None:
        while len(self._names) > before:
            _, name = self._names.popitem()
            self._taken.remove(name)

    def _element(self, tensor: Tensor, indices: tuple[Expr, ...]) -> str:
        return f"{tensor.name}[{', '.join(map(self.show, indices))}]"

    def _quads(self, operand: nest.Quads) -> str:
        text = self._element(operand.tensor, operand.indices)
        sign = "+" if operand.bias > 0 else "-"
        return f"({text} {sign} {abs(operand.bias)})" if operand.bias else text

    def _line(self, depth: int, text: str) -> None:
        line = "  " * depth + text
        self.lines.append(line if len(line) <= MAX_WIDTH else line[: MAX_WIDTH - 3] + "...")

    def show(self, expr: Expr) -> str:
        return show(expr, self._names)


def show(expr: Expr, names: Mapping[Var, str] = MappingProxyType({})) -> str:
    """The expression in the notation of the language.

    Args:
        names: what variables are called; the others have their own names.
    """

    def inner(part: Expr) -> str:
        return show(part, names)

    def nested(part: Expr) -> str:
        text = show(part, names)
        compound = isinstance(part, core.Select) or (
            isinstance(part, core.Binary) and part.op not in ("min", "max")
        )
        return f"({text})" if compound else text

    match expr:
        case core.Const(value=value):
            return str(value)
        case core.VarRef(var=var):
            return names.get(var, var.name)
        case core.Load(tensor=tensor, indices=indices):
            return f"{tensor.name}[{', '.join(map(inner, indices))}]"
        case core.Unary(op=op, arg=arg):
            return f"{'-' if op == 'neg' else '~' if op == 'inv' else 'not '}{nested(arg)}"
        case core.Binary(op="min" | "max" as op, left=left, right=right):
            return f"{op}({inner(left)}, {inner(right)})"
        case core.Binary(op=op, left=left, right=right):
            return f"{nested(left)} {_SYMBOLS[op]} {nested(right)}"
        case core.Call(fn=fn, args=args):
            return f"{fn}({', '.join(map(inner, args))})"
        case core.Select(cond=cond, then=then, other=other):
            return f"{nested(then)} if {inner(cond)} else {nested(other)}"
        case core.Cast(arg=arg, dtype=dtype):
            return f"{dtype.value}({inner(arg)})"
        case _:
            return "..."
