# ruff: noqa: E501 (kernel texts)
"""Reductions of the author's own: text, types, the laws they are tested for, what they compute."""

from __future__ import annotations

import numpy as np
import pytest

from edgekernelbench.ir import core
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.diagnostics import render
from edgekernelbench.ir.interpret import interpret, limits
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.ir.restate import restate
from tests.ir.combiner_cases import BEST, CASES, LSE, agree, inputs

NAMES = list(CASES)


def program_of(text: str) -> core.Program:
    found = check_text(text)
    assert found.program is not None, [render(d, text) for d in found.diagnostics]
    assert not found.diagnostics, [render(d, text) for d in found.diagnostics]
    return found.program


# ---------------------------------------------------------------- text
@pytest.mark.parametrize("name", NAMES)
def test_the_canonical_text_reads_back(name: str) -> None:
    kernel = parse(CASES[name][0]).kernel
    assert kernel is not None
    printed = print_kernel(kernel)
    again = parse(printed).kernel
    assert again == kernel and print_kernel(again) == printed


def test_how_it_is_printed() -> None:
    text = (
        "combiner f(a, b) init (2 - 2) = a + b\n"
        "combiner g((a, b), (c, d)) init (-inf, 0) = (max(a, c), b + d)\n"
        "kernel k[N=4](x: f32[N]) -> (y: f32[N], z: f32[N]) {\n"
        "  compute {\n"
        "    y[i], z: f32[i] = g[k: 0..i + 1 where x[k] > 0](x[k], 1)\n"
        "    combiner h(a, b) init 0 = a + b\n"
        "  }\n"
        "}\n"
    )
    kernel = parse(text).kernel
    assert kernel is not None and print_kernel(kernel) == text


def test_words_of_combiners_are_names_elsewhere() -> None:
    program_of(
        "kernel k[N=4](init: f32[N], x: f32[N]) -> (combiner: f32[N]) {\n"
        "  compute { combiner[i] = init[i] + x[i] }\n}\n"
    )


# ---------------------------------------------------------------- types
def dtypes(combiner: str, use: str) -> list[str]:
    text = f"{combiner}\nkernel k[N=9](x: f16[N], q: s8[N], d: f64[N]) -> (y: f32[N]) {{ compute {{ {use}  y[i] = 0 }} }}"
    found = check_text(text)
    assert found.program is not None, [render(d, text) for d in found.diagnostics]
    return [s.tensor.dtype.value for _, s in core.stages(found.program.body)][:-1]


BOTH = "combiner f((a, b), (c, d)) init (0, 0) = (a + c, b + d)"


@pytest.mark.parametrize(
    ("combiner", "use", "wanted"),
    [
        (BOTH, "a, b = f[k: N](x[k], q[k])", ["f32", "s32"]),
        (BOTH, "a, b = f[k: N](d[k], 1)", ["f64", "s32"]),
        (BOTH, "a, b = f[k: N](q[k] > 0, 1.5)", ["s32", "f32"]),
        (LSE, "a, b = lse[k: N](d[k], 1)", ["f64", "f64"]),
        (LSE, "a, b = lse[k: N](q[k], 1)", ["f32", "f32"]),
        (BEST, "a, b = best[k: N](x[k], k)", ["f32", "s32"]),
        ("combiner f(a, b) init 0.0 = a + b", "a = f[k: N](q[k])", ["f32"]),
    ],
)
def test_a_component_has_the_dtype_of_its_elements(
    combiner: str, use: str, wanted: list[str]
) -> None:
    assert dtypes(combiner, use) == wanted


# ---------------------------------------------------------------- what is refused
HEADER = "kernel k[M=4, K=8](x: f32[M, K], g: s32[M, K], b: u8[M, K]) -> (y: f32[M])"

