"""Statements of a body in order, and loops."""

from __future__ import annotations

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.diagnostics import Report
from edgekernelbench.ir.elaborate import coerce, combiners, rules, templates, tuples
from edgekernelbench.ir.elaborate.context import Context
from edgekernelbench.ir.elaborate.exprs import described, number
from edgekernelbench.ir.elaborate.reductions import reused
from edgekernelbench.ir.elaborate.stages import Body, is_size, learn, stage
from edgekernelbench.ir.elaborate.tables import table
from edgekernelbench.ir.elaborate.values import (
    POISON,
    Index,
    LoopInfo,
    Macro,
    Number,
    Pending,
    Scope,
    TemplateValue,
    View,
)

_MAX_PASSES = 32


def run_body(
    cx: Context, body: Body, scope: Scope, stmts: tuple[surface.Stmt, ...]
) -> list[core.Node]:
    """A whole body: all names of its stages are known from the start, their values later."""
    for name in _stage_names(stmts):
        if name not in body.scope.names:
            body.scope.names[name] = Pending(body.full_name(name))
    return _statements(cx, body, scope, stmts)


def _stage_names(stmts: tuple[surface.Stmt, ...]) -> list[str]:
    out: list[str] = []
    for stmt in stmts:
        if isinstance(stmt, surface.StageStmt):
            out += stmt.targets
        elif isinstance(stmt, surface.TupleStmt):
            out += [left.name for left in stmt.lefts]
        elif isinstance(stmt, surface.LoopStmt):
            out += _stage_names(stmt.body)
    return out


def _statements(
    cx: Context, body: Body, scope: Scope, stmts: tuple[surface.Stmt, ...]
) -> list[core.Node]:
    nodes: list[core.Node] = []
    for stmt in stmts:
        match stmt:
            case surface.StageStmt():
                nodes += _stage_or_bind(cx, body, scope, stmt)
            case surface.LoopStmt():
                nodes += loop(cx, body, scope, stmt)
            case surface.LetStmt():
                _let(cx, body, scope, stmt)
            case surface.TableStmt():
                table(cx, scope, stmt, body.prefix)
            case surface.TupleStmt():
                nodes += tuples.stages_of(cx, body, scope, stmt.lefts, stmt.value, stmt.span)
            case surface.DefStmt() | surface.TemplateStmt() | surface.CombinerStmt():
                function(cx, scope, stmt)
    return nodes


def function(
    cx: Context,
    scope: Scope,
    stmt: surface.DefStmt | surface.CombinerStmt | surface.TemplateStmt,
) -> None:
    """Defines a macro, combiner or template in ``scope``."""
    if stmt.name in scope.functions:
        cx.error(rules.DEFINED_TWICE, f"`{stmt.name}` is defined twice", stmt.span)
        return
    if isinstance(stmt, surface.CombinerStmt):
        combiners.define(cx, scope, stmt)
        return
    doubled = [p for p in stmt.params if stmt.params.count(p) > 1]
    if doubled:
        text = f"`{stmt.name}` has two parameters `{doubled[0]}`"
        cx.error(rules.DEFINED_TWICE, text, stmt.span)
    make = Macro if isinstance(stmt, surface.DefStmt) else TemplateValue
    scope.functions[stmt.name] = make(stmt, scope)  # type: ignore[arg-type]


def _let(cx: Context, body: Body, scope: Scope, stmt: surface.LetStmt) -> None:
    taken = "the name of a stage or tensor"
    if body.is_kernel and is_size(body.scope, stmt.name):
        taken = "a size"
    elif not isinstance(scope.names.get(stmt.name), View | Pending) and (
        stmt.name not in body.defined
    ):
        taken = ""
    if taken:
        text = f"`{stmt.name}` is already {taken}"
        cx.error(rules.DEFINED_TWICE, text, stmt.span, ["use another name"])
        return
    value = cx.expr(scope, stmt.value)
    if isinstance(value, core.Const):
        value = Number(value.value)
    if value is not POISON and not isinstance(value, Number):
        text = coerce.show(stmt.value)
        cx.error(
            rules.LET_STAGE,
            f"`let {stmt.name}` is not a number at compile time",
            stmt.span,
            [f"without `let` it is a scalar stage: `{stmt.name} = {text}`"],
        )
        value = POISON
    scope.names[stmt.name] = value


