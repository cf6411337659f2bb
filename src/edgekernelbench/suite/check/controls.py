"""Negative controls and cheaper precisions: what must fail, fails."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.check.inputs import rounded
from edgekernelbench.suite.check.model import Notes
from edgekernelbench.suite.controls import Sample, controls
from edgekernelbench.suite.model import Arrays, Workload
from edgekernelbench.suite.tolerance import ROUNDING

EVERYWHERE = ("zero", "constant", "poison", "stale")
TF32_BITS = 10
HALF_OF_F16 = 5
"""Bits of mantissa of a cheaper copy of f16 inputs: half of those of f16."""


MANY_BYTES = 0.25
"""Share of a task's bytes from which on a constant in a narrower format would save time."""


def check_controls(sample: Sample, notes: Notes) -> None:
    """Every control of every output of one draw."""
    workload = sample.workload
    right = workload.compare(rounded(workload, sample.truth), sample.truth)
    reasons = "; ".join(f"{d.name}: {d.reason}" for d in right.outputs if d.reason)
    notes.expect("rounded", right.passed, f"seed {sample.seed}: {reasons}")
    applied: dict[str, set[str]] = {spec.name: set() for spec in workload.output_specs}
    for control in controls(sample):
        applied[control.output].add(control.kind)
        notes.applied[f"control:{control.kind}"] += 1
        verdict = workload.compare(control.outputs, sample.truth)
        told = f"{control.kind} of {control.output} passes, seed {sample.seed}"
        notes.expect("control", not verdict.passed, told)
    exempt = set(workload.definition.pattern.exempt)
    for output, kinds in applied.items():
        missing = set(EVERYWHERE) - kinds - exempt
        notes.expect("control", not missing, f"{output}: {', '.join(sorted(missing))} not applied")


def check_precision(workload: Workload, inputs: Arrays, truth: Arrays, notes: Notes) -> None:
    """Inputs in a cheaper format, all else exact, must leave the tolerance."""
    if workload.tolerance.startswith(("int", "exact")):
        _check_narrow_weights(workload, inputs, truth, notes)
        return
    if workload.tolerance == ROUNDING:
        notes.skipped["precision"] = "it rounds to integers: cheaper inputs may give the same ones"
        return
    bits = HALF_OF_F16 if workload.tolerance.startswith("f16") else TF32_BITS
    cheap = {name: with_mantissa(array, bits) for name, array in inputs.items()}
    if all(np.array_equal(cheap[name], inputs[name]) for name in inputs):
        notes.skipped["precision"] = f"the inputs have no more than {bits} bits"
        return
    changed = workload.truth(cheap, cache=False)
    verdict = workload.compare(rounded(workload, changed), truth)
    told = f"inputs of {bits} bits pass, worst error {verdict.worst_error:.3g} of the allowed one"
    notes.expect("precision", not verdict.passed, told)


def _check_narrow_weights(workload: Workload, inputs: Arrays, truth: Arrays, notes: Notes) -> None:
    """Constants that most bytes lie in must not fit into a narrower format: packed into it before
    the timed call, they would take a part of the time."""
    bits = HALF_OF_F16 if workload.dtype == "f16" else TF32_BITS
    whole = sum(array.nbytes for array in (*inputs.values(), *truth.values()))
    for spec in workload.input_specs:
        given = inputs[spec.name]
        if not spec.const or not spec.dtype.is_float or given.nbytes < MANY_BYTES * whole:
            continue
        changed = workload.truth({**inputs, spec.name: with_mantissa(given, bits)}, cache=False)
        verdict = workload.compare(rounded(workload, changed), truth)
        notes.expect("precision", not verdict.passed, f"{spec.name} of {bits} bits passes")


def with_mantissa(array: np.ndarray, bits: int) -> np.ndarray:
    """Floats rounded to that many bits of mantissa, to even; integers as they are."""
    if array.dtype.kind != "f":
        return array
    mantissa, exponent = np.frexp(array.astype(np.float64))
    steps = 2.0 ** (bits + 1)
    return np.ldexp(np.rint(mantissa * steps) / steps, exponent).astype(array.dtype)
