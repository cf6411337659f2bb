"""Cutting a kernel into its stages: what a unit reads, yields, and which lines go with it."""

from __future__ import annotations

import numpy as np

from edgekernelbench.analysis.units import Cut, cut
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets.host import host_target

MLP = """
kernel mlp[M=24, K=40, N=48](x: f32[M, K], w: const f32[K, N], v: const f32[N])
    -> (y: f32[M], z: f32[M, N]) {
  compute {
    table bump: f32[2] = [1.0, 2.0]
    scaled[k: K, j: N] = w[k, j] * 0.5
    acc[i: M, j: N] = sum[k: K](x[i, k] * scaled[k, j])
    z[i, j] = gelu(acc[i, j] + v[j] + bump[i % 2])
    seq t: M {
      h[t, j: N] = pad(h[t-1, j], 0) * 0.5 + z[t, j]
    }
    y[i] = sum[j: N](h[i, j])
  }
  schedule for cpu {
    loops acc (parallel i by min(8, M), j by 16, k, unroll i, vectorize j)
    place z in acc.j0
    loops z (i, vectorize j)
  }
  memory for cpu { layout scaled [k, j] -> [j // 16, k, j % 16] }
}
"""


def cut_text(text: str) -> Cut:
    checked = check_text(text)
    assert checked.kernel is not None and checked.program is not None, checked.diagnostics
    return cut(checked.kernel, checked.program, host_target())


def test_units_are_the_stages_that_run_in_the_call() -> None:
    units = cut_text(MLP).units
    assert [unit.stages for unit in units] == [("acc",), ("z",), ("h",), ("y",)]
    reads = [{t.name: t.const for t in unit.program.inputs} for unit in units]
    assert reads[0] == {"x": False, "scaled": True}
    assert reads[1] == {"acc": False, "v": True}
    assert [t.name for t in units[2].program.outputs] == ["h"]


def test_each_unit_is_a_kernel_and_so_are_the_authors_lines() -> None:
    for unit in cut_text(MLP).units:
        for text in filter(None, (unit.text, unit.authored)):
            checked = check_text(text)
            assert checked.kernel is not None and checked.program is not None, checked.diagnostics
            lowered = lower(checked.kernel, checked.program, host_target())
            assert lowered.module is not None, (text, lowered.diagnostics)


def test_lines_go_with_the_stages_they_speak_of() -> None:
    acc, z, h, y = cut_text(MLP).units
    assert "parallel i by min(8, M)" in acc.authored and "layout scaled" in acc.authored
    assert "place" not in acc.authored
    assert "loops z" in z.authored
    assert h.authored == y.authored == ""


def test_values_that_flow_between_units_compose_to_the_whole() -> None:
    checked, pieces = check_text(MLP), cut_text(MLP)
    assert checked.program is not None
    rng = np.random.default_rng(0)
    inputs = {
        t.name: rng.standard_normal(t.shape).astype(np.float32) for t in checked.program.inputs
    }
    whole = interpret(checked.program, inputs)
    flow = inputs | interpret(pieces.flow, inputs)
    values = dict(flow)
    for unit in pieces.units:
        read = {t.name: values[unit.names[t.name]].astype(np.float32) for t in unit.program.inputs}
        for name, array in interpret(unit.program, read).items():
            np.testing.assert_allclose(array, flow[unit.names[name]], rtol=1e-5, atol=1e-5)
    for name, array in whole.items():
        np.testing.assert_array_equal(array, flow[name])


WARPING = """
kernel warp[M=24, N=40](a: f32[M], b: f32[N]) -> (y: f32) {
  compute {
    c[i: M, j: N] = abs(a[i] - b[j]) + exp(a[i])
    seq i: M { seq j: N {
      D[i, j] = c[i, j] + min(pad(D[i-1, j], 0), pad(D[i, j-1], 0))
    } }
    y = D[M-1, N-1] * 2
  }
  schedule for cpu {
    loops c (i, vectorize j)
    wave D (i by 8, j by 8, j, vectorize i)
  }
}
"""


def test_a_wave_goes_with_its_loops() -> None:
    found = next(unit for unit in cut_text(WARPING).units if "D" in unit.stages)
    checked = check_text(found.authored)
    assert checked.kernel is not None and checked.program is not None, checked.diagnostics
    lowered = lower(checked.kernel, checked.program, host_target())
    assert lowered.module is not None, (found.authored, lowered.diagnostics)
    assert "lanes lane" in lowered.module.nest
