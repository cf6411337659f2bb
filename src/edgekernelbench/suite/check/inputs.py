"""Rules about inputs, and about what the reference makes of them."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.check.model import Notes
from edgekernelbench.suite.model import Arrays, TensorSpec, Workload

SMALLEST, LARGEST = 1e-3, 1e4
COMMONEST = 0.9
"""Share of an output that one value may take; a pattern with ``sparse_output`` may have more."""


def check_draw(workload: Workload, notes: Notes) -> None:
    """Declared shapes and dtypes, and which seed decides what."""
    base, again = workload.inputs(7), workload.inputs(7)
    declared = [spec.name for spec in workload.input_specs]
    notes.expect("draw", list(base) == declared, f"drawn are {list(base)}, not {declared}")
    for spec in workload.input_specs:
        array = base[spec.name]
        fits = array.shape == spec.shape and array.dtype == spec.dtype.numpy
        finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
        notes.expect("draw", fits and finite, f"{spec.name} is {array.dtype}{array.shape}")
        same = np.array_equal(array, again[spec.name])
        notes.expect("draw", same, f"{spec.name} differs under one seed")
    _check_seeds(workload, base, notes)


def _check_seeds(workload: Workload, base: Arrays, notes: Notes) -> None:
    """Whether the right seed moves each input; one-element inputs may coincide, so three tries.

    An input that is declared inert may be one that has no other legal value (exact twiddles).
    """
    inert = workload.definition.pattern.inert
    redrawn = [workload.inputs(7, const_seed=seed) for seed in (8, 9, 10)]
    moved = [workload.inputs(seed, const_seed=7) for seed in (8, 9, 10)]
    for spec in workload.input_specs:
        name = spec.name
        by_const = any(not np.array_equal(base[name], other[name]) for other in redrawn)
        by_seed = any(not np.array_equal(base[name], other[name]) for other in moved)
        fixed = name in inert and not by_const and not by_seed
        notes.expect(
            "draw",
            fixed or (by_const, by_seed) == (spec.const, not spec.const),
            f"{name} is {'const' if spec.const else 'not const'}, but the constants' seed "
            f"{'moves' if by_const else 'does not move'} it and the other "
            f"{'does' if by_seed else 'does not'}",
        )


def check_spread(workload: Workload, inputs: Arrays, notes: Notes) -> None:
    """Variation and signs."""
    for spec in workload.input_specs:
        values = inputs[spec.name].astype(np.float64)
        if spec.size > 1:
            wide = bool(values.std() > 1e-3 * np.abs(values).max())
            notes.expect("spread", wide, f"{spec.name} hardly varies")
    pattern = workload.definition.pattern
    plain = [
        spec
        for spec in workload.input_specs
        if spec.dtype.is_float and spec.name not in pattern.draw and pattern.joint_inputs is None
    ]
    for spec in plain:
        if spec.size > 8:
            values = inputs[spec.name]
            signs = bool(values.min() < 0 < values.max())
            notes.expect("spread", signs, f"{spec.name} has one sign only")


def check_effect(workload: Workload, inputs: Arrays, truth: Arrays, notes: Notes) -> None:
    """Redrawing any one input makes the old truth wrong."""
    inert = workload.definition.pattern.inert
    for spec in workload.input_specs:
        effective = has_effect(workload, spec, inputs, truth)
        if spec.name in inert:
            told = f"{spec.name} is declared inert, but has an effect"
            notes.expect("effect", not effective, told)
        else:
            notes.expect("effect", effective, f"{spec.name} has no effect on the outputs")


def has_effect(workload: Workload, spec: TensorSpec, inputs: Arrays, truth: Arrays) -> bool:
    """Whether redrawing one input makes the old truth wrong."""
    redrawn = _other_draw(workload, spec, inputs)
    changed = workload.truth({**inputs, spec.name: redrawn}, cache=False)
    return not workload.compare(rounded(workload, changed), truth).passed


def _other_draw(workload: Workload, spec: TensorSpec, inputs: Arrays) -> np.ndarray:
    """Another draw of one input; of a few draws one that differs."""
    draws = (workload.inputs(seed)[spec.name] for seed in range(1001, 1005))
    differing = (other for other in draws if not np.array_equal(other, inputs[spec.name]))
    return next(differing, inputs[spec.name])


def check_truth(workload: Workload, truth: Arrays, notes: Notes) -> None:
    """Size and variety of the outputs."""
    for spec in workload.output_specs:
        values = truth[spec.name].astype(np.float64)
        if not notes.expect("truth", bool(np.isfinite(values).all()), f"{spec.name}: not finite"):
            continue
        largest = float(np.abs(values).max())
        if spec.dtype.is_float:
            fit = SMALLEST < largest < LARGEST
            notes.expect("truth", fit, f"{spec.name}: the largest value is {largest:.3g}")
        if values.size > 1:
            varies = bool(values.std() > 1e-3 * largest)
            notes.expect("truth", varies, f"{spec.name} hardly varies")
        if values.size >= 256 and not workload.definition.pattern.sparse_output:
            share = np.unique(values, return_counts=True)[1].max() / values.size
            varied = bool(share < COMMONEST)
            notes.expect("truth", varied, f"{share:.0%} of {spec.name} is one value")


def rounded(workload: Workload, truth: Arrays) -> Arrays:
    """The truth in the outputs' dtypes."""
    return {s.name: truth[s.name].astype(s.dtype.numpy) for s in workload.output_specs}
