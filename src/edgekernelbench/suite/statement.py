"""The text of a task: what an author, person or model, is shown of a workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgekernelbench.suite.formula import evaluate
from edgekernelbench.suite.patterns.registry import Pattern
from edgekernelbench.suite.source import complete_source
from edgekernelbench.suite.tolerance import RULES, Rule, atol_of

if TYPE_CHECKING:
    from edgekernelbench.suite.model import TensorSpec, Workload


def task_statement(workload: Workload) -> str:
    """Markdown: header to copy, reference in NumPy, tensors, tolerance."""
    definition = workload.definition
    sizes = ", ".join(f"{name} = {value}" for name, value in workload.sizes.items())
    const = any(spec.const for spec in workload.input_specs)
    repacked = " (const: known before deployment, may be repacked ahead of the timed call)"
    lines = [
        f"# Task {workload.id}",
        "",
        f"{definition.id}: {definition.formula}",
        *_sentence("Note", definition.notes),
        *_sentence("Of this workload", workload.notes),
        *_sentence("From", workload.source),
        "",
        "The kernel must begin with this header:",
        "",
        "```ekir",
        workload.header() + " {",
        "```",
        "",
        *([f"Sizes: {sizes}.", ""] if sizes else []),
        f"Inputs{repacked if const else ''}:",
        *(_tensor_line(spec) for spec in workload.input_specs),
        *_sentence("Inputs are such that", definition.input_gen),
        "Outputs:",
        *(_tensor_line(spec) for spec in workload.output_specs),
        "",
        *_reference(definition.pattern),
        f"Nominal work: {_operations(workload)}; {workload.bytes_min:,} bytes.",
        f"Tolerance ({workload.tolerance}): {tolerance_text(workload)}",
    ]
    return "\n".join(lines) + "\n"


def _sentence(what: str, text: str) -> tuple[str, ...]:
    return (f"{what}: {text}.",) if text else ()


def _operations(workload: Workload) -> str:
    definition = workload.definition
    if not definition.flops_formula:
        return "an unknown number of operations"
    text = f"{workload.flops:,} operations"
    if not definition.naive_formula:
        return text
    naive = int(evaluate(definition.naive_formula, workload.sizes))
    if any(decl.name == "tw" for decl in definition.inputs):
        return f"{text}, the transform counted as FFT (the sum as it stands: {naive:,})"
    return f"{text}, only taps that meet an input counted (all: {naive:,})"


def _reference(pattern: Pattern) -> tuple[str, ...]:
    kind, language = ("ONNX operators", "") if pattern.text else ("NumPy", "python")
    return (
        f"The reference in {kind} (floats as float64, integers exact):",
        "",
        f"```{language}",
        complete_source(pattern).rstrip(),
        "```",
        "",
    )


def _tensor_line(spec: TensorSpec) -> str:
    shape = ", ".join(str(extent) for extent in spec.shape)
    return f"- {spec.name}: {'const ' if spec.const else ''}{spec.dtype}[{shape}]"


# ---------------------------------------------------------------- tolerance
def tolerance_text(workload: Workload) -> str:
    """The rule by which outputs are judged: one, or one line for each output."""
    rules = {spec.name: _output_rule(spec, workload) for spec in workload.output_specs}
    if len(set(rules.values())) == 1:
        return next(iter(rules.values()))
    return "\n".join(["for each output", *(f"- {name}: {rule}" for name, rule in rules.items())])


def _output_rule(spec: TensorSpec, workload: Workload) -> str:
    rule: Rule = RULES[workload.tolerance]
    if spec.dtype.is_float and (rule.rtol or rule.atol):
        return _float_rule(rule, workload)
    if rule.lsb and not spec.dtype.is_float:
        share = workload.definition.lsb_share
        return (
            f"each element at most {rule.lsb} off, and at most {share:.2%} of the elements off, "
            "also of those whose truth is not zero."
        )
    return "every element equal."


def _float_rule(rule: Rule, workload: Workload) -> str:
    atol = atol_of(rule, workload.accumulation)
    text = (
        f"error at most {rule.rtol:g} * |truth| + {atol:.3g} * rms(truth) on {rule.matched:.1%} "
        f"of the elements, also of those whose truth is not zero, and nowhere beyond {rule.cap:g} "
        "times that."
    )
    if rule.cosine is not None:
        text += f" The cosine between output and truth is at least {rule.cosine}."
    return text
