"""What an author is shown: complete, and true."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from edgekernelbench.suite import Workload, load_suite
from edgekernelbench.suite.patterns.registry import arguments
from edgekernelbench.suite.source import complete_source
from edgekernelbench.suite.tolerance import compare
from edgekernelbench.suite.truth import compute_truth

SUITE = load_suite()
FIRST = {w.pattern: w for w in reversed(list(SUITE.workloads.values()))}


@pytest.mark.parametrize("pattern", SUITE.definitions)
def test_the_shown_reference_runs_by_itself_and_gives_the_truth(pattern: str) -> None:
    definition = SUITE.definitions[pattern]
    workload = FIRST[pattern].resized(**definition.small)
    inputs = workload.inputs(3)
    shown: dict[str, Any] = {}
    exec(complete_source(definition.pattern), shown)
    function = shown[definition.pattern.reference.__name__]
    wide = {"f": np.float64, "i": np.int64, "u": np.int64}
    given = {name: array.astype(wide[array.dtype.kind]) for name, array in inputs.items()}
    with np.errstate(all="ignore"):
        result = function(**arguments(function, {**workload.sizes, **given}, pattern))
    results = result if isinstance(result, tuple) else (result,)
    for array, (name, truth) in zip(results, compute_truth(workload, inputs).items(), strict=True):
        assert np.array_equal(array, truth), name


@pytest.mark.parametrize("pattern", SUITE.definitions)
def test_the_definition_names_every_tensor(pattern: str) -> None:
    definition = SUITE.definitions[pattern]
    named = _names(f"{definition.formula} {definition.notes}")
    assert not [t.name for t in (*definition.inputs, *definition.outputs) if t.name not in named]


def _names(text: str) -> set[str]:
    """The names in a text; ``w1..w4`` are four."""
    found = set(re.findall(r"[A-Za-z]\w*", text))
    for stem, first, last in re.findall(r"([A-Za-z]+)(\d+)\.\.\1(\d+)", text):
        found |= {f"{stem}{i}" for i in range(int(first), int(last) + 1)}
    return found


def test_texts_lean_on_no_other_pattern_and_promise_no_lenience() -> None:
    for definition in SUITE.definitions.values():
        words = set(re.findall(r"\w+", f"{definition.formula} {definition.notes}"))
        others = {id for id in SUITE.definitions if "_" in id} - {definition.id, *COMMON}
        assert not words & others, definition.id
        assert not re.search(r"exclu\w+ from|accept|within tolerance|as in ", definition.notes)


COMMON = ("gelu_erf", "rms_norm", "leaky_relu")


@pytest.mark.parametrize("pattern", SUITE.definitions)
def test_inputs_with_a_structure_are_described(pattern: str) -> None:
    definition = SUITE.definitions[pattern]
    structured = {"ptr", "col", "nbr", "idx", "deg", "tw", "ct", "pos", "num"}
    for tensor in definition.inputs:
        if tensor.name in structured:
            assert re.search(rf"\b{tensor.name}\b", definition.input_gen), tensor.name


# ---------------------------------------------------------------- lines of a statement
def _statement(name: str) -> str:
    return SUITE.workloads[name].statement()


def test_notes_and_guarantees_are_shown() -> None:
    text = _statement("gcn_layer_csr__02")
    assert "Of this workload: node count" in text
    assert "Inputs are such that: ptr: monotone from 0 to E" in text


def test_what_is_const_is_explained_only_where_something_is() -> None:
    assert "Inputs:\n- a: " in _statement("add__03")
    assert "Inputs (const: known before deployment" in _statement("layer_norm_last__01")


def test_a_transform_is_counted_as_fft() -> None:
    assert "operations, the transform counted as FFT (the sum as it stands: " in _statement(
        "rfft_1d__01"
    )
    assert "only taps that meet an input counted" in _statement("conv2d_transpose_nchw__01")
    assert "counted" not in _statement("add__03")


# ---------------------------------------------------------------- tolerance, output by output
MIXED = {
    "viterbi_forward__01": {"v": "error at most 0.001", "bp": "every element equal"},
    "gcc_phat__01": {"r": "error at most 0.0001", "lag": "every element equal"},
    "quantize_q8_0_blocks__01": {"q": "each element at most 1 off", "d": "every element equal"},
}


@pytest.mark.parametrize("name", MIXED)
def test_outputs_of_differing_kinds_have_a_rule_each(name: str) -> None:
    text = _statement(name)
    for output, rule in MIXED[name].items():
        assert f"\n- {output}: {rule}" in text


@pytest.mark.parametrize("name", ["topk_last__01", "lm_head_argmax__01", "add__03"])
def test_outputs_under_one_rule_share_a_line(name: str) -> None:
    assert re.search(r"\nTolerance \(\w+\): (every element equal|error at most)", _statement(name))


@pytest.mark.parametrize("name", MIXED)
def test_the_judge_keeps_to_what_is_said(name: str) -> None:
    workload = SUITE.workloads[name]
    small = workload.resized(**workload.definition.small)
    truth = small.truth(small.inputs(1), cache=False)
    for spec in small.output_specs:
        said = MIXED[name][spec.name]
        if said.startswith("each element"):
            continue
        outputs = {key: array.copy() for key, array in truth.items()}
        outputs[spec.name].reshape(-1)[-1] += 1e-9 if spec.dtype.is_float else 1
        verdict = compare(outputs, truth, workload.tolerance)
        passed = next(d.passed for d in verdict.outputs if d.name == spec.name)
        assert passed == said.startswith("error at most"), spec.name


def test_remarks_to_tools_are_not_shown() -> None:
    for definition in SUITE.definitions.values():
        assert not re.search(r"# (noqa|fmt|type|pyright)", complete_source(definition.pattern))


def test_sizes_and_source_are_said_once() -> None:
    workload: Workload = SUITE.workloads["conv2d_nchw__01"]
    text = workload.statement()
    assert text.count(workload.source) == 1
    assert text.count(f"{workload.flops:,} operations") == 1
