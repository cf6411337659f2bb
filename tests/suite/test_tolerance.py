"""The comparison with the truth, on small arrays made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekernelbench.suite.correctness import BEYOND, TOLERANCE_VERSION, Correctness
from edgekernelbench.suite.model import ToleranceClass
from edgekernelbench.suite.tolerance import RULES, Facts, compare

RNG = np.random.default_rng(0)
FLOATS = [name for name in RULES if RULES[name].rtol]
TRUTH = RNG.standard_normal(5000)


def verdict(output, truth, tolerance="f32_reduction", **facts) -> Correctness:
    return compare({"y": np.asarray(output)}, {"y": np.asarray(truth)}, tolerance, Facts(**facts))


def test_the_verdict_is_json_and_carries_the_version():
    found = verdict(TRUTH, TRUTH)
    assert found.passed and found.worst_error == 0 and found.matched_ratio == 1
    assert found.tolerance_version == TOLERANCE_VERSION
    assert Correctness.model_validate_json(found.model_dump_json()) == found


def test_numbers_in_a_verdict_are_finite_whatever_the_output():
    bad = np.full(5000, np.nan)
    bad[0] = np.inf
    found = verdict(bad, TRUTH)
    assert not found.passed
    assert found.worst_error == found.max_abs == BEYOND
    assert Correctness.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize("tolerance", FLOATS)
@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1.0, 1e6])
def test_tolerances_scale_with_the_output(tolerance, scale):
    """Tiny outputs are no reason to let zeros pass."""
    truth = TRUTH * scale
    assert not verdict(np.zeros(5000), truth, tolerance).passed
    assert not verdict(-truth, truth, tolerance).passed
    assert not verdict(np.full(5000, truth.mean()), truth, tolerance).passed
    assert not verdict(np.roll(truth, 1), truth, tolerance).passed
    inside = truth + 0.5 * RULES[tolerance].atol * scale
    assert verdict(inside, truth, tolerance).passed


@pytest.mark.parametrize("tolerance", [*FLOATS, "exact_move"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_single_nan_or_infinity_fails(tolerance, value):
    output = TRUTH.copy()
    output[17] = value
    found = verdict(output, TRUTH, tolerance)
    assert not found.passed and found.outputs[0].nonfinite == 1


def test_nan_and_infinity_must_stand_where_the_truth_has_them():
    truth = TRUTH.copy()
    truth[:3] = np.nan, np.inf, -np.inf
    assert verdict(truth, truth).passed
    for position, value in [(0, 0.0), (1, -np.inf), (2, np.inf), (1, np.nan), (0, np.inf)]:
        wrong = truth.copy()
        wrong[position] = value
        assert not verdict(wrong, truth).passed


def test_few_elements_may_leave_the_bound_but_not_the_cap():
    bound = 1e-4 * np.abs(TRUTH) + 1e-5 * np.sqrt((TRUTH**2).mean())
    few, many, far = TRUTH.copy(), TRUTH.copy(), TRUTH.copy()
    few[:4] += 5 * bound[:4]
    many[:6] += 5 * bound[:6]
    far[:1] += 11 * bound[:1]
    assert verdict(few, TRUTH).passed
    assert "match" in verdict(many, TRUTH).outputs[0].reason
    assert "cap" in verdict(far, TRUTH).outputs[0].reason
    assert verdict(far, TRUTH).matched_ratio > 0.999


def test_longer_sums_may_err_more():
    output = TRUTH + 3e-5
    assert not verdict(output, np.zeros(5000) + TRUTH, accumulation=64).passed
    assert verdict(output, TRUTH, accumulation=10**6).passed


def test_non_zeros_of_a_sparse_output_are_scored_on_their_own():
    truth = np.zeros(100_000)
    truth[::5000] = 1.0
    missing = truth.copy()
    missing[0] = 0.0
    relaxed = compare({"y": missing}, {"y": truth}, "f32_graph")
    assert relaxed.matched_ratio > 0.9999
    assert not relaxed.passed
    near = truth.copy()
    near[0] += 5 * 3e-4  # within the cap, beyond the bound
    found = compare({"y": near}, {"y": truth}, "f32_reduction", Facts(accumulation=10**8))
    assert found.outputs[0].nonzero_ratio == 0.95
    assert not found.passed
    invented = np.where(np.arange(100_000) % 7 == 1, 1e-3, truth)
    assert not compare({"y": invented}, {"y": truth}, "f32_elementwise").passed


def test_graphs_need_the_direction_too():
    """Errors all within the bound of elements, yet systematic in small ones."""
    truth = np.where(np.arange(5000) < 2500, 1.0, 0.0)
    assert verdict(truth, truth, "f32_graph").outputs[0].cosine == pytest.approx(1)
    found = verdict(truth * 1.5, truth, "f32_graph")
    assert not found.passed


def test_moves_and_integers_are_exact():
    truth = np.arange(1000, dtype=np.int32)
    assert verdict(truth, truth, "int_exact").passed
    off = truth.copy()
    off[3] += 1
    for tolerance in ("int_exact", "int_index", "exact_move"):
        assert not verdict(off, truth, tolerance).passed
    moved = TRUTH.astype(np.float32).astype(np.float64)
    assert verdict(moved.astype(np.float32), moved, "exact_move").passed
    assert not verdict(np.nextafter(moved, 9), moved, "exact_move").passed
    assert verdict(np.array([-0.0]), np.array([0.0]), "exact_move").passed


def test_rounded_integers_may_be_one_step_off_on_a_declared_share():
    truth = (np.arange(10_000) % 200 - 100).astype(np.int8)
    ten, eleven, two_steps = truth.copy(), truth.copy(), truth.copy()
    ten[100:110] += 1
    eleven[100:111] += 1
    two_steps[100] += 2
    assert verdict(ten, truth, "int8_requant").passed
    assert not verdict(eleven, truth, "int8_requant").passed
    assert verdict(eleven, truth, "int8_requant", lsb_share=0.002).passed
    assert not verdict(two_steps, truth, "int8_requant", lsb_share=0.002).passed


def test_integers_do_not_wrap_when_compared():
    assert not verdict(np.int8([-128]), np.int8([127]), "int8_requant").passed
    assert verdict(np.int8([-128]), np.int8([127]), "int8_requant").max_abs == 255


def test_all_outputs_must_pass():
    truth = {"a": TRUTH, "b": TRUTH}
    found = compare({"a": TRUTH, "b": TRUTH + 1}, truth, "f32_reduction")
    assert not found.passed
    assert [detail.passed for detail in found.outputs] == [True, False]


@pytest.mark.parametrize(
    ("outputs", "truth"),
    [({}, {}), ({"y": TRUTH}, {}), ({}, {"y": TRUTH}), ({"y": TRUTH[:3]}, {"y": TRUTH})],
)
def test_comparing_nothing_or_other_shapes_is_an_error(outputs, truth):
    with pytest.raises(ValueError):
        compare(outputs, truth, "f32_reduction")


@given(
    st.sampled_from(FLOATS),
    st.floats(1e-20, 1e20),
    st.integers(0, 4999),
    st.floats(20, 1e6),
)
def test_one_gross_error_is_never_forgiven(tolerance, scale, position, factor):
    truth = TRUTH * scale
    output = truth.copy()
    rule = RULES[tolerance]
    output[position] += factor * (rule.rtol + rule.atol) * (abs(truth[position]) + scale)
    assert not verdict(output, truth, tolerance).passed


def test_integers_beside_the_floats_of_a_graph_are_exact():
    truth = {"y": TRUTH, "index": np.arange(4000)}
    assert compare({"y": TRUTH, "index": np.arange(4000)}, truth, "f32_graph").passed
    wrong = np.arange(4000)
    wrong[7] += 1
    assert not compare({"y": TRUTH, "index": wrong}, truth, "f32_graph").passed


@pytest.mark.parametrize("tolerance", ["int_exact", "exact_move", "f32_graph"])
def test_wrong_integers_are_counted_and_placed_but_not_named(tolerance: ToleranceClass):
    truth = np.arange(77, 77 + 12).reshape(3, 4)
    output = truth.copy()
    output[1, 2] += 5
    output[2, 0] -= 900
    reason = compare({"y": output}, {"y": truth}, tolerance).outputs[0].reason
    assert reason == "2 of 12 elements differ, the first at [1, 2]"


def test_rounded_integers_that_are_far_off_are_counted():
    truth = np.arange(20)
    output = truth.copy()
    output[3:5] += 4
    reason = compare({"y": output}, {"y": truth}, "int8_requant").outputs[0].reason
    assert reason == "2 of 20 elements are more than 1 off, the first at [3]"
