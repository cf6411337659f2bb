"""Steps of a reduction by a combiner: several accumulators that advance together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Combiner, Expr, Tensor, Var
from edgekernelbench.lowering.emit.context import Context, reload
from edgekernelbench.lowering.expr.rewrite import free_vars
from edgekernelbench.lowering.nest import LetValue, Stmt, Store

Parts = Mapping[int, Tensor]
"""The accumulators of the components that are needed, by number."""

Indices = tuple[Expr, ...]


def needed_parts(combiner: Combiner, wanted: Iterable[int]) -> tuple[int, ...]:
    """The components that the wanted ones depend on, themselves included."""
    sides = (combiner.left, combiner.right)
    number = {var: k for side in sides for k, var in enumerate(side)}
    values = dict(combiner.lets)
    found: set[int] = set()
    pending = sorted(wanted)
    while pending:
        part = pending.pop()
        if part in found:
            continue
        found.add(part)
        used, todo = set(), [combiner.results[part]]
        while todo:
            fresh = free_vars(todo.pop()) - used
            used |= fresh
            todo += [values[var] for var in fresh if var in values]
        pending += [number[var] for var in used if var in number]
    return tuple(sorted(found))


def add_element(
    ctx: Context,
    combiner: Combiner,
    parts: Parts,
    where: Indices,
    element: Mapping[int, Expr],
    cond: Expr | None,
) -> list[Stmt]:
    """Takes one element into the accumulators at ``where``, if ``cond`` holds."""
    out: list[Stmt] = []
    a, b = combiner.left, combiner.right
    old = {k: bind(ctx, a[k].name, reload(parts[k], where), out) for k in parts}
    new = {k: bind(ctx, b[k].name, element[k], out) for k in parts}
    made = _combined(ctx, combiner, old, new, out)
    for k, value in made.items():
        kept = value if cond is None else core.Select(cond, value, old[k], value.dtype)
        out.append(Store(parts[k], where, kept))
    return out


def merge_lanes(
    ctx: Context, combiner: Combiner, parts: Parts, here: Indices, there: Indices
) -> list[Stmt]:
    """Takes the partial results at ``there`` into those at ``here``."""
    out: list[Stmt] = []
    left, right = combiner.left, combiner.right
    a = {k: bind(ctx, left[k].name, reload(parts[k], here), out) for k in parts}
    b = {k: bind(ctx, right[k].name, reload(parts[k], there), out) for k in parts}
    made = _combined(ctx, combiner, a, b, out)
    return [*out, *(Store(parts[k], here, value) for k, value in made.items())]


def start(combiner: Combiner, parts: Parts, where: Indices) -> list[Stmt]:
    return [Store(parts[k], where, combiner.init[k]) for k in parts]


def _combined(
    ctx: Context,
    combiner: Combiner,
    a: Mapping[int, Expr],
    b: Mapping[int, Expr],
    out: list[Stmt],
) -> dict[int, Expr]:
    """All results are scalars before the first of them is stored: none reads a new component."""
    values: dict[Var, Expr] = {combiner.left[k]: value for k, value in a.items()}
    values |= {combiner.right[k]: value for k, value in b.items()}
    for var, value in _used(combiner, a):
        lets, flat = ctx.value(value, values)
        out += lets
        values[var] = bind(ctx, var.name, flat, out)
    made: dict[int, Expr] = {}
    for k in a:
        lets, flat = ctx.value(combiner.results[k], values)
        out += lets
        made[k] = bind(ctx, combiner.left[k].name, flat, out)
    return made


def _used(combiner: Combiner, parts: Iterable[int]) -> Sequence[tuple[Var, Expr]]:
    """The lets that these results need, in order."""
    used = {var for k in parts for var in free_vars(combiner.results[k])}
    kept: list[tuple[Var, Expr]] = []
    for var, value in reversed(combiner.lets):
        if var in used:
            kept.append((var, value))
            used |= free_vars(value)
    return kept[::-1]


def bind(ctx: Context, name: str, value: Expr, out: list[Stmt]) -> Expr:
    """A scalar of the loop program for a value that is used more than once."""
    if isinstance(value, core.Const | core.VarRef):
        return value
    var = Var(name, ctx.names.var(name).uid, value.dtype)
    out.append(LetValue(var, value))
    return core.VarRef(var)
