"""Combiners: reductions of the author's own, ``combiner f((a, b), (c, d)) init (x, y) = ...``."""

from __future__ import annotations

from collections.abc import Sequence

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.elaborate import build, calls, coerce, rules
from edgekernelbench.ir.elaborate.context import Context
from edgekernelbench.ir.elaborate.values import (
    POISON,
    CombinerValue,
    Number,
    Scalar,
    Scope,
    TupleValue,
    Value,
)

MAX_COMPONENTS = 8
MAX_NODES = 1000
_FORM = "`combiner f((a, b), (c, d)) init (0, 0) = (a + c, b + d)`"


def define(cx: Context, scope: Scope, stmt: surface.CombinerStmt) -> None:
    """Makes a combiner known; what it computes is looked at where it is used."""
    name, count, before = stmt.name, len(stmt.left), len(cx.report.items)
    names = (*stmt.left, *stmt.right)
    doubled = [n for n in names if names.count(n) > 1]
    if name in core.REDUCE_OPS or name in calls.BUILT_IN or name in ("pad", "edge", "dim"):
        text = f"`{name}` is built in"
        cx.error(rules.DEFINED_TWICE, text, stmt.span, ["use another name"])
    elif len(stmt.right) != count:
        text = f"`{name}` takes tuples of {count} and of {len(stmt.right)}"
        cx.error(rules.COMBINER, text, stmt.span, [_FORM])
    elif doubled:
        text = f"`{name}` has two parameters `{doubled[0]}`"
        cx.error(rules.DEFINED_TWICE, text, stmt.span)
    elif count > MAX_COMPONENTS:
        text = f"`{name}` combines tuples of {count}; {MAX_COMPONENTS} are allowed"
        cx.error(rules.COMBINER, text, stmt.span)
    scope.functions[name] = CombinerValue(stmt, scope, len(cx.report.items) == before)


def items_of(cx: Context, scope: Scope, expr: surface.Reduction, count: int) -> list[Scalar] | None:
    """The components of one element; None when it was reported that they do not fit."""
    written = expr.body.items if isinstance(expr.body, surface.TupleExpr) else (expr.body,)
    value: Value = POISON
    if len(written) == 1 and count > 1:  # a macro may yield the tuple
        value = cx.expr(scope, written[0])
        if isinstance(value, TupleValue) and value.lets and len(value.items) == count:
            return [build_block(cx, value, k, expr.span) for k in range(count)]
        if value is POISON:
            return None
        written = (written[0],) * (len(value.items) if isinstance(value, TupleValue) else 1)
    if isinstance(value, TupleValue) and len(value.items) == count:
        found = [coerce.scalar(cx, item, expr.body.span) for item in value.items]
    elif len(written) != count:
        names = ", ".join(f"x{n}" for n in range(count))
        axes = ", ".join(f"{axis.name}: {coerce.show(axis.hi)}" for axis in expr.axes)
        what = "single values" if count == 1 else f"tuples of {count}"
        cx.error(
            rules.COMBINER,
            f"`{expr.op}` combines {what}, the body has {len(written)}",
            expr.body.span,
            [f"`{expr.op}[{axes}]({names})`: what one element alone amounts to"],
        )
        return None
    else:
        found = [calls.scalar(cx, scope, item) for item in written]
    kept = [item for item in found if item is not POISON]
    return kept if len(kept) == len(found) else None


def build_block(cx: Context, value: TupleValue, part: int, span: Span) -> Scalar:
    """One component of a tuple, with the lets it needs around it."""
    item = coerce.scalar(cx, value.items[part], span)
    if isinstance(item, Number) or item is POISON or not value.lets:
        return item  # type: ignore[return-value]
    needed = _needed(value.lets, (item,))
    return core.Block(needed, item, span) if needed else item


def _needed(
    lets: tuple[tuple[core.Var, core.Expr], ...], results: Sequence[core.Expr]
) -> tuple[tuple[core.Var, core.Expr], ...]:
    """The lets that results use, directly or not."""
    used = {n.var.uid for e in results for n in core.walk(e) if isinstance(n, core.VarRef)}
    kept: list[tuple[core.Var, core.Expr]] = []
    for var, value in reversed(lets):
        if var.uid in used:
            kept.append((var, value))
            used |= {n.var.uid for n in core.walk(value) if isinstance(n, core.VarRef)}
    return tuple(reversed(kept))


# ---------------------------------------------------------------- one use of a combiner
def instance(
    cx: Context, found: CombinerValue, items: list[Scalar], span: Span
) -> tuple[core.Combiner, tuple[core.Expr, ...]] | None:
    """The combiner for elements of these dtypes, and the elements in its dtypes.

    A component has the dtype of its element, made a float where the combiner or ``init`` makes it
    one. None when it was reported that there is no such combiner.
    """
    init = _init(cx, found)
    if init is None:
        return None
    dtypes = [_first(item, number) for item, number in zip(items, init, strict=True)]
    for _ in range(2 * len(items) + 2):
        made = _typed(cx, found, dtypes, init, span)
        if made is None:
            return None
        combiner, wanted = made
        if wanted == dtypes:
            return combiner, tuple(
                _element(cx, item, dtype, span) for item, dtype in zip(items, dtypes, strict=True)
            )
        dtypes = wanted
    cx.error(rules.COMBINER, f"the dtypes of `{found.stmt.name}` do not settle", span)
    return None


def _element(cx: Context, item: Scalar, dtype: DType, span: Span) -> core.Expr:
    if isinstance(item, Number):
        return build.const(item.value, dtype, span)
    return build.cast(cx, coerce.widen(cx, item), dtype, span)


