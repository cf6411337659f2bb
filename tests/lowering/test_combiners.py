"""Reductions by combiners as loop programs: every nest computes the same, components share one."""

from __future__ import annotations

import pytest

from edgekernelbench.lowering.lower import lower
from edgekernelbench.lowering.plain import lower_plainly
from tests.ir.combiner_cases import CASES, agree, inputs

from .programs import PROGRAMS
from .run_nest import run_module
from .support import TARGET, check, load_text, must_lower

LAYERS = {
    "softmax": [
        "loops m (r, vectorize c)",
        "loops s (r by 4, c, unroll r)",
        "loops m (parallel r by 2, r, c by 8, c)",
        "loops m (r, c by 16, unroll c)",
        "loops m (c, r)",
        "loops m (r by 8, c, vectorize r)  loops s (r by 8, c, vectorize r)",
        "loops m (r, c)  loops s (r, vectorize c)",
        "loops y (parallel r, vectorize c)  place m, s in y.r",
        "loops y (parallel r by 4, r, vectorize c)  place s, m in y.r0  loops s (r, vectorize c)",
        "loops y (r by 5, r, vectorize c)  place m in y.r0",
        "loops m (parallel r by 4, r, vectorize c)  place y in s.r0",
        "loops s (r, c)  loops m (r by 4, r, vectorize c)  place y in m.r0",
    ],
    "softmax_inside": [
        "loops y.lse (r by 4, unroll r, vectorize e)",
        "loops y (parallel r, vectorize c)  place y.lse, y.lse1 in y.r",
    ],
    "welford": [
        "loops q (r by 4, unroll r, vectorize c)  place var in n.r0",
        "loops mu (parallel r by 2, unroll r, vectorize c)",
        "loops var (r by 4, r)  place q, n in var.r0  loops q (r, vectorize c)",
    ],
    "argmax_with_value": ["loops v (r by 4, c, unroll r)", "loops i (parallel r, vectorize c)"],
    "argmax_of_bytes": ["loops w (r, c by 16, vectorize c)", "loops i (r by 7, c, vectorize r)"],
    "split_decoding": [
        "loops m (parallel p, l, vectorize d)  loops sc (l by 4, unroll l, vectorize d)",
        "loops m (parallel p, d by 8, l, vectorize d)",
    ],
    "masked": ["loops m (r by 2, unroll r, vectorize c)", "loops m (r by 4, c, vectorize r)"],
    "in_a_history": ["loops m (vectorize c)", "loops m (c by 8, unroll c)"],
    "two_axes": ["loops s (i, vectorize j)", "loops s (j, i by 2, unroll i)"],
}
PAIRS = [(name, "") for name in CASES]
PAIRS += [(name, lines) for name, several in LAYERS.items() for lines in several]


def layered(name: str, lines: str) -> str:
    layer = f"  schedule for cpu {{ {lines} }}\n" if lines else ""
    return CASES[name][0].rstrip()[:-1] + layer + "}\n"


@pytest.mark.parametrize(("name", "lines"), PAIRS)
def test_every_nest_computes_the_same(name: str, lines: str) -> None:
    kernel, program = load_text(layered(name, lines))
    check(kernel, program)
    module = must_lower(kernel, program).module
    assert module is not None
    data = inputs(program.inputs, 2)
    outputs = {t.name for t in program.outputs}
    agree(run_module(module, data, outputs), CASES[name][1](data))


@pytest.mark.parametrize("name", CASES)
def test_without_any_optimisation(name: str) -> None:
    _, program = load_text(CASES[name][0])
    data = inputs(program.inputs, 4)
    module = lower_plainly(program, TARGET)
    agree(run_module(module, data, {t.name for t in program.outputs}), CASES[name][1](data))


def nest(name: str, lines: str = "") -> str:
    kernel, program = load_text(layered(name, lines))
    module = must_lower(kernel, program).module
    assert module is not None
    return module.nest


def test_components_are_computed_by_one_nest() -> None:
    assert nest("softmax", "loops m (r, c)").count("for c in 75") == 1
    text = nest("welford")
    assert text.count("local mu.m") == 1 and "local q." not in text and "local n." not in text


def test_a_nest_for_one_component_holds_for_all() -> None:
    for lines in ("loops v (r by 7, c, unroll r)", "loops i (r by 7, c, unroll r)"):
        assert nest("argmax_with_value", lines).count("for c in 50") == 1


def test_components_with_nests_of_their_own_are_computed_apart() -> None:
    assert (
        nest("argmax_with_value", "loops v (r, c)  loops i (r by 7, c, unroll r)").count(
            "for c in 50"
        )
        == 2
    )


def test_components_placed_together_share_their_nest() -> None:
    text = nest("softmax", "loops y (r, vectorize c)  place m, s in y.r  loops m (r, c)")
    assert text.count("for c in 75") == 1 and "global" not in text


def test_what_is_placed_in_a_component_is_placed_in_the_nest_of_all() -> None:
    text = nest("softmax", "loops m (parallel r by 4, r, c)  place y in s.r0")
    assert text.count("for c in 75") == 2  # full tiles of rows, and the last row
    assert "global" not in text
    kernel, program = load_text(
        PROGRAMS["online"].replace("e[r, c] - m", "x[r, c] - m")[:-1]
        + ("  schedule for cpu { loops s (r by 2, unroll r, c)  place e, z in m.r0 }\n}")
    )
    module = check(kernel, program).module
    assert module is not None
    first = module.nest.split("for r0")[0]
    assert "local" not in first and "global e" not in first and "global m" in first


def test_only_the_components_that_are_needed_are_computed() -> None:
    apart = nest("softmax", "loops m (r, c)  loops s (r by 13, c, unroll r)")
    first = apart.split("s.s")[0]
    assert "exp" not in first  # the maximum does not need the sum


def test_a_step_reads_all_components_before_it_writes_one() -> None:
    lines = nest("argmax_with_value", "loops v (r, c)").splitlines()
    step = [line.strip() for line in lines if line.startswith("    ")]
    first_store = next(k for k, line in enumerate(step) if not line.startswith("let"))
    assert all(line.startswith("let") for line in step[:first_store])
    assert [line.split("[")[0] for line in step[first_store:]] == ["v.v", "v.i"]


def test_components_with_nests_of_their_own_do_not_share_what_is_placed() -> None:
    text = PROGRAMS["online"].replace("e[r, c] - m", "x[r, c] - m")[:-1] + (
        "  schedule for cpu { loops m (r, c)  loops s (r by 2, r, c)  place e in m.r }\n}"
    )
    (diagnostic,) = lower(*load_text(text), TARGET).diagnostics
    assert diagnostic.rule.code == "E423"
    assert "give `s` the loops and the place of `m`" in diagnostic.help[0]
