"""What `normalize` asks of expressions: their variables, a key for equality, copies, safety."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import Ranges
from edgekernelbench.ir.dtypes import DType

_MAX_KEY = 400  # nodes of a reduction that is compared with others of its stage


def with_children(expr: core.Expr, rebuild: Callable[[core.Expr], core.Expr]) -> core.Expr:
    """``expr`` with each direct subexpression replaced; the same object if none changes."""
    new = [rebuild(child) for child in core.children(expr)]
    if all(a is b for a, b in zip(new, core.children(expr), strict=True)):
        return expr
    match expr:
        case core.Load():
            return core.Load(expr.tensor, tuple(new), expr.span)
        case core.Unary():
            return core.Unary(expr.op, new[0], expr.dtype, expr.span)
        case core.Cast():
            return core.Cast(new[0], expr.dtype, expr.span)
        case core.Binary():
            return core.Binary(expr.op, new[0], new[1], expr.dtype, expr.span)
        case core.Call():
            return core.Call(expr.fn, tuple(new), expr.dtype, expr.span)
        case core.Select():
            return core.Select(new[0], new[1], new[2], expr.dtype, expr.border, expr.span)
        case core.Reduce():
            return _reduce(expr, new)
        case core.Block():
            lets = tuple((var, value) for (var, _), value in zip(expr.lets, new, strict=False))
            return core.Block(lets, new[-1], expr.span)
    return expr


def _reduce(expr: core.Reduce, new: list[core.Expr]) -> core.Reduce:
    axes = tuple(
        core.ReduceAxis(axis.var, new[2 * k], new[2 * k + 1], axis.extent, axis.span)
        for k, axis in enumerate(expr.axes)
    )
    where = None if expr.where is None else new[-2]
    return core.Reduce(expr.op, axes, where, new[-1], expr.dtype, expr.span)


def free_uids(expr: core.Expr) -> set[int]:
    """Variables that ``expr`` reads and does not bind itself."""
    read: set[int] = set()
    bound: set[int] = set()
    for node in core.walk(expr):
        match node:
            case core.VarRef():
                read.add(node.var.uid)
            case core.Block():
                bound.update(var.uid for var, _ in node.lets)
            case core.Reduce():
                bound.update(axis.var.uid for axis in node.axes)
    return read - bound


def copy(
    expr: core.Expr, renamed: Mapping[int, core.Var], fresh: Callable[[core.Var], core.Var]
) -> core.Expr:
    """A copy with free variables renamed; variables that it binds get ``fresh`` ones."""
    names = dict(renamed)

    def visit(node: core.Expr) -> core.Expr:
        match node:
            case core.VarRef() if node.var.uid in names:
                return core.VarRef(names[node.var.uid], node.span)
            case core.Block():
                lets = []
                for var, value in node.lets:
                    new = visit(value)
                    names[var.uid] = fresh(var)
                    lets.append((names[var.uid], new))
                return core.Block(tuple(lets), visit(node.result), node.span)
        return with_children(node, visit)

    return visit(expr)


def rename(expr: core.Expr, renamed: Mapping[int, core.Var]) -> core.Expr:
    """``expr`` with free variables renamed; what it binds keeps its names."""

    def visit(node: core.Expr) -> core.Expr:
        if isinstance(node, core.VarRef) and node.var.uid in renamed:
            return core.VarRef(renamed[node.var.uid], node.span)
        return with_children(node, visit)

    return visit(expr) if renamed else expr


def key(expr: core.Expr) -> tuple[object, ...] | None:
    """Equal for expressions that differ only in the variables they bind; None if too large."""
    out: list[object] = []
    bound: dict[int, int] = {}
    for count, node in enumerate(core.walk(expr)):
        if count >= _MAX_KEY:
            return None
        out += _token(node, bound)
    return tuple(out)


def _token(node: core.Expr, bound: dict[int, int]) -> Iterator[object]:
    yield type(node)
    yield node.dtype
    match node:
        case core.Const():
            yield type(node.value)
            yield repr(node.value)
        case core.VarRef():
            uid = node.var.uid
            yield (True, bound[uid]) if uid in bound else (False, uid)
        case core.Load():
            yield node.tensor.name
        case core.Unary() | core.Binary():
            yield node.op
        case core.Call():
            yield node.fn
        case core.Select():
            yield node.border
        case core.Block():
            yield len(node.lets)
            for var, _ in node.lets:
                bound[var.uid] = len(bound)
        case core.Reduce():
            yield (node.op, node.where is None, tuple(axis.extent for axis in node.axes))
            for axis in node.axes:
                bound[axis.var.uid] = len(bound)


def is_total(expr: core.Expr, ranges: Ranges) -> bool:
    """Whether every read and division is provably fine wherever its variables are in range.

    No condition is taken as a fact, but for `pad`, whose own test guards its read.
    """
    stack = [expr]
    while stack:
        node = stack.pop()
        match node:
            case core.Load():
                pairs = zip(node.tensor.shape, node.indices, strict=True)
                if not all(ranges.of(index).within(0, extent - 1) for extent, index in pairs):
                    return False
            case core.Binary(op="fdiv" | "mod", dtype=dtype, right=right) if dtype.is_int:
                if not ranges.of(right).within(1, 1 << 64):
                    return False
            case core.Select(border=True, then=core.Load(indices=indices)):
                stack += [node.cond, node.other, *indices]
                continue
        stack += core.children(node)
    return True


def conjuncts(cond: core.Expr) -> list[core.Expr]:
    """The terms of a conjunction, in order; later ones may rely on earlier ones."""
    out: list[core.Expr] = []
    stack = [cond]
    while stack:
        top = stack.pop()
        if isinstance(top, core.Binary) and top.op == "and":
            stack += [top.right, top.left]
        else:
            out.append(top)
    return out


def guarded(cond: core.Expr, value: core.Expr, otherwise: int) -> core.Expr:
    """``value`` where ``cond`` holds, else the constant ``otherwise``."""
    return core.Select(cond, value, _constant(otherwise, value.dtype), value.dtype)


def _constant(value: int, dtype: DType) -> core.Const:
    if dtype is DType.BOOL:
        return core.Const(bool(value), dtype)
    return core.Const(float(value) if dtype.is_float else value, dtype)


def both(left: core.Expr, right: core.Expr, ranges: Ranges) -> core.Expr:
    """Conjunction in which ``left`` guards ``right`` if that may fail."""
    if is_total(right, ranges):
        return core.Binary("and", left, right, DType.BOOL)
    return guarded(left, right, 0)
