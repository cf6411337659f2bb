"""Reads of tensors: indexing, ``pad``, ``edge``, ``dim``."""

from __future__ import annotations

from collections.abc import Sequence

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.elaborate import build, coerce, ops, rules, safe
from edgekernelbench.ir.elaborate.context import Context
from edgekernelbench.ir.elaborate.hold import Lets
from edgekernelbench.ir.elaborate.names import lookup_tensor
from edgekernelbench.ir.elaborate.values import POISON, Number, Poison, Scope, Value, View


def subscript(cx: Context, scope: Scope, expr: surface.Index) -> Value:
    """``x[i, j]`` as a `View` with these indices fixed; it is read where a scalar is needed."""
    view = lookup_tensor(cx, scope, expr)
    indices: list[core.Expr] = []
    broken = view is POISON
    for arg in expr.args:
        found = coerce.index(cx, cx.expr(scope, arg), arg)
        if found is POISON:
            broken = True
        else:
            indices.append(safe.plain(cx, found))
    if broken or not isinstance(view, View):
        return POISON
    if len(indices) > view.rank:
        return _too_many(cx, view, expr)
    return View(view.tensor, view.lows, view.prefix + tuple(indices))


def _too_many(cx: Context, view: View, expr: surface.Index) -> Poison:
    given = coerce.counted(len(expr.args), "index", "indices")
    if view.rank == 0:
        text, help = f"`{expr.base}` is one element", [f"`{expr.base}`"]
    else:
        text = f"`{expr.base}` has {coerce.counted(view.rank, 'dimension')}, but {given}"
        help = [f"its shape is {coerce.shape_text(view.shape)}"]
    return cx.error(rules.RANK, text, expr.span, help)


def element(cx: Context, value: Value, expr: surface.Expr) -> Value:
    """Checks that a subscript used as a scalar has all its indices."""
    if isinstance(value, View) and value.rank > 0 and isinstance(expr, surface.Index):
        full = value.rank + len(expr.args)
        rank = coerce.counted(full, "dimension")
        given = coerce.counted(len(expr.args), "index", "indices")
        shape = coerce.shape_text(value.tensor.shape[-full:])
        text = f"`{expr.base}` has {rank}, but {given}"
        return cx.error(rules.RANK, text, expr.span, [f"its shape is {shape}"])
    return value


# ---------------------------------------------------------------- pad
def pad(cx: Context, scope: Scope, call: surface.Call) -> Value:
    """``pad(T[..], v)``: the value where all indices are in range, else ``v``."""
    if len(call.args) != 2:
        help = [f"`pad({coerce.show(call.args[0])}, 0)`"] if len(call.args) == 1 else []
        return cx.error(
            rules.ARGUMENTS, f"`pad` takes 2 arguments, {len(call.args)} given", call.span, help
        )
    value = element(cx, cx.expr(scope, call.args[0]), call.args[0])
    other = coerce.scalar(cx, cx.expr(scope, call.args[1]), call.args[1].span)
    lets = Lets()
    if isinstance(value, View) and value.rank == 0:
        view, terms = _guard(cx, _own_indices(cx, lets, value), call.span)
        inner = coerce.load(cx, view, call.args[0].span)
    else:
        found = coerce.scalar(cx, value, call.args[0].span)
        if found is POISON:
            return ops.ghost(cx, other)
        guarded = _guard_expr(cx, found, call)
        if guarded is None:
            return POISON
        inner, terms = guarded
    if other is POISON:
        return ops.ghost(cx, inner)
    pair = coerce.branches(cx, inner, other, call.span)
    if pair is None:
        return POISON
    if not terms:
        return pair[0]
    cx.count(call.span)
    cond = build.conjunction(cx, terms, call.span)
    select = core.Select(cond, pair[0], pair[1], pair[0].dtype, True, call.span)
    return lets.wrap(select, call.span)


def _own_indices(cx: Context, lets: Lets, view: View) -> View:
    """The slice with indices that may stand both in the read and in the tests around it."""
    prefix = [
        lets.bind(cx, "index", index) if build.has_binders(index) else index
        for index in view.prefix
    ]
    return View(view.tensor, view.lows, tuple(prefix))


