"""Each rule of `ekb suite check` can be broken: sabotaged workloads are found out."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from edgekernelbench.suite import Workload, load_suite, tolerance
from edgekernelbench.suite.check import RULES, Effort, Outcome, check_workload
from edgekernelbench.suite.check import check as whole
from edgekernelbench.suite.check.classes import classes
from edgekernelbench.suite.check.controls import with_mantissa
from edgekernelbench.suite.check.model import Notes
from edgekernelbench.suite.check.pool import check_all
from edgekernelbench.suite.check.row import check_row
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


def spoiled_row(id: str = "layer_norm_last__01", **columns: object) -> Workload:
    """A workload whose pattern's row is spoiled, but not its code."""
    workload = load_suite().workloads[id]
    definition = workload.definition.model_copy(update=columns)
    return workload.model_copy(update={"definition": definition})


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"bindings": {"M": 5, "C": 7, "eps": 1e-5, "step": 2}}, "'step' is used by no formula"),
        ({"provenance": "seen:somewhere"}, "provenance 'seen:somewhere' is none of run:..., file:"),
        ({"provenance": "file:"}, "provenance 'file:' is none of"),
        ({"backends": ("gpu_metal",)}, "column backends: 'gpu_metal' is none of cpu_llvm"),
        ({"backends": ()}, "column backends: there is none"),
        ({"dtype": "f16"}, "tolerance f32_reduction for dtype f16: use f16_reduction"),
        ({"dtype": "s8"}, "dtype s8 is not in the pattern's column dtypes ('f32|f16')"),
    ],
)
def test_a_workload_row_that_says_nothing_or_nonsense(fields: dict[str, Any], told: str) -> None:
    notes = Notes()
    check_row(fresh(**fields), notes)
    assert any(told in f.message for f in notes.findings), notes.findings
    assert {f.rule for f in notes.findings} == {"row"}


@pytest.mark.parametrize(
    ("columns", "told", "ready"),
    [
        ({"attrs": ()}, "'eps' stands in no formula and no shape: name it in column attrs", True),
        ({"attrs": ("eps", "mu")}, "column attrs: 'mu' is no binding (eps, M, C)", True),
        ({"attrs": ("eps", "C")}, "column attrs: 'C' stands in a formula or shape", True),
        ({"dtypes": ()}, "dtype f32 is not in the pattern's column dtypes ('')", True),
        ({"small": {"M": 5, "step": 1}}, "column small: 'step' is no binding (eps, M, C)", False),
        ({"flops_formula": "7*M*Q"}, "column flops_formula: unknown name 'Q' in", False),
        ({"accumulation": "ES"}, "column accumulation: unknown name 'ES' in", False),
        ({"derived": (("P", "C//(M-M)"),)}, "ZeroDivisionError: integer division", False),
    ],
)
def test_a_pattern_row_that_says_nothing_or_nonsense(
    columns: dict[str, Any], told: str, ready: bool
) -> None:
    notes = Notes()
    assert check_row(spoiled_row(**columns), notes) is ready
    assert any(told in f.message for f in notes.findings), notes.findings
    assert {f.rule for f in notes.findings} == {"row"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"draw": {"gama": near(1.0)}}, "draw= of @pattern: 'gama' is no input (x, gamma, beta)"),
        ({"inert": {"z": "for this test"}}, "inert= of @pattern: 'z' is no input"),
        ({"exempt": {"ecko": "for this test"}}, "exempt= of @pattern: 'ecko' is no control (zero"),
        (
            {"reference": lambda x, w: x},
            "the reference of layer_norm_last asks for unknown w; there",
        ),
        ({"build_twin": lambda g, w: g}, "the twin of layer_norm_last asks for unknown w; there"),
    ],
)
def test_declarations_about_what_is_not_there(changes: dict[str, Any], told: str) -> None:
    outcome = check_workload(with_pattern(fresh(), **changes), Effort(small_only=True))
    assert any(told in f.message for f in outcome.findings), outcome.findings
    assert broken(outcome) == {"row"}


def test_with_a_row_that_cannot_be_used_nothing_else_is_tried() -> None:
    outcome = check_workload(spoiled_row(small={"step": 1}), Effort())
    assert len(outcome.findings) == 1 and "independent" not in outcome.applied
    assert outcome.skipped == {"all rules but row": "the row must be right first"}


def test_a_wrong_reference_contradicts_both_executors() -> None:
    def reference(x, gamma, beta, eps):
        return x * gamma + beta

    outcome = check_workload(with_pattern(fresh(), reference=reference), EFFORT)
    assert {"twin", "canonical"} <= broken(outcome)
    assert [f.rule for f in outcome.findings].count("canonical") == 1, "one cause, told once"
    told = next(f.message for f in outcome.findings if f.rule == "canonical")
    assert told.startswith("interpreter, float64, full size: y: the worst error is")


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


def test_executors_that_only_raise_compare_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def twin(g, x):
        raise ZeroDivisionError("no")

    def spoiled(_: Workload) -> str:
        raise ValueError("declares ['z'], not ['x']")

    monkeypatch.setattr(Workload, "canonical", spoiled)
    outcome = check_workload(with_pattern(fresh(), build_twin=twin), Effort(small_only=True))
    assert broken(outcome) == {"twin", "canonical", "independent"}
    messages = [f.message for f in outcome.findings]
    assert "suite/canonical/layer_norm_last.ekir: declares ['z'], not ['x']" in messages


def test_a_missing_canonical_program_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: Workload) -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(Workload, "canonical", none)
    outcome = check_workload(fresh(), Effort(seeds=1))
    assert [f.message for f in outcome.findings] == [
        "there is no suite/canonical/layer_norm_last.ekir: write it (docs/adding-a-pattern.md, "
        "section 5)"
    ]
    assert "compiled" in outcome.skipped


def test_neither_a_twin_nor_a_reason_names_both_ways() -> None:
    outcome = check_workload(with_pattern(fresh(), build_twin=None), Effort(small_only=True))
    assert broken(outcome) == {"twin"}
    assert "@layer_norm_last.twin" in outcome.findings[0].message
    assert "no_twin=" in outcome.findings[0].message


def test_where_all_must_be_equal_an_example_is_told() -> None:
    workload = fresh("argmax_channel_nchw__01")
    reference = workload.definition.pattern.reference
    other = with_pattern(workload, reference=lambda x: reference(x) + 1)
    outcome = check_workload(other, Effort(small_only=True))
    told = next(f.message for f in outcome.findings if f.rule == "twin")
    form = r"ONNX Runtime, full size: y: (\d+) of \1 elements differ, the first at \[0\]: (\d+), "
    found = re.search(form + r"expected (\d+)$", told)
    assert found and int(found[3]) == int(found[2]) + 1


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
    good = fresh("add__01")
    assert good.definition.pattern.has_twin  # loaded, and with it functions that no pickle takes
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
    workloads = {name: workload.model_copy(update={"id": name}) for name in ("add__01", "add__02")}

    def outcome(name: str, error: float) -> Outcome:
        figures = {"compiled_error": error}
        return Outcome(workload=name, applied={}, findings=(), figures=figures, skipped={})

    first = outcome("add__01", 0.01)
    assert [use.too_wide for use in classes([first, outcome("add__02", 0.01)], workloads)] == [True]
    assert not classes([first, outcome("add__02", 0.2)], workloads)[0].too_wide
    assert not classes([first], workloads)[0].too_wide, "nothing is known of the other one"
