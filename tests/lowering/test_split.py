# ruff: noqa: E501 (kernel texts)
"""Reductions split over threads: partial results of chunks, merged in order."""

from __future__ import annotations

import numpy as np
import pytest

from edgekernelbench.ir import core
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.lower import lower
from tests.ir.combiner_cases import BEST, CASES, LSE, WELFORD, agree, inputs

from .run_nest import run_module
from .support import TARGET, check, draw_inputs, load_text, must_lower


def kernel_of(head: str, body: str, lines: str, before: str = "") -> str:
    return (
        f"{before}kernel k{head} {{\n  compute {{ {body} }}\n  schedule for cpu {{ {lines} }}\n}}\n"
    )


HEAD = "[M=6, N=9, K=53](x: f32[M, K], w: f32[K, N], q: s8[M, K], g: s32[M, K], n: s32[M])"
OPS = ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin"]
BODIES = {op: "x[i, k] > 0" if op in ("any", "all") else "x[i, k]" for op in OPS}

NESTS = [
    "parallel k by 8, i, k",
    "parallel k by 53, i, k",
    "parallel k, i",
    "parallel k, unroll i",
    "parallel k by 20, k, i",
    "parallel k by 20, k by 3, i by 4, k, unroll i",
    "parallel k by 20, i, vectorize k",
    "parallel k by 20, i by 2, unroll i, vectorize k",
    "parallel k by 20, k, vectorize i",
    "parallel k by 52, parallel i by 4, i, k",
    "parallel i by 4, parallel k by 13, i, vectorize k",
    "parallel i, parallel k by 10, k by 4, unroll k",
]


@pytest.mark.parametrize("op", OPS)
def test_every_operation_has_a_law_to_merge_by(op: str) -> None:
    dtype = {"any": "bool", "all": "bool", "argmax": "s32", "argmin": "s32"}.get(op, "f32")
    for lines in NESTS:
        text = kernel_of(
            f"{HEAD} -> (y: {dtype}[M])", f"y[i] = {op}[k: K]({BODIES[op]})", f"loops y ({lines})"
        )
        check(*load_text(text))