def _guard(cx: Context, view: View, span: Span) -> tuple[View, list[core.Expr]]:
    terms: list[core.Expr] = []
    indices: list[core.Expr] = []
    for index, low, extent in zip(view.prefix, view.lows, view.tensor.shape, strict=True):
        index, found = safe.tests(cx, index, low, extent - 1, span)
        indices.append(index)
        terms += found
    return View(view.tensor, view.lows, tuple(indices)), terms


def _guard_expr(
    cx: Context, value: core.Expr | Number, call: surface.Call
) -> tuple[core.Expr, list[core.Expr]] | None:
    """Guards an expression around exactly one read by that read's indices."""
    reads = [] if isinstance(value, Number) else _outer_reads(value)
    first = call.args[0]
    if isinstance(reads, str) or len(reads) != 1:
        many = reads if isinstance(reads, str) else f"{len(reads)} reads" if reads else "no read"
        cx.error(
            rules.PAD,
            f"`pad` guards one read of a tensor, but `{coerce.show(first)}` holds {many}",
            call.span,
            ["put `pad(x[..], v)` around each read of its own"],
        )
        return None
    assert not isinstance(value, Number)
    load = reads[0]
    if any(build.has_binders(index) for index in load.indices):
        cx.error(
            rules.PAD,
            f"the index in `{coerce.show(first)}` holds a reduction or block",
            call.span,
            ["`pad` the read alone: `f(pad(x[..], 0))`, or make the index a stage"],
        )
        return None
    _, terms = _guard(cx, View(load.tensor, cx.lows_of(load.tensor), load.indices), call.span)
    return value, terms


def _outer_reads(expr: core.Expr) -> Sequence[core.Load] | str:
    """Reads outside of indices and not guarded yet; a phrase when something is in the way."""
    reads: list[core.Load] = []
    bound: set[int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        match node:
            case core.Load():
                reads.append(node)
            case core.Reduce():
                return "a reduction"
            case core.Select(border=True):
                stack.append(node.other)
            case _:
                if isinstance(node, core.Block):
                    bound |= {var.uid for var, _ in node.lets}
                stack += core.children(node)
    for load in reads:
        for index in load.indices:
            names = [n for n in core.walk(index) if isinstance(n, core.VarRef)]
            if any(n.var.uid in bound for n in names):
                return "an index computed inside it"
    return reads


# ---------------------------------------------------------------- edge, dim
def edge(cx: Context, scope: Scope, call: surface.Call) -> Value:
    """``edge(T[..])``: the read with every index clamped to the tensor."""
    if len(call.args) != 1:
        return cx.error(
            rules.ARGUMENTS, f"`edge` takes 1 argument, {len(call.args)} given", call.span
        )
    arg = call.args[0]
    value = element(cx, cx.expr(scope, arg), arg)
    if value is POISON:
        return POISON
    if not isinstance(value, View) or value.rank != 0 or not isinstance(arg, surface.Index):
        return cx.error(
            rules.PAD,
            f"`edge` takes a read such as `x[i - 1]`, not `{coerce.show(arg)}`",
            call.span,
            ["apply the function outside: `f(edge(x[i - 1]))`"],
        )
    indices = []
    for index, low, extent in zip(value.prefix, value.lows, value.tensor.shape, strict=True):
        indices.append(safe.clamped(cx, index, low, extent - 1, arg.span))
    return View(value.tensor, value.lows, tuple(indices))


def dim(cx: Context, scope: Scope, call: surface.Call) -> Value:
    """``dim(x, i)``: an extent of a tensor or a slice, a compile-time number."""
    if len(call.args) != 2:
        return cx.error(
            rules.ARGUMENTS,
            f"`dim` takes 2 arguments, {len(call.args)} given",
            call.span,
            ["`dim(x, 0)` is the extent of the first dimension"],
        )
    value, number = cx.expr(scope, call.args[0]), cx.expr(scope, call.args[1])
    if value is POISON or number is POISON:
        return POISON
    if not isinstance(value, View):
        return cx.error(
            rules.WRONG_KIND, "`dim` asks for the extent of a tensor", call.args[0].span
        )
    axis = number.value if isinstance(number, Number) else None
    if not isinstance(axis, int) or isinstance(axis, bool) or not 0 <= axis < value.rank:
        return cx.error(
            rules.RANK,
            f"`{value.tensor.name}` has dimensions 0 to {value.rank - 1} here"
            if value.rank
            else f"`{value.tensor.name}` is one element here",
            call.args[1].span,
        )
    return Number(value.shape[axis])
