# ruff: noqa: E501 (kernel texts and tables)
"""What nests look like: the shapes that speed depends on, read from the sketch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edgekernelbench.ir import core
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.expr.linear import linear
from edgekernelbench.lowering.facts import function_facts
from edgekernelbench.lowering.lower import lower

from .programs import PROGRAMS
from .support import DATA, TARGET, check, load_text, must_lower


def lowered(text: str, sizes=None) -> nest.Module:
    kernel, program = load_text(text, sizes)
    module = must_lower(kernel, program).module
    assert module is not None
    return module


def statements(statement: nest.Stmt) -> Iterator[nest.Stmt]:
    yield statement
    match statement:
        case nest.Seq(body=body):
            for inner in body:
                yield from statements(inner)
        case nest.For(body=body):
            yield from statements(body)
        case nest.If(then=then, other=other):
            yield from statements(then)
            if other is not None:
                yield from statements(other)


GEMM = """kernel gemm[M=256, K=512, N=512](X: f32[M, K], W: const f32[K, N], b: const f32[N]) -> (Y: f32[M, N]) {
  compute {
    acc[i: M, j: N] = sum[k: K](X[i, k] * W[k, j])
    Y[i, j] = relu(acc[i, j] + b[j])
  }
  schedule for cpu {
    loops acc (parallel i by 8, j by 32, k by 4, unroll k, unroll i, vectorize j)
    place Y in acc.j0
    loops Y (i, vectorize j)
  }
  memory for cpu { layout W [k, j] -> [j // 32, k, j % 32] }
}"""


def test_the_register_tile_of_a_packed_matrix_product():
    module = lowered(GEMM)
    assert module.nest == "\n".join(
        [
            "parallel i0 in 32:",
            "  for j0 in 16:",
            "    local acc.acc: f32[8, 32]",
            "    unroll i1 in 8:",
            "      lanes j1_l in 32:",
            "        acc.acc[i1, j1_l] = 0.0",
            "    for k0 in 128:",
            "      unroll k1 in 4:",
            "        unroll i1 in 8:",
            "          lanes j1_l in 32:",
            "            acc.acc[i1, j1_l] = acc.acc[i1, j1_l] + (X[(i0 * 8) + i1, (k0 * 4) + k1] * W.packed[j0, (k0 * 4...",
            "    unroll i in 8:",
            "      unroll j_v in 2:",
            "        lanes j_l in 16:",
            "          Y[(i0 * 8) + i, ((j0 * 32) + (j_v * 16)) + j_l] = max(acc.acc[i, (j_v * 16) + j_l] + b[((j0 * 32)...",
        ]
    )
    assert [t.name for t in module.packed] == ["W.packed"]
    assert module.packed[0].shape == (16, 512, 32)
    assert [t.name for t in module.main.params] == ["X", "b", "W.packed", "Y"]
    assert module.prepack is not None
    assert [t.name for t in module.prepack.params] == ["W", "W.packed"]
    assert module.workspace_bytes == 0
    assert function_facts(module.main).flops == 2 * 256 * 512 * 512 + 2 * 256 * 512


def test_tiles_that_do_not_divide_keep_their_full_tiles_as_they_are():
    module = lowered(GEMM, {"M": 100, "N": 500})
    text = module.nest
    assert text.startswith("parallel i0 in 13:\n  if i0 < 12:\n    for j0 in 15:\n")
    assert "local acc.acc: f32[8, 32]" in text  # the full tile, as before
    for tile in ("[8, 20]", "[4, 32]", "[4, 20]"):  # the remainders
        assert f": f32{tile}" in text
    assert "lanes j1_l in 16:" in text and "lanes j1_l in 4:" in text
    assert "max(j" not in text and "min(j" not in text


def test_loads_of_a_packed_tile_are_contiguous():
    module = lowered(GEMM, {"N": 500})
    for statement in statements(module.main.body):
        if isinstance(statement, nest.For) and statement.kind == "vectorize":
            for store in statements(statement.body):
                if isinstance(store, nest.Store):
                    for load in core.walk(store.value):
                        if isinstance(load, core.Load) and load.tensor.name == "W.packed":
                            form = linear(load.indices[2])
                            assert form.terms[core.VarRef(statement.var)] == 1
                            assert all(
                                core.VarRef(statement.var) not in linear(i).terms
                                for i in load.indices[:2]
                            )


def test_the_default_tile_of_a_matrix_product():
    text = "kernel k[M=64, K=49, N=64](A: f32[M, K], B: f32[K, N]) -> (C: f32[M, N]) {"
    text += " compute { C[m, n] = sum[k: K](A[m, k] * B[k, n]) } }"
    sketch = lowered(text).nest
    assert sketch.startswith("parallel m0 in 16:\n  for n0 in 2:\n    local C.acc: f32[4, 32]\n")


def test_the_default_tile_of_a_product_with_a_transposed_matrix():
    text = "kernel k[M=64, K=512, N=64](A: f32[M, K], B: f32[N, K]) -> (C: f32[M, N]) {"
    text += " compute { C[m, n] = sum[k: K](A[m, k] * B[n, k]) } }"
    sketch = lowered(text).nest
    assert "local C.acc: f32[4, 4, 16]" in sketch
    loops = (
        "    for k_v in 32:\n      unroll m1 in 4:\n        unroll n1 in 4:\n          lanes k_l"
    )
    assert loops in sketch


def test_small_stages_stay_on_one_thread():
    text = "kernel k[M=8](A: f32[M, 16]) -> (C: f32[M, 16]) { compute { C[m, n] = A[m, n] * 2 } }"
    assert "parallel" not in lowered(text).nest


def test_border_reads_in_a_reduction_become_a_padded_copy():
    text = """kernel k[C=8, H=16, F=8](X: f32[C, H, H], W: const f32[F, C, 3, 3]) -> (Y: f32[F, H, H]) {
      compute { Y[f, h, w] = sum[c: C, r: 3, s: 3](pad(X[c, h + r - 1, w + s - 1], 0) * W[f, c, r, s]) }
    }"""
    module = lowered(text)
    assert "Y.pad: f32[8, 18, 18]" in module.nest
    (update,) = [line for line in module.nest.splitlines() if "Y.acc[" in line and "W[" in line]
    assert " if " not in update and "min(" not in update and "max(" not in update


def test_border_tests_of_a_map_are_cut_off():
    text = """kernel k[H=20, W=64](X: f32[H, W]) -> (Y: f32[H, W]) {
      compute { Y[i, j] = pad(X[i - 1, j + 2], 0) + edge(X[i, j - 1]) }
    }"""
    kernel, program = load_text(text)
    module = check(kernel, program).module
    assert module is not None
    for statement in statements(module.main.body):
        if isinstance(statement, nest.For) and statement.kind == "vectorize":
            assert int(statement.extent.value) >= 2  # type: ignore[union-attr]
            for store in statements(statement.body):
                if isinstance(store, nest.Store):
                    nodes = list(core.walk(store.value))
                    assert not any(isinstance(n, core.Select) for n in nodes)
                    assert not any(getattr(n, "op", "") in ("min", "max") for n in nodes)


def test_a_histogram_is_one_pass():
    text = "kernel k[L=5000](x: u8[L]) -> (y: s32[256]) {"
    text += " compute { y[v] = sum[i: L where x[i] == v](1) } }"
    sketch = lowered(text).nest
    assert "for i in 5000:\n  let to = x[i]\n" in sketch
    assert function_facts(lowered(text).main).flops == 5000


def test_a_ragged_reduction_runs_over_its_range_only():
    text = (DATA / "examples" / "spmm_csr.ekir").read_text()
    sketch = lowered(text, {"L": 40, "E": 90, "V": 60, "D": 16}).nest
    assert "for e in e_end + " in sketch.replace("(", "").replace(")", "")


def test_vectorised_ragged_reduction():
    text = """kernel k[M=40](x: f32[M], w: f32[M]) -> (y: f32[M]) {
      compute { y[i] = sum[k: 0..i+1](x[k] * w[k]) }
      schedule for cpu { loops y (i, vectorize k) }
    }"""
    kernel, program = load_text(text)
    module = check(kernel, program).module
    assert module is not None
    assert "lanes k_l" in module.nest


def test_consumers_read_the_accumulator_and_outputs_are_written_directly():
    sketch = lowered(PROGRAMS["matmul"].rstrip()[:-1] + """
      schedule for cpu { loops acc (i by 4, j by 16, k, unroll i, vectorize j) place Y in acc.j0 }
    }""").nest  # fmt: skip
    assert "acc:" not in sketch.replace("acc.acc:", "")  # no other storage of `acc`
    assert "Y:" not in sketch


def test_pooling_can_be_placed_in_the_convolution():
    text = PROGRAMS["conv_pool"].rstrip()[:-1] + """
      schedule for cpu {
        loops a (f, h by 4, c, r, s, unroll h, vectorize w)
        place p, q in a.h0
      }
    }"""  # fmt: skip
    kernel, program = load_text(text)
    module = check(kernel, program).module
    assert module is not None
    assert "global a:" not in module.nest


def test_chains_of_placed_stages_live_in_tiles():
    text = """kernel k[C=2, H=16, F=4](X: f32[C, H, H], W: const f32[F, C, 3, 3], V: f32[3, F]) -> (Y: f32[3, H // 2, H // 2]) {
      compute {
        xp[c: C, h: H + 2, w: H + 2] = pad(X[c, h - 1, w - 1], 0)
        a[f: F, h: H, w: H] = sum[c: C, r: 3, s: 3](xp[c, h + r, w + s] * W[f, c, r, s])
        p[f: F, h: H // 2, w: H // 2] = max[r: 2, s: 2](a[f, 2*h + r, 2*w + s])
        Y[g, h, w] = sum[f: F](V[g, f] * relu(p[f, h, w]))
      }
      schedule for cpu {
        place xp, a, p in Y.h0
        loops Y (parallel h by 2, g, h, f, vectorize w)
      }
    }"""
    kernel, program = load_text(text)
    module = check(kernel, program).module
    assert module is not None
    sketch = module.nest
    assert (
        "xp: f32[2, 6, 18]" in sketch
        and "a: f32[4, 4, 16]" in sketch
        and "p: f32[4, 2, 8]" in sketch
    )
    assert sketch.startswith("parallel h0 in 4:")


def test_a_stage_of_constants_is_computed_once():
    module = lowered(PROGRAMS["layers"])
    assert [t.name for t in module.packed] == ["vw"]
    assert "v[" not in module.nest


def test_a_layout_of_an_input_that_varies_is_a_copy_per_call():
    text = PROGRAMS["half"].rstrip()[:-1] + """
      memory for cpu { layout X [m, k] -> [k, m] }
    }"""  # fmt: skip
    kernel, program = load_text(text)
    module = check(kernel, program).module
    assert module is not None and module.packed == ()
    assert "global X.packed: f16[20, 6]" in module.nest


@pytest.mark.parametrize("threads", [1, 4])
def test_threads_of_the_target(threads):
    text = "kernel k[M=64, K=64, N=64](A: f32[M, K], B: f32[K, N]) -> (C: f32[M, N]) {"
    text += " compute { C[m, n] = sum[k: K](A[m, k] * B[k, n]) } }"
    kernel, program = load_text(text)
    module = lower(kernel, program, TARGET.model_copy(update={"threads": threads})).module
    assert module is not None
    assert ("parallel" in module.nest) == (threads > 1)


def test_named_pieces():
    text = PROGRAMS["matmul"].rstrip()[:-1] + """
      schedule for cpu {
        loops acc (rows = i by 4, columns = j by 16, k, unroll i, vectorize j)
        place Y in acc.columns
      }
    }"""  # fmt: skip
    kernel, program = load_text(text)
    module = check(kernel, program).module
    assert module is not None
    assert module.nest.startswith("for rows in 2:\n")


def test_accumulators_and_stages_of_the_same_name_are_kept_apart():
    text = """template part(x) -> (o) {
      acc[i: 64, j: 64] = exp(x[i, j])
      o[i: 64, j: 64] = sum[k: 64](acc[i, k] * acc[k, j])
    }
    kernel k[N=64](x: f32[N, N]) -> (y: f32[N, N]) {
      compute {
        o = part(x)
        y[i, j] = o[i, j] + 1
      }
      schedule for cpu {
        loops o (i by 32, j by 64, k, i, j)
        place o.acc in o.i0
      }
    }"""
    kernel, program = load_text(text)
    module = must_lower(kernel, program).module
    assert module is not None
    names = [s.tensor.name for s in statements(module.main.body) if isinstance(s, nest.Alloc)]
    assert len(set(names)) == len(names)


def test_a_stage_written_later_may_feed_what_is_placed_further_inside():
    text = """
    kernel k[M=10, K=6, N=40](x: f32[M, K], w: f32[K, N], q: f32[M]) -> (y: f32[M, N]) {
      compute {
        acc[i: M, j: N] = sum[k: K](x[i, k] * w[k, j])
        r[i: M] = 1 / q[i]
        y[i, j] = acc[i, j] * r[i]
      }
      schedule for cpu {
        loops acc (i by 4, j by 16, k, unroll i, vectorize j)
        place r in acc.i0
        place y in acc.j0
      }
    }
    """
    check(*load_text(text))


def test_what_is_placed_in_a_full_tile_of_two_parallel_loops_is_a_full_tile():
    text = """
    kernel k[B=2, M=10, K=6, N=16](x: f32[B, M, K], w: f32[K, N]) -> (y: f32[B, M, N]) {
      compute {
        e[b: B, i: M, k: K] = exp(x[b, i, k])
        s[b: B, i: M] = sum[k: K](e[b, i, k])
        r[b: B, i: M] = 1 / s[b, i]
        acc[b: B, i: M, j: N] = sum[k: K](e[b, i, k] * w[k, j])
        y[b, i, j] = acc[b, i, j] * r[b, i]
      }
      schedule for cpu {
        loops acc (parallel b, parallel i by 4, j by 16, k, unroll i, vectorize j)
        place e, s, r in acc.i0
        place y in acc.j0
      }
    }
    """
    module = check(*load_text(text)).module
    assert module is not None
    assert "local e: f32[1, 4, 6]" in module.nest and "local e~1: f32[1, 2, 6]" in module.nest
