"""Layers for GPUs in which random ones once showed a fault, made small."""

from __future__ import annotations

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
