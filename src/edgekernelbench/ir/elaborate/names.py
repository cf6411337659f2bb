"""What a name stands for, and what to say when it stands for nothing."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.elaborate import rules
from edgekernelbench.ir.elaborate.context import Context
from edgekernelbench.ir.elaborate.values import (
    POISON,
    Binding,
    Index,
    Number,
    Pending,
    Scope,
    Value,
    View,
)

CONSTANTS = {"inf": math.inf, "pi": math.pi}


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Help lines that suggest names like the one written."""
    close = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.6)
    folded = [k for k in sorted(known) if k.lower() == name.lower() and k not in close]
    close = (folded + close)[:3]
    return [f"did you mean {' or '.join(f'`{c}`' for c in close)}?"] if close else []


def lookup(cx: Context, scope: Scope, expr: surface.Name) -> Value:
    """The value of a bare name."""
    found = scope.find(expr.id)
    if found is None:
        if expr.id in CONSTANTS:
            return Number(CONSTANTS[expr.id])
        return _unknown(cx, scope, expr.id, expr.span)
    if isinstance(found, Index):
        return core.VarRef(found.ref.var, expr.span) if found.value is None else found.value
    value = resolve(cx, found, expr.id, expr.span)
    if isinstance(value, core.VarRef):
        return core.VarRef(value.var, expr.span)
    return value


def lookup_tensor(cx: Context, scope: Scope, expr: surface.Index) -> Value:
    """The tensor that is indexed; poison, reported, when the name is something else."""
    found = scope.find(expr.base)
    span = Span(expr.span.start, min(expr.span.end, expr.span.start + len(expr.base)))
    if found is None:
        return _unknown(cx, scope, expr.base, span)
    if isinstance(found, Index):
        what = "a loop index" if found.loop else "an axis"
        return cx.error(
            rules.WRONG_KIND,
            f"`{expr.base}` is {what} here, not a tensor",
            span,
            [f"rename it: it hides the tensor `{expr.base}`"]
            if _hides_tensor(scope, expr.base)
            else [],
        )
    value = resolve(cx, found, expr.base, span)
    if value is POISON or isinstance(value, View):
        return value
    what = "a compile-time number" if isinstance(value, Number) else "one value"
    return cx.error(rules.WRONG_KIND, f"`{expr.base}` is {what} and has no index", span)


def _hides_tensor(scope: Scope, name: str) -> bool:
    at: Scope | None = scope
    while at is not None:
        if isinstance(at.names.get(name), View | Pending):
            return True
        at = at.parent
    return False


def resolve(cx: Context, found: Binding, name: str, span: Span) -> Value:
    """A binding's value; a stage that comes later is known from the inference of its dtype."""
    if not isinstance(found, Pending):
        assert not isinstance(found, Index)
        return found
    view = cx.previous.get(found.full_name)
    if view is not None:
        return view
    if cx.inferring:
        cx.missed = True
        return POISON
    if found.full_name in cx.failed:
        cx.unresolved.add(name)
        return POISON
    if cx.defining and cx.defining[-1] == found.full_name:
        return cx.error(
            rules.NOT_YET,
            f"`{name}` reads itself outside of a loop",
            span,
            [
                f"a sum over an axis is a reduction: `{name}[..] = sum[k: K](...)`",
                "a recurrence is a loop: "
                f"`seq t: L {{ {name}[t, ..] = ... pad({name}[t - 1, ..], 0) }}`",
            ],
        )
    return cx.error(
        rules.NOT_YET,
        f"`{name}` is read before the stage that defines it",
        span,
        ["move that stage up; inside `seq`, earlier iterations of later stages may be read"],
    )


def _unknown(cx: Context, scope: Scope, name: str, span: Span) -> Value:
    help = nearest(name, scope.visible() | CONSTANTS.keys())
    if cx.expanding:
        help += [
            "a `def` or template sees only names in view where it is written: pass it as argument"
        ]
    return cx.error(rules.UNKNOWN_NAME, f"`{name}` is not defined", span, help)
