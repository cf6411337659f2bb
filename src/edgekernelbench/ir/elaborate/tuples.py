"""Several stages at once, one for each value of a tuple: ``m[i: M], s[i: M] = f[k: K](x, 1)``."""

from __future__ import annotations

from dataclasses import replace

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.elaborate import coerce, combiners, rules
from edgekernelbench.ir.elaborate.context import Context
from edgekernelbench.ir.elaborate.stages import Body, claim, stage
from edgekernelbench.ir.elaborate.values import POISON, Poison, Scalar, Scope, TupleValue


def stages_of(
    cx: Context,
    body: Body,
    scope: Scope,
    lefts: tuple[surface.Left, ...],
    value: surface.Expr,
    span: Span,
) -> list[core.Node]:
    """A stage for each left side. Each has the whole expression, of which it takes a component;
    the lowering computes them together."""
    if not _same_axes(cx, lefts, span):
        _silence(cx, body, lefts)
        return []
    nodes: list[core.Node] = []
    for number, left in enumerate(lefts):
        stmt = surface.StageStmt((left.name,), left.dtype, left.axes, value, span, left.span)
        if not left.axes:
            stmt = replace(stmt, axes=None)

        def pick(inner: Scope, number: int = number) -> Scalar | Poison:
            return _component(cx, inner, value, number, [left.name for left in lefts])

        before = len(cx.report.items)
        nodes += stage(cx, body, scope, stmt, pick)
        if len(cx.report.items) > before and cx.report.has_errors:
            _silence(cx, body, lefts[number + 1 :])
            break
    return nodes


def _component(
    cx: Context, scope: Scope, expr: surface.Expr, number: int, names: list[str]
) -> Scalar | Poison:
    value = cx.expr(scope, expr)
    if value is POISON:
        return POISON
    if not isinstance(value, TupleValue):
        return cx.error(
            rules.TEMPLATE,
            "only a template or a tuple defines several stages at once, and "
            f"`{coerce.show(expr)}` is none",
            expr.span,
            [f"write one stage for each of {', '.join(names)}"],
        )
    if len(value.items) != len(names):
        text = f"{len(names)} names for a tuple of {len(value.items)}"
        return cx.error(rules.TUPLE, text, expr.span)
    return combiners.build_block(cx, value, number, expr.span)


def _same_axes(cx: Context, lefts: tuple[surface.Left, ...], span: Span) -> bool:
    first = [axis.name for axis in lefts[0].axes]
    for left in lefts[1:]:
        names = [axis.name for axis in left.axes]
        if names != first:
            cx.error(
                rules.LEFT_SIDE,
                f"`{lefts[0].name}[{', '.join(first)}]` and `{left.name}[{', '.join(names)}]` "
                "are defined at once with different axes",
                span,
                ["give every left side the same axes, in the same order"],
            )
            return False
    return True


def _silence(cx: Context, body: Body, lefts: tuple[surface.Left, ...]) -> None:
    for left in lefts:
        claim(cx, body, left.name, left.span)
        body.scope.names[left.name] = POISON
        cx.failed.add(body.full_name(left.name))
