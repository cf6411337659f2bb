"""Canonical text of kernels: stable, readable, and read back as the very same tree.

``parse(print_kernel(k)).kernel == k`` for every kernel that `parse` can return. Parentheses are
those that precedence needs, numbers are printed so that they round-trip exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from edgekernelbench.ir import surface as s
from edgekernelbench.ir.dtypes import DType

_WIDTH = 100
_INDENT = "  "

# Binding strength, as in the grammar; larger binds tighter.
_IF, _OR, _AND, _NOT, _COMPARE, _UNARY, _POWER, _ATOM = 0, 1, 2, 3, 4, 11, 12, 13
_BINARY: dict[str, int] = {
    "or": _OR, "and": _AND, "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9,
    "*": 10, "/": 10, "//": 10, "%": 10, "**": _POWER,
}  # fmt: skip


def print_kernel(kernel: s.Kernel) -> str:
    """Canonical text of a whole file, ending in a newline."""
    lines: list[str] = []
    for item in kernel.prelude:
        lines += _statement(item, 0)
    lines.append(_header(kernel) + " {")
    lines += _section("compute", kernel.compute.body, 1)
    for schedule in kernel.schedules:
        lines += _layer(f"schedule for {schedule.target}", map(_line, schedule.lines))
    for memory in kernel.memories:
        lines += _layer(f"memory for {memory.target}", map(_line, memory.lines))
    return "\n".join([*lines, "}", ""])


def print_expr(expr: s.Expr) -> str:
    """Canonical text of one expression."""
    return _expr(expr, _IF, 0)


def print_line(line: s.ScheduleLine | s.MemoryLine) -> str:
    """Canonical text of one line of a schedule or memory layer."""
    return _line(line)


def print_header(kernel: s.Kernel) -> str:
    """Canonical text from `kernel` to the outputs, without the opening brace."""
    return _header(kernel)


def kernel_hash(kernel: s.Kernel) -> str:
    """SHA-256 of the canonical text, as 64 hexadecimal digits."""
    return sha256(print_kernel(kernel).encode("utf-8")).hexdigest()


# ---------------------------------------------------------------- header
def _header(kernel: s.Kernel) -> str:
    sizes = f"[{', '.join(f'{x.name}={_expr(x.value)}' for x in kernel.sizes)}]"
    head = f"kernel {kernel.name}{sizes if kernel.sizes else ''}"
    inputs, outputs = ([_param(p) for p in group] for group in (kernel.inputs, kernel.outputs))
    flat = f"{head}({', '.join(inputs)}) -> ({', '.join(outputs)})"
    if len(flat) <= _WIDTH:
        return flat
    return f"{head}(\n{_column(inputs)}) -> (\n{_column(outputs)})"


def _column(items: list[str]) -> str:
    return "".join(f"{_INDENT}{item},\n" for item in items)


def _param(param: s.Param) -> str:
    const = "const " if param.const else ""
    return f"{param.name}: {const}{param.dtype.value}{_brackets(param.dims)}"


def _brackets(dims: tuple[s.Expr, ...]) -> str:
    return f"[{_list(dims)}]" if dims else ""


# ---------------------------------------------------------------- layers and statements
def _section(head: str, body: Iterable[s.Stmt], depth: int) -> list[str]:
    inner = [line for stmt in body for line in _statement(stmt, depth + 1)]
    pad = _INDENT * depth
    return [f"{pad}{head} {{", *inner, f"{pad}}}"]


def _layer(head: str, lines: Iterable[str]) -> list[str]:
    return [f"{_INDENT}{head} {{", *(f"{_INDENT * 2}{line}" for line in lines), f"{_INDENT}}}"]


def _statement(stmt: s.Stmt, depth: int) -> list[str]:
    """Lines of a statement; a line may itself hold newlines where a block stands in it."""
    pad = _INDENT * depth
    match stmt:
        case s.StageStmt():
            return [f"{pad}{_left(stmt)} = {_expr(stmt.value, _IF, depth)}"]
        case s.TupleStmt():
            lefts = ", ".join(_tensor(x.name, x.dtype, x.axes) for x in stmt.lefts)
            return [f"{pad}{lefts} = {_expr(stmt.value, _IF, depth)}"]
        case s.CombinerStmt():
            sides = f"{_side(stmt.left)}, {_side(stmt.right)}"
            head = f"combiner {stmt.name}({sides}) init {_neutral(stmt.init, depth)}"
            return [f"{pad}{head} = {_expr(stmt.body, _IF, depth)}"]
        case s.LetStmt():
            return [f"{pad}let {stmt.name} = {_expr(stmt.value, _IF, depth)}"]
        case s.TableStmt():
            head = f"table {stmt.name}: {stmt.dtype.value}[{_list(stmt.dims)}]"
            return [f"{pad}{head} = {_table_value(stmt.value, depth)}"]
        case s.DefStmt():
            head = f"def {stmt.name}({', '.join(stmt.params)})"
            return [f"{pad}{head} = {_expr(stmt.body, _IF, depth)}"]
        case s.TemplateStmt():
            results = ", ".join(stmt.results)
            head = f"template {stmt.name}({', '.join(stmt.params)}) -> ({results})"
            return _section(head, stmt.body, depth)
        case s.LoopStmt():
            head = f"{stmt.kind} {_axis(stmt.axis)}{' reversed' if stmt.reverse else ''}"
            return _section(head, stmt.body, depth)


def _left(stmt: s.StageStmt) -> str:
    return _tensor(", ".join(stmt.targets), stmt.dtype, stmt.axes)


def _tensor(name: str, dtype: DType | None, axes: tuple[s.LeftAxis, ...] | None) -> str:
    head = f"{name}: {dtype.value}" if dtype else name
    if axes is None:
        return head
    items = ", ".join(a.name if a.extent is None else _axis_of(a) for a in axes)
    return f"{head}[{items}]"


def _neutral(init: s.Expr, depth: int) -> str:
    text = _expr(init, _IF, depth)
    value = init.arg if isinstance(init, s.Unary) and init.op == "-" else init
    bare = isinstance(value, s.Num | s.Name) or isinstance(init, s.TupleExpr)
    return text if bare else f"({text})"


def _side(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _axis_of(axis: s.LeftAxis) -> str:
    assert axis.extent is not None
    return f"{axis.name}: {_expr(axis.extent)}"


def _table_value(value: s.Expr, depth: int) -> str:
    """A table on one line, or one row a line when that would be long."""
    flat = _expr(value, _IF, depth)
    if len(flat) <= _WIDTH or not isinstance(value, s.ListExpr):
        return flat
    pad = _INDENT * (depth + 1)
    rows = "".join(f"{pad}{_expr(row, _IF, depth + 1)},\n" for row in value.items)
    return f"[\n{rows}{_INDENT * depth}]"


def _line(line: s.ScheduleLine | s.MemoryLine) -> str:
    match line:
        case s.LoopsLine():
            return f"loops {line.stage.name} ({', '.join(map(_piece, line.pieces))})"
        case s.WaveLine():
            return f"wave {line.stage.name} ({', '.join(map(_piece, line.pieces))})"
        case s.PlaceLine():
            stages = ", ".join(ref.name for ref in line.stages)
            return f"place {stages} in {line.target.name}.{line.loop}"
        case s.InlineLine():
            return f"inline {', '.join(ref.name for ref in line.stages)}"
        case s.LayoutLine():
            axes = ", ".join(line.axes)
            return f"layout {line.tensor.name} [{axes}] -> [{_list(line.target)}]"
        case s.CacheLine():
            tensors = ", ".join(map(_cached, line.tensors))
            return f"cache {tensors} in {line.target.name}.{line.loop}"
        case s.PrefetchLine():
            tensors = ", ".join(ref.name for ref in line.tensors)
            where = f"{line.target.name}.{line.loop}"
            return f"prefetch {tensors} in {where} ahead {_expr(line.ahead)}"
        case s.OptionLine():
            return f"option {line.name} {_expr(line.value)}"


def _cached(item: s.Cached) -> str:
    return item.tensor.name + (f": {item.dtype.value}" if item.dtype else "")


def _piece(piece: s.Piece) -> str:
    annotation = f"{piece.annotation} " if piece.annotation else ""
    label = f"{piece.label} = " if piece.label else ""
    step = f" by {_expr(piece.step)}" if piece.step is not None else ""
    return f"{annotation}{label}{piece.axis}{step}"


# ---------------------------------------------------------------- expressions
def _list(items: Iterable[s.Expr], depth: int = 0) -> str:
    return ", ".join(_expr(item, _IF, depth) for item in items)


def _expr(expr: s.Expr, need: int = _IF, depth: int = 0) -> str:
    """Text of an expression, in parentheses when it binds weaker than its place needs."""
    strength, text = _render(expr, depth)
    return f"({text})" if strength < need else text


def _render(expr: s.Expr, depth: int) -> tuple[int, str]:
    match expr:
        case s.Unary():
            return _unary(expr, depth)
        case s.Binary():
            return _binary(expr, depth)
        case s.Compare():
            first, *rest = (_expr(x, _COMPARE + 1, depth) for x in expr.operands)
            pairs = zip(expr.ops, rest, strict=True)
            return _COMPARE, first + "".join(f" {op} {operand}" for op, operand in pairs)
        case s.IfExpr():
            then, cond = (_expr(x, _OR, depth) for x in (expr.then, expr.cond))
            return _IF, f"{then} if {cond} else {_expr(expr.other, _IF, depth)}"
        case _:
            return _ATOM, _atom(expr, depth)


def _unary(expr: s.Unary, depth: int) -> tuple[int, str]:
    if expr.op == "not":
        return _NOT, f"not {_expr(expr.arg, _NOT, depth)}"
    return _UNARY, f"{expr.op}{_expr(expr.arg, _UNARY, depth)}"


def _binary(expr: s.Binary, depth: int) -> tuple[int, str]:
    strength = _BINARY[expr.op]
    left, right = strength, strength + 1
    if expr.op == "**":  # a power: its base is an atom, its exponent may carry a sign
        left, right = _ATOM, _UNARY
    text = f"{_expr(expr.left, left, depth)} {expr.op} {_expr(expr.right, right, depth)}"
    return strength, text


def _atom(expr: s.Expr, depth: int) -> str:
    match expr:
        case s.Num():
            return repr(expr.value)
        case s.Name():
            return expr.id
        case s.Index():
            return f"{expr.base}[{_list(expr.args, depth)}]"
        case s.Call():
            return f"{expr.fn}({_list(expr.args, depth)})"
        case s.CastExpr():
            return f"{expr.dtype.value}({_expr(expr.arg, _IF, depth)})"
        case s.Reduction():
            where = f" where {_expr(expr.where, _IF, depth)}" if expr.where is not None else ""
            axes = ", ".join(_axis(a, depth) for a in expr.axes)
            body = _expr(expr.body, _IF, depth)
            plain = isinstance(expr.body, s.TupleExpr)
            return f"{expr.op}[{axes}{where}]" + (body if plain else f"({body})")
        case s.TupleExpr():
            comma = "," if len(expr.items) == 1 else ""
            return f"({_list(expr.items, depth)}{comma})"
        case s.ListExpr():
            return f"[{_list(expr.items, depth)}]"
        case s.Hole():
            return f"?{{{_list(expr.choices, depth)}}}"
        case s.BlockExpr():
            return _block(expr, depth)
        case s.Unary() | s.Binary() | s.Compare() | s.IfExpr():
            raise AssertionError("operators are rendered by _render")


def _axis(axis: s.RangeAxis, depth: int = 0) -> str:
    low = f"{_expr(axis.lo, _IF, depth)}.." if axis.lo is not None else ""
    return f"{axis.name}: {low}{_expr(axis.hi, _IF, depth)}"


def _block(block: s.BlockExpr, depth: int) -> str:
    pad = _INDENT * (depth + 1)
    lines = []
    for let in block.lets:
        names = let.names[0] if len(let.names) == 1 else f"({', '.join(let.names)})"
        lines.append(f"{pad}let {names} = {_expr(let.value, _IF, depth + 1)}\n")
    result = _expr(block.result, _IF, depth + 1)
    return f"{{\n{''.join(lines)}{pad}return {result}\n{_INDENT * depth}}}"
