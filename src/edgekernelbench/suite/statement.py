"""The text of a task: what an author, person or model, is shown of a workload."""

from __future__ import annotations

import dis
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from edgekernelbench.suite.patterns.registry import Pattern
from edgekernelbench.suite.tolerance import RULES, Rule, atol_of

if TYPE_CHECKING:
    from edgekernelbench.suite.model import TensorSpec, Workload


def task_statement(workload: Workload) -> str:
    """Markdown: header to copy, reference in NumPy, tensors, tolerance."""
    definition = workload.definition
    sizes = ", ".join(f"{name} = {value}" for name, value in workload.sizes.items())
    lines = [
        f"# Task {workload.id}",
        "",
        f"{definition.id}: {definition.formula}",
        *([f"Note: {definition.notes}."] if definition.notes else []),
        f"From: {workload.source}.",
        "",
        "The kernel must begin with this header:",
        "",
        "```ekir",
        workload.header() + " {",
        "```",
        "",
        *([f"Sizes: {sizes}.", ""] if sizes else []),
        "Inputs (const: known before deployment, may be repacked ahead of the timed call):",
        *(_tensor_line(spec) for spec in workload.input_specs),
        "Outputs:",
        *(_tensor_line(spec) for spec in workload.output_specs),
        "",
        *_reference(definition.pattern),
        f"Nominal work: {_operations(workload)}, {workload.bytes_min:,} bytes.",
        f"Tolerance ({workload.tolerance}): {tolerance_text(workload)}",
    ]
    return "\n".join(lines) + "\n"


def _operations(workload: Workload) -> str:
    known = bool(workload.definition.flops_formula)
    return f"{workload.flops:,} operations" if known else "an unknown number of operations"


def _reference(pattern: Pattern) -> tuple[str, ...]:
    kind, language = ("ONNX operators", "") if pattern.text else ("NumPy", "python")
    return (
        f"The reference in {kind} (floats as float64, integers exact):",
        "",
        f"```{language}",
        reference_source(pattern).rstrip(),
        "```",
        "",
    )


def _tensor_line(spec: TensorSpec) -> str:
    shape = ", ".join(str(extent) for extent in spec.shape)
    return f"- {spec.name}: {'const ' if spec.const else ''}{spec.dtype}[{shape}]"


def tolerance_text(workload: Workload) -> str:
    """The rule by which outputs are judged, in one or two sentences."""
    rule: Rule = RULES[workload.tolerance]
    share = workload.definition.lsb_share
    if rule.lsb:
        return f"each element at most {rule.lsb} off, and at most {share:.2%} of the elements off."
    if rule.rtol == rule.atol == 0:
        return "every element equal."
    atol = atol_of(rule, workload.accumulation)
    text = (
        f"error at most {rule.rtol:g} * |truth| + {atol:.3g} * rms(truth) on "
        f"{rule.matched:.1%} of the elements, and nowhere beyond {rule.cap:g} times that."
    )
    if rule.cosine is not None:
        text += f" The cosine between output and truth is at least {rule.cosine}."
    return text


def reference_source(pattern: Pattern) -> str:
    """The text of the reference and, before it, of the helpers that it calls, as written."""
    if pattern.text:
        return pattern.text
    functions = [*_helpers(pattern.reference), pattern.reference]
    return "\n\n".join(_source(function) for function in functions)


def _source(function: Callable[..., Any]) -> str:
    """The function's text without its decorator and formatting remarks."""
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(line.removesuffix("  # fmt: skip") for line in lines[start:]) + "\n"


def _helpers(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Functions of the suite or its own file that it calls, callees before callers, each once."""
    seen: set[Callable[..., Any]] = {function}
    own = function.__module__

    def visit(caller: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
        assert isinstance(caller, FunctionType)
        for name in _global_names(caller.__code__):
            callee = caller.__globals__.get(name)
            if isinstance(callee, Pattern):
                callee = callee.reference
            if not isinstance(callee, FunctionType) or callee in seen:
                continue
            if callee.__module__.startswith(("edgekernelbench.suite.patterns", own)):
                seen.add(callee)
                yield from visit(callee)
                yield callee

    yield from visit(function)


def _global_names(code: CodeType) -> Iterator[str]:
    """Not ``co_names``, which holds attributes too: ``np.cross`` is no call of a ``cross``."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)
