"""Inputs: legal, seeded, of mixed sign and scale, and none without effect."""

from __future__ import annotations

import numpy as np
import pytest

from edgekernelbench.suite import Workload, load_suite

WORKLOADS = list(load_suite().workloads.values())
each_workload = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.id)

NARROW = {"zx", "zy"}
"""One-element inputs whose range is narrow on purpose."""


@each_workload
def test_inputs_are_as_declared_and_repeatable(workload: Workload):
    first, again = workload.inputs(7), workload.inputs(7)
    assert list(first) == [spec.name for spec in workload.input_specs]
    for spec in workload.input_specs:
        array = first[spec.name]
        assert array.shape == spec.shape
        assert array.dtype == spec.dtype.numpy
        assert array.flags.c_contiguous
        assert np.array_equal(array, again[spec.name])
        if spec.dtype.is_float:
            assert np.isfinite(array).all()


@each_workload
def test_const_and_other_inputs_are_drawn_apart(workload: Workload):
    base, redrawn = workload.inputs(1, const_seed=2), workload.inputs(1, const_seed=3)
    moved = workload.inputs(4, const_seed=2)
    for spec in workload.input_specs:
        name = spec.name
        if spec.name in NARROW:  # eleven values or so: two draws may agree
            continue
        assert np.array_equal(base[name], redrawn[name]) != spec.const
        assert np.array_equal(base[name], moved[name]) == spec.const


@each_workload
def test_inputs_vary_and_activations_have_both_signs(workload: Workload):
    inputs = workload.inputs(5)
    for spec in workload.input_specs:
        values = inputs[spec.name].astype(np.float64)
        if spec.size < 2:
            continue
        assert values.std() > 1e-3 * np.abs(values).max(), f"{spec.name} hardly varies"
        positive_by_nature = {"dt", "mean", "std", "fb", "gamma", "g", "g1", "g2", "gy", "sc"}
        signed = spec.dtype.is_signed and spec.dtype.is_float
        if signed and spec.name not in positive_by_nature | {"A"}:
            assert values.min() < 0 < values.max(), f"{spec.name} has one sign only"


@each_workload
def test_activations_have_more_than_one_scale(workload: Workload):
    """Rows, or channels, of at least one input differ in scale by half as much again."""
    spreads = []
    for name, array in workload.inputs(6).items():
        del name
        if array.dtype.kind != "f" or array.ndim < 2:
            continue
        axis = next((i for i, extent in enumerate(array.shape) if extent > 1), 0)
        slices = np.moveaxis(array.astype(np.float64), axis, 0).reshape(array.shape[axis], -1)
        scales = slices.std(axis=1)
        if len(scales) > 1 and scales.min() > 0:
            spreads.append(scales.max() / scales.min())
    assert not spreads or max(spreads) > 1.5


@each_workload
def test_every_input_has_an_effect(workload: Workload):
    """Redrawing any one input makes the old truth wrong."""
    inputs = workload.inputs(11)
    others = workload.inputs(12, const_seed=12)
    truth = workload.truth(inputs, cache=False)
    for spec in workload.input_specs:
        name = spec.name
        if np.array_equal(inputs[name], others[name]):
            others = workload.inputs(13, const_seed=13)
        inert = workload.definition.pattern.inert
        changed = workload.truth({**inputs, name: others[name]}, cache=False)
        outputs = {
            out.name: changed[out.name].astype(out.dtype.numpy) for out in workload.output_specs
        }
        passed = workload.compare(outputs, truth).passed
        assert passed == (name in inert), f"{name}: effect not as declared"


@each_workload
def test_truths_are_in_range_and_vary(workload: Workload):
    for seed in (21,):
        truth = workload.truth(workload.inputs(seed), cache=False)
        for spec in workload.output_specs:
            values = truth[spec.name].astype(np.float64)
            assert np.isfinite(values).all()
            if spec.dtype.is_float:
                assert np.abs(values).max() < 1e4, "outputs grow without measure"
                assert np.abs(values).max() > 1e-3, "outputs are next to nothing"
            if values.size > 1:
                assert values.std() > 1e-3 * np.abs(values).max()
            if values.size >= 256:
                share = np.unique(values, return_counts=True)[1].max() / values.size
                limit = 0.95 if workload.pattern == "heatmap_peak_nms" else 0.7
                assert share < limit, f"{share:.0%} of {spec.name} is one value"


def test_large_and_secret_seeds_are_fine():
    workload = load_suite().workloads["cholesky_batched__02"]
    assert np.isfinite(workload.inputs(2**62 - 1)["A"]).all()


def test_tensors_do_not_share_a_stream():
    inputs = load_suite().workloads["add__03"].inputs(1)
    assert not np.array_equal(inputs["a"], inputs["b"])


def test_special_inputs():
    workloads = load_suite().workloads
    csr = workloads["spmm_csr__01"].inputs(3)
    assert csr["ptr"][0] == 0 and csr["ptr"][-1] == 13264 and (np.diff(csr["ptr"]) >= 0).all()
    assert csr["col"].min() >= 0 and csr["col"].max() < 2708
    spd = workloads["cholesky_batched__02"].inputs(3)["A"]
    assert np.linalg.cond(spd).max() < 100
    plant = workloads["admm_mpc_iteration__01"].inputs(3)
    assert np.abs(np.linalg.eigvals(plant["A"])).max() < 1
    rope = workloads["rope_half_split__01"].inputs(3)
    assert np.allclose(rope["cos"] ** 2 + rope["sin"] ** 2, 1, atol=1e-6)
    scan = workloads["mamba_selective_scan__01"].inputs(3)
    assert (scan["A"] < 0).all() and (scan["dt"] > 0).all()
    logits = workloads["argmax_channel_nchw__01"].inputs(3)["x"]
    assert ((logits == logits.max(axis=0)).sum(axis=0) > 1).mean() > 0.01, "ties are not tested"
    mel = workloads["log_mel_filterbank__01"].inputs(3)["fb"]
    assert (mel >= 0).all() and (mel > 0).any(axis=0).all() and (mel > 0).mean() < 0.1
