"""The loop program without any optimisation: serial, unfused, and right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edgekernelbench.ir import core
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.normalize import normalize
from edgekernelbench.lowering.plain import lower_plainly

from .run_nest import run_module
from .support import DATA, TARGET, compare, draw_inputs, load_text

NAMES = [
    "softmax_last",
    "layer_norm_welford",
    "lstm_sequence",
    "histogram_u8",
    "spmm_csr",
    "max_pool2d_nchw",
    "cholesky_batched",
    "topk_last",
    "matmul_nn_f16",
    "fir_q15",
]
EXAMPLES = [p for p in sorted((DATA / "examples").glob("*.ekir")) if p.stem in NAMES]


def statements(body: nest.Stmt) -> Iterator[nest.Stmt]:
    yield body
    match body:
        case nest.Seq(body=parts):
            for part in parts:
                yield from statements(part)
        case nest.For(body=inner):
            yield from statements(inner)
        case nest.If(then=then, other=other):
            yield from statements(then)
            if other is not None:
                yield from statements(other)
        case _:
            pass


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_serial_and_right(path: Path) -> None:
    _, program = load_text(path.read_text(), {"L": 30} if path.stem == "histogram_u8" else None)
    module = lower_plainly(program, TARGET)
    found = list(statements(module.main.body))
    assert {s.kind for s in found if isinstance(s, nest.For)} == {"serial"}
    assert module.prepack is None and module.packed == ()
    inputs = draw_inputs(program)
    want = interpret(program, inputs, "declared")
    got = run_module(module, inputs, {t.name for t in program.outputs})
    for name, array in want.items():
        compare(got[name], array, name)


def test_every_stage_has_its_own_nest() -> None:
    _, program = load_text(
        """kernel k[N=8, K=4](x: f32[N, K], w: const f32[K]) -> (y: f32[N]) {
          compute {
            v[k: K] = w[k] * 2
            a[i: N] = sum[k: K](x[i, k] * v[k])
            y[i] = a[i] + 1
          }
        }"""
    )
    module = lower_plainly(program, TARGET)
    nests = nest.parts(module.main.body)
    assert [part.stages for part in nests] == [("v",), ("a",), ("y",)]
    assert len(nests) == len(list(core.stages(normalize(program).body)))
