"""Structural rewriting of expressions: substitution, fresh names, flattening of blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Var


class Names:
    """Makes variables that are unique within a program."""

    def __init__(self, next_uid: int) -> None:
        self.next_uid = next_uid

    def var(self, name: str, like: Var | None = None) -> Var:
        uid = self.next_uid
        self.next_uid += 1
        return Var(name, uid) if like is None else Var(name, uid, like.dtype)


def map_children(expr: Expr, fn: Callable[[Expr], Expr]) -> Expr:
    """The same node with ``fn`` applied to each direct subexpression."""
    match expr:
        case core.Load(tensor=tensor, indices=indices):
            return core.Load(tensor, tuple(fn(i) for i in indices), expr.span)
        case core.Unary(op=op, arg=arg):
            return core.Unary(op, fn(arg), expr.dtype, expr.span)
        case core.Binary(op=op, left=left, right=right):
            return core.Binary(op, fn(left), fn(right), expr.dtype, expr.span)
        case core.Call(fn=name, args=args):
            return core.Call(name, tuple(fn(a) for a in args), expr.dtype, expr.span)
        case core.Select():
            return core.Select(
                fn(expr.cond), fn(expr.then), fn(expr.other), expr.dtype, expr.border, expr.span
            )
        case core.Cast(arg=arg):
            return core.Cast(fn(arg), expr.dtype, expr.span)
        case core.Block(lets=lets, result=result):
            return core.Block(tuple((v, fn(e)) for v, e in lets), fn(result), expr.span)
        case core.Reduce():
            axes = tuple(
                core.ReduceAxis(a.var, fn(a.lo), fn(a.hi), a.extent, a.span) for a in expr.axes
            )
            where = None if expr.where is None else fn(expr.where)
            start = None if expr.start is None else fn(expr.start)
            more = tuple(fn(item) for item in expr.more)
            body = fn(expr.body)
            return replace(expr, axes=axes, where=where, start=start, body=body, more=more)
        case _:
            return expr


def substitute(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    """The expression with variables replaced; variables are unique, so nothing is captured."""
    if not values:
        return expr
    if isinstance(expr, core.VarRef):
        return values.get(expr.var, expr)
    return map_children(expr, lambda e: substitute(e, values))


def free_vars(expr: Expr) -> set[Var]:
    """Variables used and not bound inside (by a block or a reduction)."""
    used: set[Var] = set()
    bound: set[Var] = set()
    for node in core.walk(expr):
        match node:
            case core.VarRef(var=var):
                used.add(var)
            case core.Block(lets=lets):
                bound.update(var for var, _ in lets)
            case core.Reduce(axes=axes):
                bound.update(axis.var for axis in axes)
            case _:
                pass
    return used - bound


def rename_bound(expr: Expr, names: Names) -> Expr:
    """A copy whose lets and reduction axes are fresh, so that it may stand beside the original."""
    renamed: dict[Var, Expr] = {}
    fresh: dict[Var, Var] = {}
    for node in core.walk(expr):
        match node:
            case core.Block(lets=lets):
                bound = [var for var, _ in lets]
            case core.Reduce(axes=axes):
                bound = [axis.var for axis in axes]
            case _:
                continue
        for var in bound:
            fresh[var] = names.var(var.name, var)
            renamed[var] = core.VarRef(fresh[var])
    return _rebind(substitute(expr, renamed), fresh) if fresh else expr


def _rebind(expr: Expr, fresh: Mapping[Var, Var]) -> Expr:
    out = map_children(expr, lambda e: _rebind(e, fresh))
    match out:
        case core.Block(lets=lets, result=result):
            return core.Block(tuple((fresh[v], e) for v, e in lets), result, out.span)
        case core.Reduce(axes=axes):
            new = tuple(core.ReduceAxis(fresh[a.var], a.lo, a.hi, a.extent, a.span) for a in axes)
            return replace(out, axes=new)
        case _:
            return out


def flatten(expr: Expr, names: Names) -> tuple[list[tuple[Var, Expr]], Expr]:
    """Takes the blocks out of an expression: fresh scalar bindings in order, and the result."""
    lets: list[tuple[Var, Expr]] = []
    return lets, _flatten(expr, names, lets, {})


def _flatten(
    expr: Expr, names: Names, lets: list[tuple[Var, Expr]], renamed: dict[Var, Expr]
) -> Expr:
    match expr:
        case core.VarRef(var=var):
            return renamed.get(var, expr)
        case core.Block(lets=bindings, result=result):
            inner = dict(renamed)
            for var, value in bindings:
                flat = _flatten(value, names, lets, inner)
                if isinstance(flat, core.Const | core.VarRef):
                    inner[var] = flat
                    continue
                fresh = names.var(var.name, var)
                lets.append((fresh, flat))
                inner[var] = core.VarRef(fresh)
            return _flatten(result, names, lets, inner)
        case core.Const():
            return expr
        case _:
            return map_children(expr, lambda e: _flatten(e, names, lets, renamed))


def size(expr: Expr) -> int:
    """Number of nodes, counted as a tree."""
    return sum(1 for _ in core.walk(expr))


def nesting(expr: Expr) -> int:
    """How deep the expression is nested."""
    deepest = 0
    stack = [(expr, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in core.children(node))
    return deepest


def loads(expr: Expr) -> list[core.Load]:
    return [node for node in core.walk(expr) if isinstance(node, core.Load)]
