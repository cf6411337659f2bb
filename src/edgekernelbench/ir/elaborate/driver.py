"""`elaborate`: a syntax tree to a core program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.diagnostics import Diagnostic, Report
from edgekernelbench.ir.elaborate import coerce, header, rules
from edgekernelbench.ir.elaborate.bodies import function, run_body
from edgekernelbench.ir.elaborate.context import Context, LimitExceeded
from edgekernelbench.ir.elaborate.exprs import HANDLERS
from edgekernelbench.ir.elaborate.stages import Body
from edgekernelbench.ir.elaborate.tables import table
from edgekernelbench.ir.elaborate.values import Scope


@dataclass(frozen=True, slots=True)
class ElaborateResult:
    """A program, or at least one error saying why there is none."""

    program: core.Program | None
    diagnostics: tuple[Diagnostic, ...]


def elaborate(
    kernel: surface.Kernel, sizes: Mapping[str, int | float] | None = None
) -> ElaborateResult:
    """Resolves names, expands macros and templates, checks shapes and types.

    Args:
        kernel: a parsed kernel; its schedule and memory layers are not looked at.
        sizes: values that replace those of header sizes given as numbers; sizes computed from
            them follow.

    Work and result are bounded by the limits in `context`, whatever the text says. Never raises
    for what the text says.
    """
    report = Report()
    cx = Context(report, HANDLERS)
    program = None
    try:
        program = _program(cx, kernel, sizes or {})
    except LimitExceeded:
        if cx.report is not report:  # met while dtypes of a loop were being inferred
            report.add(cx.report.items[-1])
    return ElaborateResult(None if report.has_errors else program, report.sorted())


def _program(cx: Context, kernel: surface.Kernel, given: Mapping[str, int | float]) -> core.Program:
    size_scope = Scope()
    sizes = header.sizes(cx, size_scope, kernel.sizes, given)
    prelude = Scope(size_scope)
    for item in kernel.prelude:
        if isinstance(item, surface.TableStmt):
            table(cx, prelude, item, "")
        else:
            function(cx, prelude, item)
    scope = Scope(prelude)
    inputs = header.tensors(cx, scope, kernel.inputs, "input")
    outputs = header.tensors(cx, scope, kernel.outputs, "output")
    for item in (*kernel.inputs, *kernel.outputs):
        if item.name in prelude.names:
            cx.error(rules.DEFINED_TWICE, f"`{item.name}` is also a table", item.span)
    body = Body(scope, outputs={tensor.name: tensor for tensor in outputs})
    nodes = run_body(cx, body, scope, kernel.compute.body)
    for param in kernel.outputs:
        if param.name in body.outputs and param.name not in body.defined:
            axes = coerce.letters(len(param.dims)) if param.dims else ""
            cx.error(
                rules.OUTPUT_MISSING,
                f"no stage defines the output `{param.name}`",
                param.span,
                [f"add `{param.name}[{axes}] = ...`" if axes else f"add `{param.name} = ...`"],
            )
    return core.Program(
        kernel.name,
        tuple(sizes),
        tuple(inputs),
        tuple(outputs),
        tuple(cx.tables),
        tuple(nodes),
        cx.next_uid,
    )