def _init(cx: Context, found: CombinerValue) -> list[Number] | None:
    stmt = found.stmt
    value = cx.expr(found.scope, stmt.init)
    if value is POISON:
        return None
    given = value.items if isinstance(value, TupleValue) else (value,)
    if len(given) != len(stmt.left):
        text = f"`init` of `{stmt.name}` has {len(given)} values for {len(stmt.left)} components"
        cx.error(rules.COMBINER, text, stmt.init.span, [_FORM])
        return None
    out: list[Number] = []
    for item in given:
        number = Number(item.value) if isinstance(item, core.Const) else item
        if not isinstance(number, Number):
            text = f"`init` of `{stmt.name}` is not made of numbers"
            cx.error(rules.COMBINER, text, stmt.init.span, ["such as `(-inf, 0)`, sizes too"])
            return None
        out.append(number)
    return out


def _first(item: Scalar, init: Number) -> DType:
    dtype = coerce.natural(item) if isinstance(item, Number) else item.dtype
    dtype, is_float = dtype.promoted, isinstance(init.value, float)
    return DType.F32 if is_float and not dtype.is_float else dtype


def _typed(
    cx: Context, found: CombinerValue, dtypes: list[DType], init: list[Number], span: Span
) -> tuple[core.Combiner, list[DType]] | None:
    """The combiner for these dtypes of its components, and the dtypes that it should have."""
    stmt, inner = found.stmt, Scope(found.scope)
    sides: list[tuple[core.Var, ...]] = []
    for names in (stmt.left, stmt.right):
        sides.append(tuple(cx.fresh(n, d) for n, d in zip(names, dtypes, strict=True)))
        inner.names.update((n, core.VarRef(v)) for n, v in zip(names, sides[-1], strict=True))
    value = _body(cx, stmt, inner, span)
    if value is None:
        return None
    wanted: list[DType] = []
    results: list[core.Expr] = []
    for item, dtype in zip(value.items, dtypes, strict=True):
        scalar = coerce.scalar(cx, item, stmt.body.span)
        if scalar is POISON:
            return None
        result = coerce.widen(cx, coerce.express(cx, scalar, stmt.body.span))
        number = isinstance(scalar, Number) and not result.dtype.is_float
        joined = dtype if number else coerce.join(cx, dtype, result.dtype, stmt.body.span)
        if joined is None:
            return None
        wanted.append(joined)
        results.append(build.cast(cx, result, joined, stmt.body.span))
    start = _start(cx, stmt, init, wanted)
    if start is None or not _closed(cx, stmt, sides, (value.lets, results)):
        return None
    left, right = sides
    lets = _needed(value.lets, results)
    if sum(1 for e in (*(v for _, v in lets), *results) for _ in core.walk(e)) > MAX_NODES:
        text = f"`{stmt.name}` expands to more than {MAX_NODES:,} operations"
        cx.error(rules.COMBINER, text, stmt.span)
        return None
    return core.Combiner(stmt.name, left, right, lets, tuple(results), start), wanted


def _body(cx: Context, stmt: surface.CombinerStmt, inner: Scope, span: Span) -> TupleValue | None:
    """What the combiner yields, as a tuple."""
    if stmt.name in cx.expanding:
        cx.error(rules.RECURSION, f"`{stmt.name}` uses itself", span)
        return None
    cx.expanding.append(stmt.name)
    value = cx.expr(inner, stmt.body)
    cx.expanding.pop()
    if value is POISON:
        return None
    made = value if isinstance(value, TupleValue) else TupleValue((value,))
    if len(made.items) != len(stmt.left):
        text = f"`{stmt.name}` yields {len(made.items)} values for {len(stmt.left)} components"
        cx.error(rules.COMBINER, text, stmt.body.span, [_FORM])
        return None
    return made


def _start(
    cx: Context, stmt: surface.CombinerStmt, init: list[Number], dtypes: list[DType]
) -> tuple[core.Const, ...] | None:
    out: list[core.Const] = []
    for number, dtype in zip(init, dtypes, strict=True):
        if not dtype.is_float:
            low, high = dtype.int_range
            if not low <= number.value <= high:
                text = f"{number.value} in `init` does not fit {dtype.value}, its component's dtype"
                cx.error(rules.LITERAL, text, stmt.init.span)
                return None
        elif dtype is DType.F16 and not coerce.fits_f16(number.value):
            return coerce.beyond_f16(cx, number.value, stmt.init.span)
        out.append(build.const(number.value, dtype, stmt.init.span))
    return tuple(out)


def _closed(
    cx: Context,
    stmt: surface.CombinerStmt,
    sides: list[tuple[core.Var, ...]],
    parts: tuple[tuple[tuple[core.Var, core.Expr], ...], list[core.Expr]],
) -> bool:
    """Whether the combiner uses nothing but its parameters and numbers."""
    lets, results = parts
    nodes = [n for e in (*(v for _, v in lets), *results) for n in core.walk(e)]
    known = {var.uid for side in sides for var in side} | {var.uid for var, _ in lets}
    for node in nodes:
        if isinstance(node, core.Block):
            known |= {var.uid for var, _ in node.lets}
    for node in nodes:
        found = _foreign(node, known)
        if found:
            cx.error(
                rules.COMBINER,
                f"the combiner `{stmt.name}` {found}",
                stmt.span,
                ["give every element what it needs as a component: `f[k: K](x[k], w[k])`"],
            )
            return False
    return True


def _foreign(node: core.Expr, known: set[int]) -> str:
    if isinstance(node, core.Load):
        return f"reads `{node.tensor.name}`"
    if isinstance(node, core.Reduce):
        return "holds a reduction"
    if isinstance(node, core.VarRef) and node.var.uid not in known:
        return f"uses `{node.var.name}`"
    return ""
