"""Templates: a named body of stages, instantiated for each bind ``a = f(x, w)``."""

from __future__ import annotations

from collections.abc import Callable

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.elaborate import build, coerce, rules
from edgekernelbench.ir.elaborate.context import MAX_TEMPLATE_DEPTH, Context
from edgekernelbench.ir.elaborate.stages import Body, claim
from edgekernelbench.ir.elaborate.values import (
    POISON,
    Number,
    Scope,
    TemplateValue,
    TupleValue,
    Value,
    View,
)

_ARGUMENT_NODES = 32
RunBody = Callable[[Context, Body, Scope, tuple[surface.Stmt, ...]], list[core.Node]]


def bind(
    cx: Context,
    body: Body,
    scope: Scope,
    stmt: surface.StageStmt,
    template: TemplateValue,
    run: RunBody,
) -> list[core.Node]:
    """The stages of one instance; ``run`` elaborates the template's body."""
    assert isinstance(stmt.value, surface.Call)
    names, made = stmt.targets, template.stmt
    ok = True
    for name in names:
        ok &= claim(cx, body, name, stmt.name_span)
    arguments = _arguments(cx, scope, stmt.value)
    if not _counts_fit(cx, stmt, stmt.value, made) or not ok or arguments is None:
        _silence(cx, body, names)
        return []
    if made.name in cx.templates:
        cx.error(rules.RECURSION, f"template `{made.name}` binds itself", stmt.value.span)
        _silence(cx, body, names)
        return []
    if len(cx.templates) >= MAX_TEMPLATE_DEPTH:
        cx.stop(f"templates nest more than {MAX_TEMPLATE_DEPTH} deep", stmt.value.span)
    inner = _instance(body, template, names, arguments)
    cx.templates.append(made.name)
    cx.expanding.append(made.name)
    nodes = run(cx, inner, inner.scope, made.body)
    cx.expanding.pop()
    cx.templates.pop()
    _export(cx, body, inner, stmt, made)
    return nodes


def _instance(
    body: Body, template: TemplateValue, names: tuple[str, ...], arguments: list[Value]
) -> Body:
    params = Scope(template.scope)
    params.names.update(zip(template.stmt.params, arguments, strict=True))
    local = ".".join([body.prefix + names[0], ""])
    inner = Body(Scope(params), local)
    for result, name in zip(template.stmt.results, names, strict=True):
        inner.targets[result] = body.full_name(name)
        if name in body.outputs:
            inner.outputs[result] = body.outputs[name]
    return inner


def _counts_fit(
    cx: Context, stmt: surface.StageStmt, call: surface.Call, made: surface.TemplateStmt
) -> bool:
    signature = f"`{made.name}({', '.join(made.params)}) -> ({', '.join(made.results)})`"
    if len(call.args) != len(made.params):
        cx.error(
            rules.ARGUMENTS,
            f"template `{made.name}` takes {coerce.counted(len(made.params), 'argument')}, "
            f"{len(call.args)} given",
            call.span,
            [f"it is {signature}"],
        )
        return False
    if len(stmt.targets) != len(made.results):
        cx.error(
            rules.RESULTS,
            f"template `{made.name}` has {coerce.counted(len(made.results), 'result')}, "
            f"but {coerce.counted(len(stmt.targets), 'name')} here",
            stmt.name_span,
            [f"it is {signature}"],
        )
        return False
    return True


def _arguments(cx: Context, scope: Scope, call: surface.Call) -> list[Value] | None:
    out: list[Value] = []
    for arg in call.args:
        value = cx.expr(scope, arg)
        if isinstance(value, TupleValue):
            cx.error(rules.TEMPLATE, "a tuple cannot be a template's argument", arg.span)
            value = POISON
        elif value is not POISON and not isinstance(value, Number) and not _may_repeat(value):
            cx.error(
                rules.TEMPLATE,
                f"`{coerce.show(arg)}` is computed; a template takes tensors, slices and numbers",
                arg.span,
                ["make it a stage and pass its name"],
            )
            value = POISON
        out.append(value)
    return out


def _may_repeat(value: View | core.Expr) -> bool:
    parts = value.prefix if isinstance(value, View) else (value,)
    return all(build.is_cheap(part, _ARGUMENT_NODES) for part in parts)


def _silence(cx: Context, body: Body, names: tuple[str, ...]) -> None:
    for name in names:
        body.scope.names[name] = POISON
        cx.failed.add(body.full_name(name))


def _export(
    cx: Context, body: Body, inner: Body, stmt: surface.StageStmt, made: surface.TemplateStmt
) -> None:
    """Makes the results readable under the names they are bound to."""
    for result, name in zip(made.results, stmt.targets, strict=True):
        found = inner.scope.names.get(result)
        if found is None or result not in inner.defined:
            cx.error(
                rules.RESULTS,
                f"template `{made.name}` never defines its result `{result}`",
                made.span,
                [f"add a stage `{result}[...] = ...` to it"],
            )
            _silence(cx, body, (name,))
        elif isinstance(found, View):
            body.scope.names[name] = found
        else:
            _silence(cx, body, (name,))
