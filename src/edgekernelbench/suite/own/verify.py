"""Whether a new task can be judged at all: what `ekb suite add` refuses to take in.

`ekb suite check` asks for much more; that a task is accepted does not make it a good one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.check.inputs import check_truth, has_effect
from edgekernelbench.suite.check.model import Notes
from edgekernelbench.suite.check.row import MAX_BYTES
from edgekernelbench.suite.model import Arrays, Workload
from edgekernelbench.suite.own.guard import described, limited
from edgekernelbench.suite.truth import WrongOutput

if TYPE_CHECKING:
    from edgekernelbench.suite.correctness import Correctness

DOUBTS_S = 20.0
MAX_OPERATIONS = 3 * 10**9
INTERPRET_S = 60.0
REFERENCE_S = 60.0
"""What one call of a reference, a twin's function or an input generator may take."""
_SEED = 1
_REDRAWS = (2, 3, 4)


@dataclass(frozen=True, slots=True)
class Sample:
    """One draw of a task and its truth."""

    inputs: Arrays
    truth: Arrays


def check_limits(operations: int, io_bytes: int, where: str, help: str) -> None:
    """Raises UsageError for a task that is too large to be judged in reasonable time."""
    if operations > MAX_OPERATIONS:
        raise UsageError(
            f"{where}: about {operations / 1e9:.1f} G operations; {MAX_OPERATIONS / 1e9:g} G at "
            "most",
            help,
        )
    if io_bytes > MAX_BYTES:
        raise UsageError(
            f"{where}: {io_bytes >> 20} MiB of tensors; {MAX_BYTES >> 20} MiB at most", help
        )


def check_header(workload: Workload, where: str) -> None:
    """Raises UsageError for names that a kernel of the workload could not write."""
    from edgekernelbench.ir.parse import parse

    output = workload.definition.outputs[0].name
    parsed = parse(f"{workload.header()} {{ compute {{ {output} = 0 }} }}")
    if parsed.kernel is None:
        raise UsageError(
            f"{where}: its kernel header cannot be read: {parsed.diagnostics[0].message}",
            "choose other names: letters, digits and _, and no words of the kernel language",
        )


def sample(
    workload: Workload, where: str, help: str, names: Mapping[str, str] | None = None
) -> Sample:
    """A draw and its truth: finite, the same when computed again, and not without the inputs.

    Args:
        help: the way out when the reference itself fails.
        names: what the user calls inputs and outputs, where not as the header does.

    Raises:
        UsageError: it is not so.
    """
    names = names or {}
    first = _drawn(workload, _SEED, where)
    truth = _truth(workload, first, where, help)
    for name, values in truth.items():
        if not values.size:
            raise UsageError(
                f"{where}: output {names.get(name, name)!r} has no elements: {list(values.shape)}",
                "remove that output, or choose other shapes",
            )
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise UsageError(
                f"{where}: output {names.get(name, name)!r} has NaN or infinite values",
                "restrict the inputs to where it is defined (--range NAME=LOW,HIGH, or draw= in a "
                "Python file)",
            )
    again = _truth(workload, first, where, help)
    for name, values in truth.items():
        if not np.array_equal(values, again[name]):
            raise UsageError(
                f"{where}: output {names.get(name, name)!r} differs from call to call",
                "a task must be deterministic: take random numbers as inputs",
            )
    _check_dependence(workload, first, truth, names, where, help)
    return Sample(first, truth)


def _drawn(workload: Workload, seed: int, where: str) -> Arrays:
    try:
        with limited(REFERENCE_S):
            return workload.inputs(seed, const_seed=_SEED)
    except Exception as error:  # a draw= function of the user's may raise anything
        raise UsageError(
            f"{where}: inputs cannot be drawn: {described(error)}",
            "say how with --range NAME=LOW,HIGH for an ONNX model, draw= in a Python file",
        ) from error


def _truth(workload: Workload, inputs: Arrays, where: str, help: str) -> Arrays:
    try:
        with np.errstate(all="ignore"), limited(REFERENCE_S):
            return workload.truth(inputs, cache=False)
    except WrongOutput as error:
        raise UsageError(
            f"{where}: {error.fault}", "put shape or dtype right, there or in the function"
        ) from error
    except Exception as error:  # the reference may raise anything
        raise UsageError(f"{where}: the reference fails: {described(error)}", help) from error