REFUSED = {
    "not_commutative": ("combiner f(a, b) init 0 = a - b", "y[i] = f[k: K](x[i, k])", "E350", "f(b, a) is -2"),
    "not_associative": ("combiner f(a, b) init 0 = (a + b) / 2", "y[i] = f[k: K](x[i, k])", "E350", "not associative"),
    "composition": (
        "combiner f((a, b), (c, d)) init (1, 0) = (a * c, a * d + b)",
        "y[i], p[i: M] = f[k: K](x[i, k], 1)", "E350", "not commutative",
    ),
    "element_for_partial": ("combiner f(a, b) init 0 = a + sq(b)", "y[i] = f[k: K](x[i, k])", "E350", "not commutative"),
    "init_not_neutral": ("combiner f(a, b) init 1 = a + b", "y[i] = f[k: K](x[i, k])", "E350", "f(init, init) is 2, not 1"),
    "init_of_some_elements": (
        "combiner f(a, b) init 0 = max(a, b)", "y[i] = f[k: K](x[i, k])", "E350", "with a = -1, f(init, a) is 0",
    ),
    "nan_of_infinities": (
        LSE.replace("-1e30", "-inf"), "m[i: M], y[i] = lse[k: K](x[i, k], 1)", "E350", "such as -1e30",
    ),
    "infinite_elements": (
        LSE, "m[i: M], y[i] = lse[k: K](x[i, k] if g[i, k] > 0 else -inf, 1)", "E350", "nan",
    ),
    "overflow": (
        "combiner f(a, b) init -inf = log(exp(a) + exp(b))", "y[i] = f[k: K](x[i, k])", "E350", "with a = ",
    ),
    "ties": (
        "combiner f((v, i), (w, j)) init (-inf, -1) = (max(v, w), i if v >= w else j)",
        "y[i], p[i: M] = f[k: K](x[i, k], k)", "E350", "ties need a rule",
    ),
    "lowest_byte": (
        "combiner f((v, i), (w, j)) init (0, 99) = (max(v, w), i if v > w or (v == w and i > j) else j)",
        "m[i: M], p[i: M] = f[k: K](b[i, k], k)  y[i] = 0", "E350", "is not neutral",
    ),
    "divisor": ("combiner f(a, b) init 0 = a // b", "y[i] = f[k: K](g[i, k])", "E310", "positive"),
    "too_many": ("combiner f(a, b) init 0 = a + b", "y[i] = f[k: K](x[i, k], 1)", "E253", "single values"),
    "too_few": (BOTH, "y[i], p[i: M] = f[k: K](x[i, k])", "E253", "`f[k: K](x0, x1)`"),
    "init_count": (BOTH.replace("(0, 0)", "0"), "y[i], p[i: M] = f[k: K](x[i, k], 1)", "E253", "1 values for 2"),
    "result_count": (
        "combiner f((a, b), (c, d)) init (0, 0) = a + c", "y[i], p[i: M] = f[k: K](x[i, k], 1)", "E253", "yields 1",
    ),
    "sides": ("combiner f((a, b), c) init 0 = a + c", "y[i] = f[k: K](x[i, k])", "E253", "tuples of 2 and of 1"),
    "init_is_data": ("", "combiner f(a, b) init (x[0, 0]) = a + b  y[i] = f[k: K](x[i, k])", "E253", "not made of numbers"),
    "reads": ("", "combiner f(a, b) init 0 = a + b * x[0, 0]  y[i] = f[k: K](x[i, k])", "E253", "reads `x`"),
    "reduction_inside": ("combiner f(a, b) init 0 = a + sum[j: 3](b)", "y[i] = f[k: K](x[i, k])", "E253", "holds a reduction"),
    "loop_index": ("", "seq t: M { combiner f(a, b) init 0 = a + b * t  y[t] = f[k: K](x[t, k]) }", "E253", "uses `t`"),
    "itself": ("combiner f(a, b) init 0 = f[k: 2](a)", "y[i] = f[k: K](x[i, k])", "E242", "uses itself"),
    "tuple_as_value": (BOTH, "y[i] = f[k: K](x[i, k], 1)", "E233", "take it apart"),
    "names": (BOTH, "y[i], p[i: M], q[i: M] = f[k: K](x[i, k], 1)", "E233", "3 names for a tuple of 2"),
    "axes": (BOTH, "y[i], p[j: M] = f[k: K](x[i, k], 1)", "E227", "the same axes"),
    "called": (BOTH, "y[i] = f(x[i, 0], 1)", "E253", "needs an axis"),
    "def_as_reduction": ("def f(a, b) = a + b", "y[i] = f[k: K](x[i, k])", "E250", "make it a combiner"),
    "built_in": ("combiner sum(a, b) init 0 = a + b", "y[i] = sum[k: K](x[i, k])", "E201", "built in"),
    "twice": ("combiner f(a, a) init 0 = a", "y[i] = f[k: K](x[i, k])", "E201", "two parameters `a`"),
    "no_tuple": ("", "y[i], p[i: M] = x[i, 0] + 1", "E260", "one stage for each of y, p"),
    "bounds": (BOTH, "y[i], p[i: M] = f[k: K](x[i, k + 1], 1)", "E300", "it is 8 for k = 7"),
    "bounds_of_the_second": (BOTH, "y[i], p[i: M] = f[k: K](1.0, x[i, k + 1])", "E300", "it is 8 for k = 7"),
    "guard_outside": (BOTH, "y[i] = { let (a, b) = f[k: K](x[i, k + i], 1) return a } if i < 1 else 0", "E30", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_way_out(name: str) -> None:
    combiner, use, code, said = REFUSED[name]
    text = f"{combiner}\n{HEADER} {{\n  compute {{ {use} }}\n}}\n"
    found = check_text(text)
    errors = [d for d in found.diagnostics if d.severity == "error"]
    assert found.program is None and errors
    assert errors[0].rule.code.startswith(code), render(errors[0], text)
    assert said in render(errors[0], text)
    assert errors[0].span is not None


def test_every_broken_law_is_shown_with_an_example_that_breaks_it() -> None:
    text = f"combiner f(a, b) init 0 = a + b + a * b * (a > b)\n{HEADER} {{ compute {{ y[i] = f[k: K](x[i, k]) }} }}"
    message = check_text(text).diagnostics[0].message
    assert "with a = " in message and "f(a, b) is" in message and "f(b, a) is" in message


def test_the_verdict_is_always_the_same() -> None:
    text = f"combiner f(a, b) init 0 = a * 0.999 + b\n{HEADER} {{ compute {{ y[i] = f[k: K](x[i, k]) }} }}"
    assert check_text(text).diagnostics == check_text(text).diagnostics


# ---------------------------------------------------------------- what it computes
@pytest.mark.parametrize("mode", ["f64", "declared"])
@pytest.mark.parametrize("name", NAMES)
def test_interpreted_like_numpy(name: str, mode) -> None:
    text, reference = CASES[name]
    program = program_of(text)
    data = inputs(program.inputs)
    agree(interpret(program, data, mode), reference(data))


def test_pieces_of_a_large_reduction_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PLAIN_LANES", 64)
    monkeypatch.setattr(limits, "LEAST_LANES", 8)
    for name in ("welford", "argmax_with_value", "masked"):
        text, reference = CASES[name]
        program = program_of(text)
        data = inputs(program.inputs, 3)
        agree(interpret(program, data), reference(data))


def test_no_element_yields_init() -> None:
    program = program_of(
        LSE + "kernel k[N=4](x: f32[N]) -> (m: f32[N], s: f32[N]) {\n"
        "  compute { m[i], s[i] = lse[k: 0..i](x[k], 1) }\n}\n"
    )
    out = interpret(program, {"x": np.arange(4, dtype=np.float32)})
    np.testing.assert_allclose(out["m"], [-1e30, 0, 1, 2])
    np.testing.assert_allclose(out["s"][:3], [0, 1, 1 + np.exp(-1)])


@pytest.mark.parametrize("name", NAMES)
def test_restated_text_means_the_same(name: str) -> None:
    text, _ = CASES[name]
    program = program_of(text)
    made = restate(program)
    again = program_of(print_kernel(made.kernel))
    data = inputs(program.inputs, 5)
    want = interpret(program, data)
    got = interpret(again, {made.names[n]: v for n, v in data.items()})
    for tensor in program.outputs:
        np.testing.assert_allclose(got[made.names[tensor.name]], want[tensor.name], rtol=1e-12)
