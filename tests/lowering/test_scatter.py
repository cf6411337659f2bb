# ruff: noqa: E501 (kernel texts and tables)
"""Scatters as nests state them: serial, on several threads, privatised; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.lowering.lower import lower

from .run_nest import run_module
from .support import TARGET, check, draw_inputs, load_text, must_lower

HEAD = "[L=53, V=11, D=7, B=3](idx: s32[L], two: s32[B, L], x: f32[L, D], q: s8[L], n: s32[L])"


def kernel_of(outputs: str, body: str, lines: str, head: str = HEAD) -> str:
    return f"kernel k{head} -> ({outputs}) {{\n  compute {{ {body} }}\n  schedule for cpu {{ {lines} }}\n}}\n"


ROWS = "acc[v, d] = sum[p: L where idx[p] == v](x[p, d])"
PROGRAMS = {
    "histogram": ("y: s32[V]", "y[v] = sum[p: L where idx[p] == v](1)", [
        "p, scatter v", "p by 8, p, scatter v", "parallel p by 8, p, scatter v", "parallel p, scatter v",
        "parallel p by 53, p, scatter v", "parallel p by 20, p by 3, unroll p, scatter v",
    ]),
    "rows": ("y: f32[V, D]", ROWS.replace("acc", "y"), [
        "p, scatter v, d", "p, scatter v, vectorize d", "p, scatter v, d by 4, vectorize d",
        "parallel p by 16, p, scatter v, vectorize d", "d, p, scatter v", "d by 2, p, d, scatter v",
        "parallel d, p, scatter v", "parallel d by 4, p, scatter v, unroll d",
        "parallel d by 4, parallel p by 20, p, scatter v, vectorize d",
        "parallel p by 20, d by 3, p, scatter v, d", "parallel p by 20, parallel d, p, scatter v",
    ]),
    "batches": ("y: f32[B, V]", "y[b, v] = sum[p: L where two[b, p] == v](x[p, 0])", [
        "b, p, scatter v", "p, b, scatter v", "parallel b, p, scatter v", "parallel p by 20, b, p, scatter v",
        "parallel b, parallel p by 20, p, scatter v", "b by 2, p, b, scatter v",
    ]),
    "two_source_axes": ("y: s32[V]", "y[v] = sum[b: B, p: L where v == two[b, p] + 1](q[p])", [
        "b, p, scatter v", "parallel b, p, scatter v", "parallel p by 20, b, p, scatter v", "p, b by 2, b, scatter v",
    ]),
    "a_further_condition": ("y: f32[V, D]", (
        "y[v, d] = sum[p: L where p % 3 != 0 and clamp(idx[p], 0, V-1) == v and n[p] > d](x[p, d])"
    ), ["parallel p by 20, p, scatter v, vectorize d", "parallel d by 2, p, d, scatter v"]),
    "ragged": ("y: s32[V]", "y[v] = sum[p: 0..clamp(n[0], 0, L) where idx[p] == v](1)", [
        "p, scatter v", "parallel p by 8, p, scatter v", "p by 8, p, scatter v",
    ]),
    "ragged_along_a_free_axis": ("y: s32[V, D]", "y[v, d] = sum[p: 0..d+1 where idx[p] == v](1)", [
        "d, p, scatter v", "p, scatter v, d", "parallel p by 3, p, scatter v, vectorize d", "parallel d, p, scatter v",
    ]),
    "two_axes_to_choose_from": ("y: s32[V, D]", "y[v, d] = sum[p: L where idx[p] == v and n[p] == d](1)", [
        "p, scatter v, d", "p, scatter d, v", "parallel p by 20, p, scatter d, v", "v, p, scatter d",
    ]),
    "three_elements": ("y: s32[3]", "y[v] = sum[p: L where idx[p] == v](1)", ["parallel p by 20, p, scatter v"]),
    "one_element": ("y: s32[1]", "y[v] = sum[p: L where idx[p] == v](1)", ["parallel p by 20, p, scatter v"]),
    "stored_narrower": ("y: f16[V]", "y[v] = sum[p: L where idx[p] == v](x[p, 0])", []),
    "independent": ("y: s32[B, V]", "each b: B { y[b, v] = sum[p: L where two[b, p] == v](1) }", [
        "p, scatter v", "parallel p by 20, p, scatter v",
    ]),
    "in_a_recurrence": ("y: s32[B, V]", (
        "seq b: B { y[b, v: V] = sum[p: L where (two[b, p] + pad(y[b-1, 0], 0)) % V == v](1) }"
    ), ["p, scatter v", "parallel p by 20, p, scatter v"]),
}  # fmt: skip
CASES = [(name, nest) for name, (_, _, nests) in PROGRAMS.items() for nest in nests]


@pytest.mark.parametrize(("name", "nest"), CASES)
def test_a_stated_scatter_gives_the_results(name: str, nest: str) -> None:
    outputs, body, _ = PROGRAMS[name]
    text = kernel_of(outputs, body, f"loops y ({nest})")
    parsed = parse(text).kernel
    assert parsed is not None and parse(print_kernel(parsed)).kernel == parsed
    for threads in (1, 2):
        result = check(*load_text(text), TARGET.model_copy(update={"threads": threads}), seed=5)
        assert result.module is not None
        assert (".parts" in result.module.nest) == (
            "parallel p" in nest or ("parallel b" in nest and name == "two_source_axes")
        )
        assert "let to = " in result.module.nest  # nothing is compared with all elements


OPS = {
    "sum": ("f32", "x[p, 0]"), "prod": ("f32", "x[p, 0]"), "max": ("f32", "x[p, 0]"), "min": ("s32", "q[p]"),
    "any": ("bool", "x[p, 0] > 0"), "all": ("bool", "x[p, 0] > 0"),
}  # fmt: skip


@pytest.mark.parametrize("op", OPS)
def test_every_operation_that_has_a_scatter(op: str) -> None:
    dtype, item = OPS[op]
    for nest in ("p, scatter v", "parallel p by 8, p, scatter v"):
        body = f"y[v] = {op}[p: L where idx[p] == v]({item})"
        check(*load_text(kernel_of(f"y: {dtype}[V]", body, f"loops y ({nest})")), seed=2)


def test_a_scatter_inside_a_bigger_expression_is_a_stage_of_its_own() -> None:
    body = "y[v] = 1 + sum[p: L where idx[p] == v](f16(x[p, 0]))"
    check(*load_text(kernel_of("y: f16[V]", body, "loops y.sum (parallel p by 20, p, scatter v)")))


def test_an_accumulator_with_a_layout_is_merged_into_it() -> None:
    text = kernel_of(
        "y: f32[V, D]",
        f"{ROWS}  y[v, d] = acc[v, d] * 2".replace("acc[v, d] = ", "acc[v: V, d: D] = "),
        "loops acc (parallel p by 16, p, scatter v, vectorize d)",
    )
    layout = "  memory for cpu { layout acc [v, d] -> [d // 4, v, d % 4] }\n}\n"
    check(*load_text(text.rstrip()[:-1] + layout))


def test_no_elements_and_no_landing() -> None:
    text = kernel_of(
        "y: f32[V, D]",
        ROWS.replace("acc", "y"),
        "loops y (parallel p by 20, p, scatter v, vectorize d)",
    )
    kernel, program = load_text(text)
    module = must_lower(kernel, program).module
    assert module is not None
    data = draw_inputs(program)
    data["idx"] = np.full(53, -7, np.int32)
    np.testing.assert_array_equal(
        run_module(module, data, {"y"})["y"], np.zeros((11, 7), np.float32)
    )
    data["idx"] = np.full(53, 2**31 - 1, np.int32)
    np.testing.assert_array_equal(
        run_module(module, data, {"y"})["y"], np.zeros((11, 7), np.float32)
    )


def test_data_with_an_offset_land_where_they_should_without_a_further_test() -> None:
    body = "y[v] = sum[p: L where v == idx[p] + 3](1)"
    kernel, program = load_text(kernel_of("y: s32[V]", body, "loops y (p, scatter v)"))
    module = must_lower(kernel, program).module
    assert module is not None and "==" not in module.nest
    data = draw_inputs(program)
    data["idx"][:] = -100
    data["idx"][:6] = [2**31 - 1, -(2**31), -3, 2**31 - 3, 7, 7]
    got = run_module(module, data, {"y"})["y"]
    np.testing.assert_array_equal(got, [1, *[0] * 9, 2])


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_the_result_does_not_depend_on_the_number_of_threads(threads: int) -> None:
    text = kernel_of(
        "y: f32[V, D]",
        ROWS.replace("acc", "y"),
        "loops y (parallel p by 7, p, scatter v, vectorize d)",
    )
    kernel, program = load_text(text)
    data = draw_inputs(program, 1)
    made = []
    for target in (TARGET, TARGET.model_copy(update={"threads": threads})):
        module = must_lower(kernel, program, target).module
        assert module is not None
        made.append(run_module(module, data, {"y"})["y"])
    np.testing.assert_array_equal(made[0], made[1])


def test_private_copies_are_on_the_bill() -> None:
    text = kernel_of("y: f32[V, D]", ROWS.replace("acc", "y"), "loops y (%s)")
    serial = must_lower(*load_text(text % "p, scatter v, d")).module
    private = must_lower(*load_text(text % "parallel p by 20, p, scatter v, d")).module
    assert serial is not None and serial.workspace_bytes == 0
    assert private is not None and private.workspace_bytes == 3 * 11 * 7 * 4


def test_an_axis_may_be_called_scatter() -> None:
    text = kernel_of("y: f32[L, D]", "y[scatter, d] = x[scatter, d]", "loops y (%s)")
    for nest in (
        "scatter, d",
        "scatter by 4, scatter, vectorize d",
        "parallel scatter, d",
        "d, unroll scatter by 32, scatter",
    ):
        check(*load_text(text % nest))


REFUSED = [
    ("y[v] = sum[p: L](q[p] * v)", "p, scatter v", "scatter v", "no condition", "`sum[p: L where idx[p] == v](...)`"),
    ("y[v] = q[v]", "scatter v", "scatter v", "no condition", "state it"),
    ("y[v] = sum[p: L where idx[p] > v](1)", "p, scatter v", "scatter v", "does not compare `v` with data alone", "or drop"),
    ("y[v] = argmax[p: L where idx[p] == v](q[p])", "p, scatter v", "scatter v", "cannot land one by one", "loop over `v`"),
    ("y[v] = sum[p: v..L where idx[p] == v](1)", "p, scatter v", "scatter v", "does not compare", ""),
    ("y[v] = sum[p: L where idx[p] == v](1)", "scatter v, p", "p", "`p` says where an element lands", "in front"),
    ("y[v] = sum[p: L where idx[p] == v](1)", "p by 8, scatter v, p", "p", "runs inside `scatter v`", ""),
    ("y[v] = sum[p: L where idx[p] == v](1)", "v by 2, p, scatter v", "scatter v", "has loops", "all that the nest says"),
    ("y[v] = sum[p: L where idx[p] == v](1)", "p, scatter v, scatter v", "scatter v", "", ""),
    ("y[v] = sum[p: L where idx[p] == v](1)", "scatter p, v", "scatter p", "nothing lands along `p`", "`scatter v`"),
    ("y[v] = sum[p: L where idx[p] == v](1)", "scatter v, vectorize p", "vectorize p", "lanes could meet", "drop `vectorize`"),
    ("y[v] = sum[p: L where p > 2 and idx[p - 3] == v](1)", "p, scatter v", "scatter v", "read only where another condition holds", "`edge(...)`"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "nest", "span", "message", "help"), REFUSED)
def test_refused(body: str, nest: str, span: str, message: str, help: str) -> None:
    text = kernel_of("y: s32[V]", body, f"loops y ({nest})")
    kernel, program = load_text(text)
    result = lower(kernel, program, TARGET)
    assert result.module is None
    found = [d for d in result.diagnostics if d.rule.code == "E460"]
    assert found, result.diagnostics
    assert found[0].span is not None and text[found[0].span.start : found[0].span.end] == span
    assert message in found[0].message and any(help in line for line in found[0].help)


def test_a_scatter_is_neither_placed_nor_a_place() -> None:
    body = "a[v: V] = sum[p: L where idx[p] == v](q[p])  y[v] = a[v] + 1"
    placed = kernel_of("y: s32[V]", body, "loops a (p, scatter v)  loops y (v)  place a in y.v")
    kernel, program = load_text(placed)
    (diagnostic,) = lower(kernel, program, TARGET).diagnostics
    assert diagnostic.rule.code == "E460" and "runs on its own" in diagnostic.message
    body = "e[p: L] = q[p] * 2  y[v] = sum[p: L where idx[p] == v](e[p])"
    for line, memory in (
        ("place e in y.p", ""),
        ("", "cache q in y.p"),
        ("", "prefetch e in y.p ahead 4"),
    ):
        body_ = body.replace("e[p])", "e[p] + q[p])")
        text = kernel_of("y: s32[V]", body_, f"loops y (p, scatter v)  {line}").rstrip()[:-1]
        kernel, program = load_text(f"{text}  memory for cpu {{ {memory} }}\n}}\n")
        found = lower(kernel, program, TARGET).diagnostics
        assert [d.rule.code for d in found] == ["E524" if "prefetch" in memory else "E420"]
        assert "scatter" in found[0].message and "loops of `y`: p, scatter v" in found[0].notes[0]


def test_lanes_are_inside_the_point_where_elements_land() -> None:
    text = kernel_of(
        "y: f32[V, D]", ROWS.replace("acc", "y"), "loops y (p, vectorize d, scatter v)"
    )
    (diagnostic,) = lower(*load_text(text), TARGET).diagnostics
    assert diagnostic.rule.code == "E460" and "behind `scatter`" in diagnostic.help[0]
