"""What `normalize` asks of expressions: their variables, a key for equality, copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from edgekernelbench.ir import core

_MAX_KEY = 400  # nodes of a reduction that is compared with others of its stage


E = TypeVar("E", bound=core.Expr)


def with_children(expr: E, rebuild: Callable[[core.Expr], core.Expr]) -> E:
    """``expr`` with each direct subexpression replaced; the same object if none changes."""
    new = [rebuild(child) for child in core.children(expr)]
    if all(a is b for a, b in zip(new, core.children(expr), strict=True)):
        return expr
    return _rebuilt(expr, new)  # type: ignore[return-value]


def _rebuilt(expr: core.Expr, new: list[core.Expr]) -> core.Expr:
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
    first = len(new) - len(expr.items)
    where = None if expr.where is None else new[2 * len(axes)]
    start = None if expr.start is None else new[first - 1]
    more = tuple(new[first + 1 :])
    return replace(expr, axes=axes, where=where, start=start, body=new[first], more=more)


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
            if node.combiner is not None:
                yield from _combiner(node.combiner)
                yield node.part
            for axis in node.axes:
                bound[axis.var.uid] = len(bound)


def _combiner(combiner: core.Combiner) -> Iterator[object]:
    """Equal for combiners that differ only in the names of their variables."""
    bound: dict[int, int] = {}
    for var in (*combiner.left, *combiner.right, *(var for var, _ in combiner.lets)):
        bound[var.uid] = len(bound)
    yield tuple((c.dtype, repr(c.value)) for c in combiner.init)
    yield len(combiner.lets)
    for expr in combiner.exprs:
        for node in core.walk(expr):
            yield from _token(node, bound)
