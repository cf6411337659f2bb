"""Layers for GPUs in which random ones once showed a fault, made small."""

from __future__ import annotations

import pytest

from edgekernelbench.ir.interpret import interpret
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets.gpus import opencl_target

from .run_kernels import run_kernels
from .support import compare, draw_inputs, load_text, must_lower


def watched(text: str) -> None:
    """The results of the interpreter, in an executor that watches every thread."""
    kernel, program = load_text(text)
    module = must_lower(kernel, program, opencl_target()).module
    assert module is not None
    inputs = draw_inputs(program)
    got = run_kernels(module, inputs, {t.name for t in program.outputs})
    want = interpret(program, inputs, "declared")
    for tensor in program.outputs:
        compare(got[tensor.name], want[tensor.name], tensor.name)


def test_a_tile_that_is_fetched_ahead_has_one_shape_in_all_iterations() -> None:
    """How many columns are between those that move and column 11 depends on the iteration."""
    watched("""kernel k[N=6](x: f32[N, 16]) -> (y: f32[N]) {
      compute { y[i] = edge(x[i, i - 2]) + x[i, 11] }
      schedule for gpu { loops y (i by 2, thread i) }
      memory for gpu { cache x in y.i0 prefetch x in y.i0 ahead 1 }
    }""")


def test_stages_of_a_loop_that_are_placed_in_a_circle() -> None:
    kernel, program = load_text("""kernel k[L=3, D=8](x: f32[L, D]) -> (h: f32[L, D]) {
      compute {
        seq t: L {
          a[d: D] = pad(h[t-1, d], 0) + x[t, d]
          b[d: D] = a[d] * 2
          h[t, d] = b[d]
        }
      }
      schedule for gpu { place a in b.d place b in a.d }
    }""")
    result = lower(kernel, program, opencl_target())
    assert [d.rule.code for d in result.diagnostics] == ["E421"]


ROWS = """kernel k[C=5, P=11](x: f32[C, P]) -> (y: f32[C]) {
  compute {
    mu[c: C] = sum[p: P](x[c, p])
    v[c: C] = sum[p: P](x[c, p] - mu[c])
    y[c] = v[c] * mu[c] + 1
  }
  schedule for gpu { %s }
}"""
NEST = "(block c by 4, thread c by 2, thread c, p)"
"""In `c1` are the elements of two threads."""


@pytest.mark.parametrize(
    "schedule",
    [
        f"loops v {NEST} place y in v.c1",
        f"loops v {NEST} place mu, y in v.c1",
        f"loops mu {NEST} place v, y in mu.c1",
    ],
)
def test_no_thread_reads_the_results_of_others(schedule: str) -> None:
    kernel, program = load_text(ROWS % schedule)
    result = lower(kernel, program, opencl_target())
    assert {d.rule.code for d in result.diagnostics} == {"E452"}
    assert "the last of its `thread` loops" in result.diagnostics[0].help[0]


@pytest.mark.parametrize(
    "schedule",
    [
        f"loops v {NEST} place y in v.c0",
        f"loops v {NEST} place y in v.c2",
        "loops v (block c by 4, thread c by 2, thread c by 2, c, p) place y in v.c1",
        "loops y (block c by 4, thread c by 2, thread c) place mu, v in y.c1",
    ],
)
def test_results_of_one_thread_and_of_a_block(schedule: str) -> None:
    watched(ROWS % schedule)


INDICES = """kernel k[L=3, D=8](a: f32[L], p: s32[L], w: f32[D]) -> (h: f32[L, D]) {
  compute { seq t: L { h[t, d] = pad(h[t-1, d], 0) + a[clamp(p[t], 0, L - 1)] * w[d] } }
  schedule for gpu { loops h (d by 4, thread d) }
  memory for gpu { cache %s in h.d0 }
}"""


def test_a_copy_of_what_another_copy_has_read() -> None:
    kernel, program = load_text(INDICES % "a, p, w")
    (found,) = lower(kernel, program, opencl_target()).diagnostics
    assert found.rule.code == "E520" and found.help[0].startswith("drop `p`")
    watched(INDICES % "a, w")
    watched(INDICES % "p, w")


def test_nothing_is_fetched_ahead_of_what_its_loop_computes() -> None:
    text = """kernel k[N=7, K=5](x: f32[N, K]) -> (y: f32[N]) {
      compute { s[i: N] = sum[k: K](x[i, k])  y[i] = s[i] + 1 }
      schedule for gpu { loops y (%s thread i) place s in y.%s }
      memory for gpu { cache s in y.i%d prefetch s in y.i%d ahead 1 }
    }"""
    kernel, program = load_text(text % ("i by 2,", "i0", 0, 0))
    (found,) = lower(kernel, program, opencl_target()).diagnostics
    assert found.rule.code == "E455" and "`s` is computed in `y.i0`" in found.message
    watched(text % ("block i by 4, i by 2,", "i0", 1, 1))
