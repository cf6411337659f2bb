"""Shrinking keeps the failure and drops the rest; comparison sees what it must."""

from __future__ import annotations

import numpy as np
import pytest

from edgekernelbench.ir.check import check_text
from tests.fuzz.compare import Truth, overflows
from tests.fuzz.draws import draw_inputs
from tests.fuzz.engine import Finding
from tests.fuzz.jobs import JOBS
from tests.fuzz.programs import well_formed
from tests.fuzz.shrink import shrink
from tests.fuzz.texts import parser_input


def test_shrinks_to_what_matters() -> None:
    text = "one\ntwo (three (bad) four)\nfive\n" * 3
    small = shrink(text, lambda t: "bad" in t)
    assert "bad" in small and len(small) <= 5


def test_shrinking_stops() -> None:
    asked = []

    def fails(text: str) -> bool:
        asked.append(text)
        return True

    shrink("(a) " * 200, fails, tries=50)
    assert len(asked) <= 50


def test_inputs_are_functions_of_the_seed() -> None:
    assert parser_input(3) == parser_input(3) != parser_input(4)
    assert well_formed(5) == well_formed(5) != well_formed(6)


def test_most_well_formed_programs_verify() -> None:
    for seed in range(30):
        out = check_text(well_formed(seed))
        assert out.program is not None, (well_formed(seed), out.diagnostics)


TEXT = """kernel k(x: f32[4], n: s32[4]) -> (y: f32[4], m: s32[4]) {
  compute { y[i] = x[i]  m[i] = n[i] } }"""


@pytest.mark.parametrize("name,change", [("y", 0.01), ("m", 1)])
def test_a_wrong_element_is_found(name: str, change: float) -> None:
    program = check_text(TEXT).program
    assert program is not None
    inputs = draw_inputs(program, 1)
    got = {"y": inputs["x"].copy(), "m": inputs["n"].copy()}
    truth = Truth(program, inputs, tracked=False)
    truth.compare(got)
    got[name][2] += change
    with pytest.raises(Finding, match="result differs"):
        truth.compare(got)


def test_overflow_is_told_from_wrapping_casts() -> None:
    wraps = "kernel k(x: s32[1]) -> (y: s8[1]) { compute { y[i] = s8(x[i] + 1000) } }"
    over = "kernel k(x: s32[1]) -> (y: s32[1]) { compute { y[i] = x[i] * 2000000000 } }"
    for text, expected in ((wraps, False), (over, True)):
        program = check_text(text).program
        assert program is not None
        inputs = {"x": np.array([9], np.int32)}
        assert overflows(program, inputs) is expected


def test_jobs_know_their_limits() -> None:
    assert JOBS["parser"].cpu_s == 2.0 and JOBS["parser"].memory_bytes == 512 << 20