def _stage_or_bind(
    cx: Context, body: Body, scope: Scope, stmt: surface.StageStmt
) -> list[core.Node]:
    value = stmt.value
    found = scope.function(value.fn) if isinstance(value, surface.Call) else None
    if isinstance(found, TemplateValue) and stmt.axes is None and stmt.dtype is None:
        return templates.bind(cx, body, scope, stmt, found, run_body)
    if len(stmt.targets) == 1:
        return stage(cx, body, scope, stmt)
    lefts = tuple(surface.Left(name, None, (), stmt.name_span) for name in stmt.targets)
    return tuples.stages_of(cx, body, scope, lefts, value, stmt.span)


# ---------------------------------------------------------------- loops
def loop(cx: Context, body: Body, scope: Scope, stmt: surface.LoopStmt) -> list[core.Node]:
    """A loop. The outermost one is elaborated until the dtypes of its histories are known."""
    if cx.loop_depth > 0:
        return _loop(cx, body, scope, stmt)
    cx.loop_depth += 1
    try:
        return _outermost(cx, body, scope, stmt)
    finally:
        cx.loop_depth -= 1
        cx.previous = {}


def _outermost(cx: Context, body: Body, scope: Scope, stmt: surface.LoopStmt) -> list[core.Node]:
    """Histories may be read before the text that defines them, so their dtypes are found by
    repetition: each pass knows the dtypes that the one before it saw."""
    start = cx.mark(body)
    report, known, failed = cx.report, {}, cx.failed
    for _ in range(_MAX_PASSES):
        cx.previous, cx.declared = known, {}
        cx.inferring, cx.missed, cx.report = True, False, Report(report.limit)
        nodes = _loop(cx, body, scope, stmt)
        trial, seen, missed = cx.report, cx.declared, cx.missed
        cx.inferring, cx.report = False, report
        settled = not known or seen == known
        if settled and not missed and not trial.has_errors:
            for item in trial.items:
                report.add(item)
            learn(cx, nodes)
            return nodes
        failed = set(cx.failed)
        cx.reset(start, body)
        if seen == known:
            break
        known = seen
    # Once more for the errors, or because the dtypes do not settle.
    cx.previous, cx.declared, cx.failed, cx.unresolved = known, {}, failed, set()
    nodes = _loop(cx, body, scope, stmt)
    changed = {n for n, view in known.items() if cx.declared.get(n) != view}
    undecided = sorted(cx.unresolved or (cx.failed - start.failed) or changed)
    if undecided and not report.has_errors:
        cx.error(
            rules.DTYPE_CYCLE,
            f"the dtype of `{undecided[0]}` does not follow from its definition",
            stmt.axis.span,
            [f"state it: `{undecided[0]}: f32[...] = ...`"],
        )
    return nodes


def _loop(cx: Context, body: Body, scope: Scope, stmt: surface.LoopStmt) -> list[core.Node]:
    bounds = _bounds(cx, scope, stmt)
    inner = Scope(scope)
    taken = scope.find(stmt.axis.name)
    if isinstance(taken, Index):
        reused(cx, stmt.axis, taken)
    lo, hi = bounds or (0, 1)
    var = cx.fresh(stmt.axis.name)
    cx.ranges.bind(var, lo, hi - 1)
    inner.names[stmt.axis.name] = Index(
        core.VarRef(var, stmt.axis.span), LoopInfo(stmt.kind, lo, hi)
    )
    cx.loop_depth += 1
    nodes = _statements(cx, body, inner, stmt.body)
    cx.loop_depth -= 1
    if bounds is None or not nodes:
        return []
    return [core.Loop(stmt.kind, var, lo, hi, stmt.reverse, tuple(nodes), stmt.span)]


def _bounds(cx: Context, scope: Scope, stmt: surface.LoopStmt) -> tuple[int, int] | None:
    axis = stmt.axis
    lo = 0 if axis.lo is None else number(cx, scope, axis.lo, "the loop bound")
    hi = number(cx, scope, axis.hi, "the loop bound")
    if lo is None or hi is None:
        return None
    for value, expr in ((lo, axis.lo), (hi, axis.hi)):
        if isinstance(value, float | bool) and expr is not None:
            text = f"the loop bound{described(expr, value)}"
            cx.error(rules.LOOP_BOUNDS, text, expr.span)
            return None
    assert isinstance(lo, int) and isinstance(hi, int)
    if not 0 <= lo < hi <= coerce.S32_HIGH:
        cx.error(
            rules.LOOP_BOUNDS,
            f"`{stmt.kind} {axis.name}` would run over {lo}..{hi}",
            axis.span,
            ["bounds start at 0 or above, and the second is larger; `reversed` runs downwards"],
        )
        return None
    return lo, hi
