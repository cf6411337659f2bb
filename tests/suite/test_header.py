"""Kernel headers, canonical programs and task statements."""

from __future__ import annotations

import re

import pytest

from edgekernelbench.suite import Workload, load_suite
from edgekernelbench.suite.header import replace_header

SUITE = load_suite()
WORKLOADS = list(SUITE.workloads.values())
each_workload = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.id)


@pytest.mark.parametrize(
    ("id", "header"),
    [
        (
            "matmul_nt__01",
            "kernel matmul_nt[M=128, N=576, K=576]"
            "(A: f32[M, K], B: const f32[N, K]) -> (C: f32[M, N])",
        ),
        (
            "depthwise_conv2d_nchw__02",
            "kernel depthwise_conv2d_nchw[N=1, C=240, H=14, W=14, R=5, S=5, stride=1, pad=2, "
            "OH=(H+2*pad-R)//stride+1, OW=(W+2*pad-S)//stride+1]"
            "(x: f32[N, C, H, W], w: const f32[C, R, S]) -> (y: f32[N, C, OH, OW])",
        ),
        (
            "residual_add_rms_norm__01",
            "kernel residual_add_rms_norm[eps=1e-05, M=64, C=2048]"
            "(x: f16[M, C], r: f16[M, C], g: const f16[C]) -> (h: f16[M, C], y: f16[M, C])",
        ),
        (
            "gemv_q4_0_block32__01",
            "kernel gemv_q4_0_block32[N=5632, KB=64]"
            "(q: const u8[N, KB, 16], d: const f16[N, KB], x: f32[KB*32]) -> (y: f32[N])",
        ),
    ],
)
def test_headers(id, header):
    assert SUITE.workloads[id].header() == header


@each_workload
def test_headers_parse_to_the_workloads_interface(workload: Workload):
    from edgekernelbench.ir.parse import parse

    output = workload.output_specs[0].name
    parsed = parse(f"{workload.header()} {{ compute {{ {output} = 0 }} }}")
    assert parsed.kernel is not None, parsed.diagnostics
    kernel = parsed.kernel
    assert kernel.name == workload.pattern
    assert [size.name for size in kernel.sizes] == list(workload.sizes)
    for params, specs in (
        (kernel.inputs, workload.input_specs),
        (kernel.outputs, workload.output_specs),
    ):
        assert [(p.name, p.dtype, p.const) for p in params] == [
            (s.name, s.dtype, s.const) for s in specs
        ]


@each_workload
def test_canonical_programs_carry_the_workloads_header(workload: Workload):
    from edgekernelbench.ir.parse import parse

    text = workload.canonical()
    assert workload.header() + " {" in text
    parsed = parse(text)
    assert parsed.kernel is not None and not parsed.diagnostics
    assert [size.name for size in parsed.kernel.sizes] == list(workload.sizes)


def test_a_replaced_header_keeps_all_else():
    workload = SUITE.workloads["matmul_nt__01"]
    text = (
        "# a kernel { of words }\n"
        "def twice(x) = 2 * x   # kernel\n"
        "kernel old[M=1, N=2, K=3](A: f16[M, K],  # kernel A {\n"
        "    B: f16[N, K]) -> (C: f16[M, N]) {  # tail\n"
        "  compute { C[m, n] = sum[k: K](A[m, k] * B[n, k]) }\n}\n"
    )
    replaced = replace_header(text, workload)
    head, tail = replaced.split(workload.header())
    assert head == "# a kernel { of words }\ndef twice(x) = 2 * x   # kernel\n"
    assert tail.startswith(" {  # tail\n  compute { C[m, n]")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(x) = x\n", "no kernel header"),
        ("kernel k[M=1](A: f32[M]) -> (C: f32[M]) { compute { C[m] = A[m] } }", "declares"),
    ],
)
def test_programs_that_do_not_fit_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        replace_header(text, SUITE.workloads["matmul_nt__01"])


@each_workload
def test_statements_say_all_that_an_author_needs(workload: Workload):
    text = workload.statement()
    assert workload.header() + " {" in text
    assert f"def {workload.pattern}(" in text
    for spec in (*workload.input_specs, *workload.output_specs):
        shape = ", ".join(map(str, spec.shape))
        const = "const " if spec.const else ""
        assert f"- {spec.name}: {const}{spec.dtype}[{shape}]\n" in text
    assert workload.tolerance in text
    for hidden in ("Graph\\b", "Value\\b", "twin", "fmt: skip", "draw=", "Draw", "edgekernelbench"):
        assert not re.search(rf"\b{hidden}", text), f"{hidden} has no business in a statement"
    assert len(text) < 12_000


def test_statement_shows_helpers_before_their_use():
    text = SUITE.workloads["llama_layer_prefill__01"].statement()
    order = [text.index(f"def {name}(") for name in ("sigmoid", "silu", "llama_layer_prefill")]
    assert order == sorted(order)
    assert text.count("def sigmoid(") == 1