def _check_dependence(
    workload: Workload,
    first: Arrays,
    truth: Arrays,
    names: Mapping[str, str],
    where: str,
    help: str,
) -> None:
    """Each input that is no constant changes an output, and each output is changed."""
    free = [spec.name for spec in workload.input_specs if not spec.const]
    others = [_drawn(workload, seed, where) for seed in _REDRAWS]
    moved: set[str] = set()
    for name in free:
        changed: set[str] = set()
        for other in others:
            outputs = _truth(workload, {**first, name: other[name]}, where, help)
            changed |= {n for n in truth if _differs(outputs[n], truth[n])}
            if len(changed) == len(truth):
                break
        if not changed and name not in workload.definition.pattern.inert:
            raise UsageError(
                f"{where}: no output depends on input {names.get(name, name)!r}",
                "remove that input, or give it a range in which it matters",
            )
        moved |= changed
    still = [name for name in truth if name not in moved]
    if still:
        raise UsageError(
            f"{where}: output {names.get(still[0], still[0])!r} depends on no input",
            "remove that output: there is nothing to compute at run time",
        )


def _differs(output: np.ndarray, truth: np.ndarray) -> bool:
    """By more than rounding in float64: an input that cancels has no effect."""
    if truth.dtype.kind != "f":
        return not np.array_equal(output, truth)
    return bool(np.abs(output - truth).max() > 1e-9 * np.abs(truth).max())


def doubts(workload: Workload) -> list[str]:
    """What of `ekb suite check` tells a task from a dead one, found wanting, in words.

    Inputs beyond those that `DOUBTS_S` seconds suffice for are not tried.
    """
    notes = Notes()
    began = time.monotonic()
    try:
        with np.errstate(all="ignore"), limited(REFERENCE_S):
            inputs = workload.inputs(_SEED)
            truth = workload.truth(inputs, cache=False)
            check_truth(workload, truth, notes)
            told = [finding.message for finding in notes.findings]
            for spec in workload.input_specs:
                inert = spec.name in workload.definition.pattern.inert
                if inert or time.monotonic() - began > DOUBTS_S:
                    continue
                if not has_effect(workload, spec, inputs, truth):
                    kind = "const input" if spec.const else "input"
                    told.append(f"redrawing {kind} {spec.name} leaves the old result right")
    except Exception as error:  # at other seeds the user's code may fail after all
        return [described(error)]
    return told


# ---------------------------------------------------------------- second opinions
def twin_verdict(workload: Workload, drawn: Sample, where: str, help: str) -> Correctness | None:
    """ONNX Runtime's result of the twin against the truth; None without a twin.

    Raises:
        UsageError: the twin cannot be run, or yields other shapes or dtypes than declared.
    """
    from edgekernelbench.suite.twin import run_twin

    try:
        with limited(REFERENCE_S):
            model = workload.twin(drawn.inputs)
        if model is None:
            return None
        outputs = run_twin(model, drawn.inputs)
    except Exception as error:  # ONNX Runtime's exceptions have no common base
        raise UsageError(
            f"{where}: ONNX Runtime cannot run the model: {described(error)}", help
        ) from error
    for spec in workload.output_specs:
        got = outputs.get(spec.name)
        if got is None or got.shape != spec.shape or got.dtype != spec.dtype.numpy:
            told = "nothing" if got is None else f"{got.dtype}{list(got.shape)}"
            raise UsageError(
                f"{where}: ONNX Runtime yields {told} for output {spec.name!r}, not "
                f"{spec.dtype}{list(spec.shape)}",
                help,
            )
    return workload.compare(outputs, drawn.truth)


def program_fault(workload: Workload, text: str, drawn: Sample) -> str:
    """Why kernel text is not a right program of the workload; empty if it is.

    Right means: verified, and the interpreter's result is the truth. A program that takes the
    interpreter more than `INTERPRET_S` seconds is only verified.
    """
    from edgekernelbench.ir.check import check_text
    from edgekernelbench.ir.diagnostics import render
    from edgekernelbench.ir.interpret import InterpretError, interpret

    checked = check_text(text)
    if checked.program is None:
        errors = [d for d in checked.diagnostics if d.severity == "error"]
        return render(errors[0], text)
    began = time.monotonic()
    try:
        results = interpret(checked.program, drawn.inputs, mode="f64", limit_s=INTERPRET_S)
    except InterpretError as error:
        return "" if time.monotonic() - began >= INTERPRET_S else str(error)
    outputs = {s.name: results[s.name].astype(s.dtype.numpy) for s in workload.output_specs}
    verdict = workload.compare(outputs, drawn.truth)
    return "" if verdict.passed else f"it differs from the reference: {reasons(verdict)}"


def reasons(verdict: Correctness) -> str:
    return "; ".join(f"{d.name}: {d.reason}" for d in verdict.outputs if d.reason)


def operations_of(text: str) -> int:
    """Operations of a verified program, as its plainest loops have them."""
    from edgekernelbench.ir.check import check_text
    from edgekernelbench.lowering.facts import function_facts
    from edgekernelbench.lowering.plain import lower_plainly
    from edgekernelbench.targets.host import host_target

    program = check_text(text).program
    assert program is not None, "checked before"
    return round(function_facts(lower_plainly(program, host_target()).main).flops)
