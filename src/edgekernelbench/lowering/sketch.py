"""A readable sketch of a loop program, for reports and prompts."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr
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
    """Loops, buffers and stores of a function, one a line, indented by nesting."""
    lines: list[str] = []
    _walk(function.body, 0, lines)
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"... {len(lines) - MAX_LINES} more lines"]
    return "\n".join(lines)


def _walk(statement: Stmt, depth: int, lines: list[str]) -> None:
    pad = "  " * depth
    match statement:
        case nest.Seq(body=body):
            for inner in body:
                _walk(inner, depth, lines)
        case nest.For(var=var, lo=lo, extent=extent, kind=kind, body=body):
            word = {"serial": "for", "vectorize": "lanes"}.get(kind, kind)
            zero = isinstance(lo, core.Const) and lo.value == 0
            reach = show(extent) if zero else f"{show(lo)} + {show(extent)}"
            lines.append(_cut(f"{pad}{word} {var.name} in {reach}:"))
            _walk(body, depth + 1, lines)
        case nest.Store(tensor=tensor, indices=indices, value=value):
            where = ", ".join(show(i) for i in indices)
            lines.append(_cut(f"{pad}{tensor.name}[{where}] = {show(value)}"))
        case nest.LetValue(var=var, value=value):
            lines.append(_cut(f"{pad}let {var.name} = {show(value)}"))
        case nest.If(cond=cond, then=then, other=other):
            lines.append(_cut(f"{pad}if {show(cond)}:"))
            _walk(then, depth + 1, lines)
            if other is not None:
                lines.append(f"{pad}else:")
                _walk(other, depth + 1, lines)
        case nest.Prefetch(tensor=tensor, indices=indices):
            where = ", ".join(show(i) for i in indices)
            lines.append(_cut(f"{pad}prefetch {tensor.name}[{where}]"))
        case nest.Dot():
            a, b = _quads(statement.a), _quads(statement.b)
            count = "" if statement.count == 4 else f", {statement.count} of 4"
            how = f"{statement.instruction.name} x {statement.lanes}{count}"
            where = ", ".join(show(i) for i in statement.indices)
            lines.append(_cut(f"{pad}dot {statement.tensor.name}[{where}] += {a} . {b}  ({how})"))
        case nest.Alloc(tensor=tensor, scope=scope):
            shape = ", ".join(map(str, tensor.shape))
            lines.append(f"{pad}{scope} {tensor.name}: {tensor.dtype.value}[{shape}]")
        case nest.Barrier():
            lines.append(f"{pad}barrier")


def _quads(operand: nest.Quads) -> str:
    text = f"{operand.tensor.name}[{', '.join(show(i) for i in operand.indices)}]"
    sign = "+" if operand.bias > 0 else "-"
    return f"({text} {sign} {abs(operand.bias)})" if operand.bias else text


def _cut(line: str) -> str:
    return line if len(line) <= MAX_WIDTH else line[: MAX_WIDTH - 3] + "..."


def show(expr: Expr) -> str:
    """The expression in the notation of the language."""
    match expr:
        case core.Const(value=value):
            return str(value)
        case core.VarRef(var=var):
            return var.name
        case core.Load(tensor=tensor, indices=indices):
            return f"{tensor.name}[{', '.join(show(i) for i in indices)}]"
        case core.Unary(op=op, arg=arg):
            return f"{'-' if op == 'neg' else '~' if op == 'inv' else 'not '}{_nested(arg)}"
        case core.Binary(op="min" | "max" as op, left=left, right=right):
            return f"{op}({show(left)}, {show(right)})"
        case core.Binary(op=op, left=left, right=right):
            return f"{_nested(left)} {_SYMBOLS[op]} {_nested(right)}"
        case core.Call(fn=fn, args=args):
            return f"{fn}({', '.join(show(a) for a in args)})"
        case core.Select(cond=cond, then=then, other=other):
            return f"{_nested(then)} if {show(cond)} else {_nested(other)}"
        case core.Cast(arg=arg, dtype=dtype):
            return f"{dtype.value}({show(arg)})"
        case _:
            return "..."


def _nested(expr: Expr) -> str:
    text = show(expr)
    compound = isinstance(expr, core.Select) or (
        isinstance(expr, core.Binary) and expr.op not in ("min", "max")
    )
    return f"({text})" if compound else text
