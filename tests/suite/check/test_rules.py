"""Each rule of `ekb suite check` can be broken: sabotaged workloads are found out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edgekernelbench.suite import Workload, load_suite, tolerance
from edgekernelbench.suite.check import RULES, Effort, Outcome, check_workload
from edgekernelbench.suite.check import check as whole
from edgekernelbench.suite.check.classes import classes
from edgekernelbench.suite.check.controls import with_mantissa
from edgekernelbench.suite.check.pool import check_all
from edgekernelbench.suite.draw import integers, near, uniform
from edgekernelbench.suite.patterns.registry import Pattern

EFFORT = Effort(seeds=2, compiled=False)


def fresh(id: str = "layer_norm_last__01", **fields: object) -> Workload:
    """A copy that can be spoiled without spoiling the suite."""
    workload = load_suite().workloads[id]
    definition = workload.definition.model_copy()
    return workload.model_copy(update={"definition": definition, **fields})


def with_pattern(workload: Workload, **changes: object) -> Workload:
    spoiled = replace(workload.definition.pattern, **changes)  # type: ignore[arg-type]
    return with_code(workload, spoiled)


def with_code(workload: Workload, pattern: Pattern) -> Workload:
    workload.definition.__dict__["pattern"] = pattern
    workload.definition.__dict__["small"] = {}
    return workload


def broken(outcome: Outcome) -> set[str]:
    return {finding.rule for finding in outcome.findings}


def test_a_sound_workload_is_clean() -> None:
    outcome = check_workload(fresh(), Effort(seeds=2))
    assert outcome.clean, outcome.findings
    assert {k for k in outcome.applied if ":" not in k} == set(RULES) - {"class"}
    assert 0 < outcome.figures["compiled_error"] < 0.5


def test_wrong_numbers_in_a_row() -> None:
    outcome = check_workload(fresh(flops=7), Effort(small_only=True))
    assert broken(outcome) == {"row"}
    assert "flops is 7" in outcome.findings[0].message


def test_a_wrong_reference_contradicts_both_executors() -> None:
    def reference(x, gamma, beta, eps):
        return x * gamma + beta

    outcome = check_workload(with_pattern(fresh(), reference=reference), EFFORT)
    assert {"twin", "canonical"} <= broken(outcome)


def test_a_reference_that_raises_is_a_finding() -> None:
    def reference(x):
        raise ZeroDivisionError("no")

    outcome = check_workload(with_pattern(fresh(), reference=reference), EFFORT)
    assert any("ZeroDivisionError" in f.message for f in outcome.findings)


def test_neither_twin_nor_canonical_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: Workload) -> str:
        raise FileNotFoundError("none packaged")

    workload = with_pattern(fresh(), build_twin=None, no_twin="for this test")
    monkeypatch.setattr(Workload, "canonical", none)
    assert {"canonical", "independent"} <= broken(check_workload(workload, EFFORT))


def test_inputs_of_one_sign_and_without_variation() -> None:
    workload = fresh("add__01")
    constant = with_pattern(workload, draw={"a": lambda draw, spec: np.ones(spec.shape)})
    assert {"spread", "draw"} <= broken(check_workload(constant, EFFORT))


def test_an_input_without_effect() -> None:
    tiny = with_pattern(fresh(), draw={"beta": uniform(-1e-9, 1e-9)})
    outcome = check_workload(tiny, EFFORT)
    assert any(f.rule == "effect" and "beta" in f.message for f in outcome.findings)


def test_an_inert_input_that_has_an_effect() -> None:
    outcome = check_workload(with_pattern(fresh(), inert={"beta": "for this test"}), EFFORT)
    assert any(f.rule == "effect" and "inert" in f.message for f in outcome.findings)


def test_a_seed_that_moves_the_wrong_inputs() -> None:
    def draw(draw, spec):
        return draw.rng("x").standard_normal(spec.shape)  # a const input from the other stream

    outcome = check_workload(with_pattern(fresh(), draw={"gamma": draw}), EFFORT)
    assert any(f.rule == "draw" and "gamma" in f.message for f in outcome.findings)


def test_outputs_that_are_mostly_one_value() -> None:
    workload = fresh("relu__01")
    same = with_pattern(workload, draw={"x": near(-5.0, 0.5)})
    assert {"truth", "control"} & broken(check_workload(same, EFFORT))


def test_a_control_that_passes() -> None:
    outcome = check_workload(with_pattern(fresh("argmax_channel_nchw__01"), draw={
        "x": lambda draw, spec: np.arange(spec.size).reshape(spec.shape) + 0.0
    }), EFFORT)  # fmt: skip
    assert "control" in broken(outcome)


def test_inputs_that_a_cheaper_format_holds_are_not_tested_for_precision() -> None:
    whole_numbers = with_pattern(fresh(), draw={
        name: integers("-8", "9") for name in ("x", "gamma", "beta")
    })  # fmt: skip
    assert "precision" in check_workload(whole_numbers, EFFORT).skipped


def test_a_tolerance_too_wide_lets_a_cheaper_format_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tolerance.RULES, "f32_reduction", tolerance.Rule(0.05, 0.05))
    outcome = check_workload(fresh(), EFFORT)
    assert "precision" in broken(outcome)


def test_rounding_keeps_the_bits_asked_for() -> None:
    values = np.array([1.0, 1.0 + 2.0**-10, 1.0 + 2.0**-11, 3.0e-5, -7.25], np.float32)
    got = with_mantissa(values, 10)
    assert got.tolist()[:3] == [1.0, 1.0 + 2.0**-10, 1.0]
    assert np.abs(got / values - 1).max() <= 2.0**-11


def test_a_dying_process_costs_only_its_workload() -> None:
    culprit = fresh().model_copy(update={"id": "dies"})
    good = load_suite().workloads["add__01"]
    effort = Effort(small_only=True)
    outcomes = {
        o.workload: o for o in check_all([culprit, good], effort, 2, check=_dies_on_culprit)
    }
    assert outcomes["add__01"].clean
    assert "died" in outcomes["dies"].findings[0].message


def _dies_on_culprit(workload: Workload, effort: Effort) -> Outcome:
    import os

    if workload.id == "dies":
        os._exit(3)
    return whole.check_workload(workload, effort)


def test_a_class_that_nobody_needs_is_too_wide() -> None:
    workload = load_suite().workloads["add__01"]

    def outcome(error: float) -> Outcome:
        figures = {"compiled_error": error}
        return Outcome(workload="add__01", applied={}, findings=(), figures=figures, skipped={})

    many = [outcome(0.01)] * 10
    assert [use.too_wide for use in classes(many, {"add__01": workload})] == [True]
    assert not classes(many[1:], {"add__01": workload})[0].too_wide
    assert not classes([*many, outcome(0.2)], {"add__01": workload})[0].too_wide