PROGRAMS = {
    "product": ("(y: f32[M, N])", "y[i, j] = sum[k: K](x[i, k] * w[k, j])", [
        "loops y (parallel k by 16, i by 4, j by 8, k, unroll i, vectorize j)",
        "loops y (parallel k by 25, i, j, k)",
        "loops y (parallel i by 4, parallel k by 16, k, i, vectorize j)",
        "loops y (parallel k by 16, j, k, i)",
    ]),
    "bytes": ("(y: s32[M])", "y[i] = sum[k: K](q[i, k] * q[i, k])", ["loops y (parallel k by 9, i, k)"]),
    "half": ("(y: f16[M])", "y[i] = max[k: K](x[i, k])", ["loops y.max (parallel k by 9, i, k)"]),
    "in_half": ("(y: f16[M], z: f16[M])", "y[i] = max[k: K](f16(x[i, k]))  z[i] = sum[k: K](f16(x[i, k]))", [
        "loops y (parallel k by 9, i, k)  loops z (parallel k by 7, i, vectorize k)",
    ]),
    "stored_narrower": ("(z: f32[M])", "y: f16[i: M] = sum[k: K](x[i, k])  z[i] = y[i] + 1", [
        "loops y.sum (parallel k by 9, k, i)", "loops y.sum (parallel k by 9, i, vectorize k)",
    ]),
    "two_axes": ("(y: s32, z: f32)", "y = argmax[i: M, k: K](q[i, k])  z = sum[i: M, k: K](x[i, k])", [
        "loops y (parallel k by 10, i, k)  loops z (parallel i, vectorize k)",
        "loops y (parallel i by 2, k, i)  loops z (parallel k by 7, i, vectorize k)",
    ]),
    "where": ("(y: f32[M], z: s32[M])", (
        "y[i] = sum[k: K where g[i, k] > 3](x[i, k])  z[i] = argmin[k: K where k % 3 == 1](x[i, k])"
    ), ["loops y (parallel k by 10, i, vectorize k)  loops z (parallel k by 4, i, k)"]),
    "none_left": ("(y: f32[M], z: s32[M])", (
        "y[i] = max[k: K where g[i, k] > 99](x[i, k])  z[i] = argmax[k: K where g[i, k] > 99](x[i, k])"
    ), ["loops y (parallel k by 10, i, k)  loops z (parallel k by 10, i, k)"]),
    "ragged": ("(y: f32[M], z: f32[M])", (
        "y[i] = sum[k: clamp(n[i], 0, K) .. K](x[i, k])  z[i] = sum[k: 0..i+1](x[i, k])"
    ), ["loops y (parallel k by 10, i, k)  loops z (parallel k by 4, i, vectorize k)"]),
    "in_a_bigger_expression": ("(y: f32[M, K])", "y[i, k] = x[i, k] / sum[e: K](abs(x[i, e]))", [
        "loops y.sum (parallel e by 20, i, vectorize e)",
    ]),
    "in_a_history": ("(y: f32[M])", "seq t: M { y[t] = sum[k: K](x[t, k]) + pad(y[t-1], 1) }", [
        "loops y.sum (parallel k by 20, vectorize k)",
    ]),
    "independent": ("(y: f32[M])", "each t: M { y[t] = sum[k: K](x[t, k]) }", [
        "loops y (parallel k by 20, vectorize k)",
    ]),
    "producers_inside": ("(y: f32[M], z: s32[M])", (
        "e[i: M, k: K] = tanh(x[i, k])  d[i: M, k: K] = e[i, k] * e[i, k]"
        "  y[i] = sum[k: K](d[i, k] + e[i, k])  z[i] = argmax[k: K](abs(q[i, k]))"
    ), [
        "loops y (parallel k by 20, i, k)  place e, d in y.k0",
        "loops y (parallel k by 20, i, k)  place d in y.k1  place e in y.i",
        "loops y (parallel k by 20, parallel i, vectorize k)  place d, e in y.i",
    ]),
    "an_output_inside": ("(e: f32[M, K], y: f32[M])", "e[i, k] = tanh(x[i, k])  y[i] = sum[k: K](e[i, k])", [
        "loops y (parallel k by 20, i, k)  place e in y.k0",
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_split_like_unsplit(name: str) -> None:
    outputs, body, several = PROGRAMS[name]
    for lines in several:
        result = check(*load_text(kernel_of(f"{HEAD} -> {outputs}", body, lines)), seed=3)
        assert result.module is not None and ".parts" in result.module.nest


def test_a_stage_with_a_layout_is_merged_into_it() -> None:
    text = kernel_of(
        f"{HEAD} -> (y: f32[M, N])",
        "a[i: M, j: N] = sum[k: K](x[i, k] * w[k, j])  y[i, j] = a[i, j] + 1",
        "loops a (parallel k by 16, i, k, vectorize j)",
    )
    layout = "  memory for cpu { layout a [i, j] -> [j // 4, i, j % 4] }\n}\n"
    check(*load_text(text.rstrip()[:-1] + layout))


TUPLES = {
    "softmax": "loops m (parallel c by 20, r, vectorize c)",
    "welford": "loops mu (parallel r by 4, parallel c by 50, r, vectorize c)",
    "argmax_with_value": "loops v (parallel c by 12, r, c)",
    "argmax_of_bytes": "loops w (parallel c by 12, c, r)",
    "masked": "loops m (parallel c by 12, r, vectorize c)",
    "in_a_history": "loops m (parallel c by 12, vectorize c)",
    "two_axes": "loops s (parallel i by 2, i, vectorize j)",
    "single_values": "loops y (parallel c by 10, r, vectorize c)",
    "bits": "loops y (parallel c by 10, c, vectorize r)",
}


@pytest.mark.parametrize("name", TUPLES)
def test_combiners_merge_what_chunks_leave(name: str) -> None:
    text = CASES[name][0].rstrip()[:-1] + f"  schedule for cpu {{ {TUPLES[name]} }}\n}}\n"
    kernel, program = load_text(text)
    module = must_lower(kernel, program).module
    assert module is not None and ".parts" in module.nest
    data = inputs(program.inputs, 7)
    agree(run_module(module, data, {t.name for t in program.outputs}), CASES[name][1](data))


def test_scores_are_computed_by_the_thread_that_merges_them() -> None:
    text = kernel_of(
        "[L=70, D=8](q: f32[D], k: f32[L, D]) -> (m: f32, s: f32)",
        "sc[l: L] = sum[d: D](q[d] * k[l, d])  m, s = lse[l: L](sc[l], 1)",
        "loops m (parallel l by 16, vectorize l)  place sc in s.l0",
        LSE,
    )
    module = check(*load_text(text)).module
    assert module is not None
    head = module.nest.split("parallel")[0]
    assert "sc" not in head and "m.m.parts: f32[5]" in head and "m.s.parts: f32[5]" in head


def test_only_the_components_that_are_needed_have_partial_results() -> None:
    text = kernel_of(
        "[C=40](x: f32[C]) -> (y: f32)",
        "y = { let (m, s) = lse[c: C](x[c], 1)  return m }",
        "loops y (parallel c by 10, c)",
        LSE,
    )
    module = check(*load_text(text)).module
    assert module is not None and "y.m.parts" in module.nest and "y.s" not in module.nest


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_the_result_does_not_depend_on_the_number_of_threads(threads: int) -> None:
    body = "y[j] = sum[k: K](w[k, j] * w[k, j])  mu, v, c = welford[k: K](w[k, 0], 0, 1)  z = v / c"
    lines = "loops y (parallel k by 7, k, vectorize j)  loops mu (parallel k by 7, vectorize k)"
    kernel, program = load_text(kernel_of(f"{HEAD} -> (y: f32[N], z: f32)", body, lines, WELFORD))
    data = draw_inputs(program, 1)
    made = []
    for target in (TARGET, TARGET.model_copy(update={"threads": threads})):
        module = must_lower(kernel, program, target).module
        assert module is not None
        made.append(run_module(module, data, {"y", "z"}))
    for name in ("y", "z"):
        np.testing.assert_array_equal(made[0][name], made[1][name])


def test_many_results_are_merged_by_several_threads() -> None:
    text = kernel_of(
        "[M=300, N=40, K=64](x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N], s: f32[N])",
        "y[i, j] = sum[k: K](x[i, k] * w[k, j])  s[j] = sum[k: K](w[k, j])",
        "loops y (parallel k by 2, i, k, vectorize j)  loops s (parallel k by 2, k, vectorize j)",
    )
    module = must_lower(*load_text(text)).module
    assert module is not None
    before, *_ = module.nest.split("for chunk in")
    assert (
        before.rstrip().splitlines()[-1].startswith("parallel i in 300")
    )  # around the chunks of y
    assert module.nest.count("parallel") == 3  # those of `s` are merged by one thread


def test_ties_go_to_the_lowest_position_whatever_the_chunks() -> None:
    text = kernel_of(
        "[A=4, B=30](x: s8[A, B]) -> (y: s32, i: s32)",
        "y = argmax[a: A, b: B](x[a, b])  v, i = best[a: A, b: B](x[a, b], a * B + b)",
        "loops y (parallel b by 4, a, b)  loops v (parallel b by 4, b, a)",
        BEST,
    )
    kernel, program = load_text(text)
    module = must_lower(kernel, program).module
    assert module is not None
    data = {"x": np.zeros((4, 30), np.int8)}
    data["x"][[0, 2, 3], [29, 1, 0]] = 5
    out = run_module(module, data, {"y", "i"})
    assert out["y"] == 29 and out["i"] == 29


def test_chunks_are_counted() -> None:
    text = kernel_of(
        "[N=600](x: f32[N]) -> (y: f32)", "y = sum[i: N](x[i])", "loops y (parallel i by 2, i)"
    )
    kernel, program = load_text(text)
    (diagnostic,) = lower(kernel, program, TARGET).diagnostics
    assert "300 chunks" in diagnostic.message and "from 3 on" in diagnostic.help[0]
    check(*load_text(text.replace("by 2", "by 3")))


@pytest.mark.parametrize(
    ("rows", "help"), [(1 << 20, "from 10 on"), (1 << 25, "from 300 on"), (1 << 26, "spatial")]
)
def test_partial_results_take_bounded_memory(rows: int, help: str) -> None:
    text = kernel_of(
        f"[R={rows}, N=600](x: s8[N]) -> (y: s8[R])",
        "a[r: R] = sum[i: N](x[i])  y[r] = s8(a[r])",
        "loops a (parallel i by 6, r, i)",
    )
    kernel, program = load_text(text)
    (diagnostic,) = lower(kernel, program, TARGET).diagnostics
    assert (
        diagnostic.rule.code == "E414" and f"100 chunks, with {rows} results" in diagnostic.message
    )
    assert help in diagnostic.help[0]


def test_a_kept_producer_is_computed_once_by_the_thread_of_its_chunk() -> None:
    text = kernel_of(
        f"{HEAD} -> (e: f32[K], y: f32[M])",
        "e[k] = tanh(w[k, 0])  y[i] = sum[k: K](x[i, k] * e[k])",
        "loops y (parallel k by 20, i, k)  place e in y.k0",
    )
    module = check(*load_text(text)).module
    assert module is not None and "min(" not in module.nest
    refused = lower(
        *load_text(text.replace("parallel k", "parallel i, parallel k").replace("20, i", "20")),
        TARGET,
    )
    assert [d.rule.code for d in refused.diagnostics] == ["E426"]


TIES = """kernel k(x: s8[9, 5]) -> (y: s32, z: s32) { compute {
  y = argmin[i: 9, j: 5 where i == 8 or j > 0](1.25)
  z = argmax[i: 9, j: 5 where x[i, j] != 0](x[i, j] > 0)
}
schedule for cpu { loops y (%s)  loops z (%s) } }"""


@pytest.mark.parametrize(
    "lines",
    ["j, i", "unroll j by 3, j, vectorize i", "j by 2, i by 4, j, i", "parallel i by 3, j, i",
     "parallel j by 2, i, vectorize j", "i by 4, j, unroll i", "i by 4, i, vectorize j"],
)  # fmt: skip
def test_the_first_of_equals_is_found_in_any_order_of_the_loops(lines: str) -> None:
    check(*load_text(TIES % (lines, lines)), seed=2)


def test_terms_that_come_in_order_are_not_compared_by_position() -> None:
    for lines, tests in (("i by 4, i, j", 0), ("j, i", 2)):
        module = check(*load_text(TIES % (lines, lines))).module
        assert module is not None
        reads = [n for s in nest.statements(module.main.body) for e in nest.expressions(s)
                 for n in core.walk(e) if isinstance(n, core.Binary) and n.op == "lt"
                 and isinstance(n.right, core.Load) and n.right.tensor.name.endswith(".at")]  # fmt: skip
        assert len(reads) >= tests and bool(reads) == bool(tests)
