"""Holes, stage infos, facts and layouts: what tuners and reports build on."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from edgekernelbench.ir.surface import Num
from edgekernelbench.lowering.facts import function_facts
from edgekernelbench.lowering.holes import fill_first, fill_holes, find_holes
from edgekernelbench.lowering.infos import stage_infos
from edgekernelbench.lowering.lower import lower

from .programs import PROGRAMS
from .run_nest import run_module
from .support import TARGET, draw_inputs, load_text, must_lower

HOLED = """kernel k[M=24, K=8, N=64, T=16](X: f32[M, K], W: const f32[K, N]) -> (Y: f32[M, N]) {
  compute { Y[i, j] = sum[k: K](X[i, k] * W[k, j]) }
  schedule for cpu { loops Y (i by ?{4, 8}, j by ?{T, 2*T, 64}, k, unroll i, vectorize j) }
  memory for cpu { layout W [k, j] -> [j // ?{16, 32}, k, j % ?{16, 32}] }
}"""


def test_holes_in_text_order_and_their_first_choice():
    kernel, program = load_text(HOLED)
    sites = find_holes(kernel)
    assert [(s.number, s.layer, s.target, len(s.choices)) for s in sites] == [
        (0, "schedule", "cpu", 2),
        (1, "schedule", "cpu", 3),
        (2, "memory", "cpu", 2),
        (3, "memory", "cpu", 2),
    ]
    assert sites[0].choices[0] == Num(4)
    first = must_lower(kernel, program).module
    filled = must_lower(fill_holes(kernel, [4, 16, 16, 16]), program).module
    assert first is not None and filled is not None
    assert first.nest == filled.nest == must_lower(fill_first(kernel), program).module.nest  # type: ignore[union-attr]
    assert find_holes(fill_first(kernel)) == ()


def test_every_filling_gives_the_same_results():
    kernel, program = load_text(HOLED)
    inputs = draw_inputs(program)
    results = []
    for values in ([4, 16, 16, 16], [8, 32, 32, 32], [8, 64, 16, 16]):
        module = must_lower(fill_holes(kernel, values), program).module
        assert module is not None
        results.append(run_module(module, inputs, {"Y"})["Y"])
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], rtol=1e-5)


def test_a_filling_must_be_complete():
    kernel, _ = load_text(HOLED)
    with pytest.raises(ValueError, match="1 values for 4 holes"):
        fill_holes(kernel, [4])


def test_a_filling_that_is_no_layout_is_refused():
    kernel, program = load_text(HOLED)
    result = lower(fill_holes(kernel, [4, 16, 16, 8]), program, TARGET)
    assert [d.rule.code for d in result.diagnostics] == ["E515"]


def test_stage_infos_name_what_schedules_can_name():
    _, program = load_text(PROGRAMS["attention"])
    infos = {info.name: info for info in stage_infos(program)}
    assert list(infos) == ["kt", "sc", "m", "p", "s", "O.sum", "O"]
    sc = infos["sc"]
    assert (sc.kind, sc.spatial, sc.reduction) == ("reduce", (("i", 9), ("j", 9)), (("d", 6),))
    assert sc.consumers == ("m", "p") and sc.producers == ("kt",)
    strides = {read.tensor: read.strides for read in sc.reads}
    assert strides["Q"] == {"i": "strided", "j": "fixed", "d": "contiguous"}
    assert strides["kt"] == {"i": "fixed", "j": "contiguous", "d": "strided"}
    assert infos["O"].kept and not infos["p"].kept


def test_stage_infos_of_loops_and_borders():
    _, program = load_text(PROGRAMS["lstm"])
    infos = {info.name: info for info in stage_infos(program)}
    assert infos["z.sum"].loops == (("seq", "t"),) and infos["z.sum"].in_loop
    assert infos["c"].kept and not infos["z"].kept
    text = """kernel k[C=4, H=8](X: f32[C, H], W: const f32[4, C, 3]) -> (Y: f32[4, H]) {
      compute {
        v[f: 4, c: C, r: 3] = W[f, c, r] * 2
        Y[f, h] = sum[c: C, r: 3](pad(X[c, h + r - 1], 0) * v[f, c, r])
      }
    }"""
    _, program = load_text(text)
    infos = {info.name: info for info in stage_infos(program)}
    assert list(infos) == ["v", "Y.pad", "Y"]
    assert infos["v"].constant and not infos["Y.pad"].constant


def test_facts_count_operations_and_bytes():
    text = """kernel k[M=6, N=32](X: f32[M, N], b: f16[N]) -> (Y: f32[M, N], s: f32[M]) {
      compute {
        Y[i, j] = exp(X[i, j]) * b[j] + 1
        s[i] = sum[j: N](X[i, j] * X[i, j])
      }
    }"""
    kernel, program = load_text(text)
    module = must_lower(kernel, program).module
    assert module is not None
    facts = function_facts(module.main)
    assert facts.traffic["X"].read == 6 * 32 * 4 * 3
    assert facts.traffic["b"].read == 6 * 32 * 2
    assert facts.traffic["Y"].written == 6 * 32 * 4
    fold = 6 * 31  # 32 partial results come together
    assert facts.flops == 3 * 6 * 32 + 2 * 6 * 32 + fold


@pytest.mark.parametrize(
    ("target", "shape"),
    [
        ("[j // 32, k, j % 32]", (2, 30, 32)),
        ("[k // 32, j, k % 32]", (1, 64, 30)),
        ("[k // 7, j // 5, k % 7, j % 5]", (5, 13, 7, 5)),
        ("[k * 64 + j]", (1920,)),
        ("[j + 1, k]", (65, 30)),
        ("[(j // 4) // 2, k, j // 4 % 2, j % 4]", (8, 30, 2, 4)),
    ],
)
def test_layouts(target, shape):
    text = """kernel k[M=3, K=30, N=64](X: f32[M, K], W: const f32[K, N]) -> (Y: f32[M, N]) {
      compute { Y[i, j] = sum[k: K](X[i, k] * W[k, j]) }
      memory for cpu { layout W [k, j] -> %s }
    }"""
    kernel, program = load_text(text % target)
    module = must_lower(kernel, program).module
    assert module is not None
    assert module.packed[0].shape == shape
    inputs = draw_inputs(program)
    got = run_module(module, inputs, {"Y"})["Y"]
    np.testing.assert_allclose(got, inputs["X"] @ inputs["W"], rtol=2e-5, atol=1e-5)


def test_a_layout_of_many_axes_is_enumerated_in_little_memory():
    rank = 20
    axes = [f"a{k}" for k in range(rank)]
    shape = ", ".join(["2"] * rank)
    zeros = ", ".join(["0"] * (rank - 1))
    index = " + ".join(f"{1 << k} * {axis}" for k, axis in enumerate(axes))
    text = f"""kernel k(x: f32[{shape}]) -> (y: f32[2]) {{
  compute {{ y[i] = x[{zeros}, i] }}
  memory for cpu {{ layout x [{", ".join(axes)}] -> [{index}] }}
}}"""
    kernel, program = load_text(text)
    tracemalloc.start()
    try:
        must_lower(kernel, program)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * 8 * 2**rank
