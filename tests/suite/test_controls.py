"""Negative controls: every one of them fails on every workload.

Five seeds for each workload that is cheap; for the others one, and five too where
EDGEKERNELBENCH_FULL is set.
"""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite import TensorSpec, Workload, load_suite
from edgekernelbench.suite.controls import CONTROL_KINDS, controls, draw_sample, poison

WORKLOADS = list(load_suite().workloads.values())
FULL = bool(os.environ.get("EDGEKERNELBENCH_FULL"))
ALWAYS = {"zero", "constant", "poison", "stale"}


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.id)
def test_controls_fail(workload: Workload):
    tried: Counter[tuple[str, str]] = Counter()
    cheap = workload.flops < 4e7 and workload.bytes_min < 4e6
    for seed in range(5 if cheap or FULL else 1):
        sample = draw_sample(workload, seed)
        right = {
            spec.name: sample.truth[spec.name].astype(spec.dtype.numpy)
            for spec in workload.output_specs
        }
        assert workload.compare(right, sample.truth).passed, "the rounded truth itself fails"
        for control in controls(sample):
            verdict = workload.compare(control.outputs, sample.truth)
            spoiled = next(d for d in verdict.outputs if d.name == control.output)
            assert not verdict.passed, f"{control.kind} of {control.output} passes, seed {seed}"
            assert not spoiled.passed and spoiled.reason
            assert all(d.passed for d in verdict.outputs if d.name != control.output)
            tried[control.kind, control.output] += 1
    exempt = set(workload.definition.pattern.exempt)
    for spec in workload.output_specs:
        applied = {kind for kind, output in tried if output == spec.name}
        assert applied >= ALWAYS - exempt
        assert not applied & exempt
        assert ("sign_flipped" in applied) == spec.dtype.is_signed
        if spec.size > 1:
            assert "shuffled" in applied


IN_SINGLE_PRECISION = [
    w
    for w in WORKLOADS
    if w.dtype == "f32" and not w.tolerance.startswith("int")
    and w.pattern != "heatmap_peak_nms"  # its inputs lie on a grid that half of the bits hold
]  # fmt: skip


def as_tf32(array: np.ndarray) -> np.ndarray:
    """Float32 rounded to the 10 bits of mantissa that tensor cores keep."""
    if array.dtype != np.float32:
        return array
    bits = array.view(np.uint32)
    half = np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    return ((bits + half) & np.uint32(0xFFFFE000)).view(np.float32)


@pytest.mark.parametrize("workload", IN_SINGLE_PRECISION, ids=lambda w: w.id)
def test_a_cheaper_precision_fails(workload: Workload):
    """Rounding only the inputs to TF32, all sums exact, already leaves the tolerance."""
    inputs = workload.inputs(0)
    rounded = {name: as_tf32(array) for name, array in inputs.items()}
    cheap = workload.truth(rounded, cache=False)
    outputs = {s.name: cheap[s.name].astype(s.dtype.numpy) for s in workload.output_specs}
    assert not workload.compare(outputs, workload.truth(inputs, cache=False)).passed


def test_every_kind_of_control_applies_somewhere():
    sample = draw_sample(load_suite().workloads["fc_autoencoder__01"], 0)
    assert {control.kind for control in controls(sample)} == set(CONTROL_KINDS)


def test_exemptions_are_explained():
    for workload in WORKLOADS:
        for kind, reason in workload.definition.pattern.exempt.items():
            assert kind in CONTROL_KINDS and len(reason) > 10


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16, DType.S8, DType.U8, DType.S32])
def test_poison_differs_from_seed_to_seed(dtype):
    spec = TensorSpec(name="y", dtype=dtype, shape=(64, 3))
    first, again, other = poison(spec, 1), poison(spec, 1), poison(spec, 2)
    assert first.dtype == dtype.numpy and first.shape == (64, 3)
    assert np.array_equal(first, again, equal_nan=dtype.is_float)
    assert not np.array_equal(first, other, equal_nan=dtype.is_float)
