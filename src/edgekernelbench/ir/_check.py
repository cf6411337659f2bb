"""Checks that need the whole tree: sections, holes, and the depth of expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from edgekernelbench.ir import _rules as rules
from edgekernelbench.ir import surface as s
from edgekernelbench.ir._build import File, Layer
from edgekernelbench.ir.diagnostics import Report, Span
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.words import DTYPE_ALIASES

MAX_DEPTH = 200


def assemble(file: File, report: Report) -> s.Kernel | None:
    """The kernel of a file, or None when its sections or expressions are not legal."""
    compute = _compute(file, report)
    schedules = _layers(file, "schedule", report)
    memories = _layers(file, "memory", report)
    names = _defined(file)
    for root in (*file.prelude, *file.sizes, *file.inputs, *file.outputs, *file.sections):
        _walk(root, isinstance(root, Layer), names, report)
    if compute is None or report.has_errors:
        return None
    return s.Kernel(
        file.prelude,
        file.name,
        file.sizes,
        file.inputs,
        file.outputs,
        compute,
        tuple(s.ScheduleLayer(x.target, x.lines, x.span) for x in schedules),  # type: ignore[arg-type]
        tuple(s.MemoryLayer(x.target, x.lines, x.span) for x in memories),  # type: ignore[arg-type]
        file.span,
    )


def _compute(file: File, report: Report) -> s.ComputeLayer | None:
    layers = [x for x in file.sections if isinstance(x, s.ComputeLayer)]
    if not layers:
        report.error(
            rules.NO_COMPUTE,
            f"kernel `{file.name}` has no compute section",
            file.name_span,
            ["add `compute { ... }`"],
        )
        return None
    for extra in layers[1:]:
        report.error(rules.SECTION, "a second compute section", extra.span)
    return layers[0]


def _layers(file: File, kind: str, report: Report) -> list[Layer]:
    out: list[Layer] = []
    for layer in file.sections:
        if not isinstance(layer, Layer) or layer.kind != kind:
            continue
        if layer.target not in s.TARGET_NAMES:
            report.error(
                rules.TARGET,
                f"`{layer.target}` is not a target",
                layer.target_span,
                [f"write `{kind} for {name}`" for name in s.TARGET_NAMES],
            )
        elif any(layer.target == other.target for other in out):
            report.error(
                rules.SECTION, f"a second `{kind} for {layer.target}` section", layer.target_span
            )
        else:
            out.append(layer)
    return out


def _defined(file: File) -> set[str]:
    """Names of the macros and templates of a file."""
    out: set[str] = set()
    stack: list[Any] = [*file.prelude, *file.sections]
    while stack:
        node = stack.pop()
        if isinstance(node, s.DefStmt | s.CombinerStmt | s.TemplateStmt):
            out.add(node.name)
        if isinstance(node, s.ComputeLayer | s.LoopStmt | s.TemplateStmt):
            stack += node.body
    return out


def _walk(root: Any, holes: bool, names: set[str], report: Report) -> None:
    """Depth, holes and casts of everything below a node, without recursion."""
    stack: list[tuple[Any, int]] = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            report.error(
                rules.TOO_DEEP,
                f"this expression is nested more than {MAX_DEPTH} deep",
                node.span,
                ["cut it into several stages, or into `let`s of a block"],
            )
            return
        if isinstance(node, s.Hole) and not holes:
            report.error(
                rules.HOLE,
                "a hole outside a schedule or memory layer",
                node.span,
                ["write one number here"],
            )
        if isinstance(node, s.Call) and node.fn in DTYPE_ALIASES and node.fn not in names:
            dtype = DTYPE_ALIASES[node.fn]
            report.error(
                rules.DTYPE,
                f"`{node.fn}` is no dtype of the language",
                Span(node.span.start, node.span.start + len(node.fn)),
                [
                    f"write `{dtype}(...)`"
                    if dtype
                    else f"dtypes are {', '.join(d.value for d in DType)}"
                ],
            )
        stack += [(child, depth + 1) for child in _children(node)]


_FIELDS: dict[type, tuple[str, ...]] = {}


def _children(node: Any) -> Iterator[Any]:
    names = _FIELDS.get(type(node))
    if names is None:
        skip = ("span", "name_span", "target_span")
        names = tuple(f.name for f in fields(node) if f.name not in skip)
        _FIELDS[type(node)] = names
    for name in names:
        value = getattr(node, name)
        if isinstance(value, tuple):
            yield from (x for x in value if hasattr(x, "span"))
        elif hasattr(value, "span"):
            yield value
