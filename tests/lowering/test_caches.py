# ruff: noqa: E501 (kernel texts)
"""Caches and prefetches: any loop, any shape, and always the results of the compute layer."""

from __future__ import annotations

import os
import random

import pytest

from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.edit import with_layers
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.ir.surface import (
    Cached,
    CacheLine,
    Kernel,
    LayoutLine,
    MemoryLayer,
    Num,
    PrefetchLine,
    Ref,
)
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.expr.rewrite import loads
from edgekernelbench.lowering.graph import build_graph
from edgekernelbench.lowering.lower import lower
from edgekernelbench.lowering.nest import statements
from edgekernelbench.lowering.normalize import normalize
from tests.ir.combiner_cases import CASES

from .programs import PROGRAMS
from .random_layers import random_layers
from .support import TARGET, check, load_text, must_lower

SEEDS = int(os.environ.get("EKB_RANDOM_SEEDS", "3"))

MATMUL = """kernel k[M=%d, K=%d, N=%d](X: %s[M, K], W: %s[K, N]) -> (Y: %s[M, N]) {
  compute { Y[i, j] = sum[k: K](X[i, k] * W[k, j]) }
  schedule for cpu { %s }
  memory for cpu { %s }
}"""
NEST = "loops Y (parallel i by 16, k by 20, j by 16, i by 4, k, unroll i, vectorize j)"
PANELS = """cache X in Y.k0  cache W in Y.j0
  layout X.cache [i, k] -> [i // 4, k, i % 4]  layout W.cache [k, j] -> [j // 16, k, j % 16]"""


@pytest.mark.parametrize(
    "shape", [(37, 45, 50), (16, 20, 16), (17, 23, 31), (1, 7, 1), (48, 40, 33)]
)
def test_packed_panels_of_a_matrix_product(shape):
    m, k, n = shape
    nest_ = "loops Y (parallel i by %d, k by %d, j by %d, i by %d, k, unroll i, vectorize j)"
    steps = (min(16, m), min(20, k), min(16, n), min(4, m))
    check(*load_text(MATMUL % (*shape, "f32", "f32", "f32", nest_ % steps, PANELS)))


@pytest.mark.parametrize("loop", ["i0", "k0", "j0", "i1", "k1"])
def test_every_loop_takes_a_cache(loop):
    line = f"cache X, W in Y.{loop}"
    check(*load_text(MATMUL % (37, 45, 50, "f32", "f32", "f32", NEST, line)))


@pytest.mark.parametrize(
    ("source", "copy", "out"),
    [
        ("f16", "f32", "f32"),
        ("s8", "s32", "s32"),
        ("u8", "s16", "s32"),
        ("s16", "s32", "s32"),
        ("f32", "f64", "f32"),
        ("s8", "f32", "s32"),
    ],
)
def test_copies_may_be_wider(source, copy, out):
    line = f"cache X: {copy} in Y.i0  cache W: {copy} in Y.j0"
    kernel, program = load_text(MATMUL % (19, 23, 37, source, source, out, NEST, line))
    found = check(kernel, program).module
    assert found is not None and f"W.cache: {copy}" in found.nest


def test_products_in_f32_read_a_copy_in_f32_without_conversions():
    text = """kernel k[M=8, K=32, N=32](X: s8[M, K], W: s8[K, N]) -> (Y: f32[M, N]) {
      compute { Y[i, j] = sum[k: K](f32(X[i, k]) * f32(W[k, j])) }
      schedule for cpu { loops Y (j by 16, i by 4, k, unroll i, vectorize j) }
      memory for cpu { cache X, W: f32 in Y.j0 }
    }"""
    found = check(*load_text(text)).module
    assert found is not None
    inner = [line for line in found.nest.splitlines() if "W.cache[" in line and "Y.acc" in line]
    assert inner and "f32(W" not in inner[0] and "f32(X" in inner[0]  # X is cached as it is


STENCIL = """kernel k[H=%d, W=%d](X: %s[H, W]) -> (Y: %s[H, W]) {
  compute { Y[i, j] = %s }
  schedule for cpu { loops Y (parallel i by 3, j by %d, i, vectorize j) }
  memory for cpu { %s }
}"""
CROSS = (
    "pad(X[i-1, j], 2) + pad(X[i+1, j], 2) + pad(X[i, j-2], 2) + pad(X[i, j+3], 2) - 4 * X[i, j]"
)
BODIES = [
    CROSS,
    "edge(X[i-1, j-2]) + edge(X[i, j+3])",
    "X[reflect(i-1, H), reflect(j-2, W)] * 2",
    "pad(X[i-1, j], 1) + pad(X[i, j-1], 2)",  # two borders: each read keeps its own
    "pad(X[i-1, W-1-j], -3)",
    "max(pad(X[i - 1, 2*j - 5], -1), X[i, j//2])",
    "X[i, j - 1] if j > 0 else (X[i-1, j] if i > 0 else 0)",
    "{ let a = clamp(j - 1, 0, W-1) return X[i, a] + X[i, j] }",
]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("shape", [(7, 67, 16), (7, 67, 48), (4, 16, 16), (3, 1, 1), (5, 37, 24)])
@pytest.mark.parametrize("line", ["", "cache X in Y.j0", "cache X in Y.i0", "cache X in Y.i1"])
def test_halo_tiles(body, shape, line):
    height, width, step = shape
    text = STENCIL % (height, width, "f32", "f32", body, step, line)
    check(*load_text(text))


def open_reads(text: str) -> int:
    """How many stores of Y decide between a read and something else."""
    found = check(*load_text(text)).module
    assert found is not None
    stores = [s for s in statements(found.main.body) if isinstance(s, nest.Store)]
    assert any(s.tensor.name.startswith("X.cache") for s in stores)
    values = [s.value for s in stores if s.tensor.name == "Y"]
    return sum(any(isinstance(e, core.Select) for e in core.walk(value)) for value in values)


def test_the_border_is_tested_at_the_copy():
    assert open_reads(STENCIL % (9, 40, "f32", "f32", CROSS, 20, "cache X in Y.j0")) == 0


@pytest.mark.parametrize(("dtype", "tested"), [("", True), (": s32", False)])
def test_a_border_value_that_the_copy_cannot_hold_stays_at_the_read(dtype, tested):
    line = f"cache X{dtype} in Y.j0"
    text = STENCIL % (9, 40, "u8", "s32", "pad(X[i-1, j], -7) + X[i, j]", 20, line)
    assert bool(open_reads(text)) is tested


CONV = """kernel k[C=5, F=6, H=13, W=17](X: s8[C, H, W], w: const s8[F, C, 3, 3]) -> (Y: s32[F, H, W]) {
  compute { Y[f, i, j] = sum[c: C, r: 3, s: 3](pad(X[c, i+r-1, j+s-1], 3) * w[f, c, r, s]) }
  schedule for cpu { loops Y (parallel i by 4, c, f, r, s, i, vectorize j) %s }
  memory for cpu { %s }
}"""


@pytest.mark.parametrize("lines", [
    ("", "cache X: s32, w in Y.c"),
    ("", "cache X in Y.i0  layout X.cache [c, i, j] -> [i, j, c]"),
    ("place Y.pad in Y.i0", "cache Y.pad: s32 in Y.c"),
    ("loops Y.pad (c, i, j)", "cache Y.pad in Y.c  layout Y.pad [c, i, j] -> [i, c, j]"),
    ("", "layout X [c, i, j] -> [i, c, j]  cache X in Y.c"),
    ("loops X.cache (i, c, vectorize j)", "cache X in Y.i0"),
    ("loops X.cache (j by 4, i, c, unroll j)", "cache X in Y.f"),
])  # fmt: skip
def test_convolutions(lines):
    check(*load_text(CONV % lines))


SEQ = """kernel k[L=6, D=9](x: f32[L, D], h0: f32[D], w: const f32[D, D]) -> (h: f32[L, D], z: f32[D]) {
  compute {
    seq t: L { h[t, d: D] = x[t, d] + sum[k: D](pad(h[t-1, k], h0[k]) * w[k, d]) }
    z[d] = h[L-1, d] + pad(h[L-2, d-1], 0)
  }
  schedule for cpu { loops h.sum (d by 4, k by 4, k, vectorize d) loops z (d by 4, d)  loops h (d) }
  memory for cpu { %s }
}"""


@pytest.mark.parametrize("line", [
    "cache h in h.sum.d0  cache w in h.sum.k0",
    "cache h in h.sum.k0  layout w [k, d] -> [d // 4, k, d % 4]",
    "cache h.sum, x in h.d", "cache h in z.d0",
])  # fmt: skip
def test_recurrences(line):
    found = check(*load_text(SEQ % line)).module
    plain = must_lower(*load_text(SEQ % "")).module
    assert found is not None and plain is not None
    assert found.workspace_bytes == plain.workspace_bytes or "z" in line  # still a ring of 2


@pytest.mark.parametrize("name", ["softmax", "welford"])
def test_components_of_one_reduction_share_a_cache(name):
    text, first = CASES[name][0].rstrip()[:-1], {"softmax": "m", "welford": "q"}[name]
    nest_ = f"schedule for cpu {{ loops {first} (r by 4, c by 8, r, c) }}"
    kernel, program = load_text(f"{text} {nest_} memory for cpu {{ cache x in {first}.c0 }} }}")
    found = check(kernel, program).module
    assert found is not None
    copies = {s.tensor.name for s in statements(found.main.body) if isinstance(s, nest.Alloc)}
    assert any(n.startswith("x.cache") for n in copies)
    assert not any(n.startswith("x.cache1") for n in copies)


def test_a_gathered_row_is_cached_where_its_number_is_known():
    text = """kernel k[N=9, V=12, D=20](idx: s32[N], t: f32[V, D]) -> (y: f32[N, D]) {
      compute {
        ix[i: N] = idx[i] * 2
        y[i, d] = sum[r: 3](edge(t[ix[i], d]) * r)
      }
      schedule for cpu { loops y (i, r, d) %s }
      memory for cpu { cache t in y.i }
    }"""
    for lines in ("loops ix (i)", "place ix in y.i", "inline ix"):
        found = check(*load_text(text % lines)).module
        assert found is not None
        rows = "1" if lines == "loops ix (i)" else "12"  # else the number is not known so early
        # a row of 20 takes two whole vectors
        assert f"t.cache: f32[{rows}, 32]" in found.nest


BAG = """kernel bag[V=30, D=37, B=5, P=7](idx: s32[B, P], n: s32[B], t: %s f32[V, D], sc: f32[V]) -> (y: f32[B, D]) {
  compute { y[b, d] = sum[p: 0..clamp(n[b], 0, P) where idx[b, p] != 3](edge(t[idx[b, p], d]) * edge(sc[idx[b, p]])) }
  schedule for cpu { loops y (%s) }
  memory for cpu { %s }
}"""


@pytest.mark.parametrize("const", ["", "const"])
@pytest.mark.parametrize("loops", ["b, p, vectorize d", "parallel b, d by 16, p, d", "b, d, p"])
@pytest.mark.parametrize("line", [
    "prefetch t in y.p ahead 4", "prefetch t, sc in y.p ahead 100", "prefetch idx, t in y.p ahead 1",
    "layout t [v, d] -> [d // 16, v, d % 16]  prefetch t in y.p ahead 3",
])  # fmt: skip
def test_prefetches_of_gathered_rows(const, loops, line):
    found = check(*load_text(BAG % (const, loops, line))).module
    assert found is not None
    fetched = {s.tensor.name for s in statements(found.main.body) if isinstance(s, nest.Prefetch)}
    assert fetched and fetched <= {"t", "t.packed", "sc", "idx"}


GEMV = """kernel gemv[M=%d, K=%d](w: f32[M, K], x: f32[K]) -> (y: f32[M]) {
  compute { y[i] = sum[k: K](w[i, k] * x[k]) }
  schedule for cpu { loops y (parallel i by %d, k by %d, unroll i, vectorize k) }
  memory for cpu { prefetch w in y.k0 ahead 2 }
}"""


@pytest.mark.parametrize("shape", [(12, 320, 4, 64), (13, 301, 4, 64), (5, 7, 2, 3)])
def test_prefetches_of_rows_cover_each_line(shape):
    found = check(*load_text(GEMV % shape)).module
    assert found is not None
    body = [s for s in statements(found.main.body) if isinstance(s, nest.Prefetch)]
    assert len(body) >= shape[2] * max(1, shape[3] // 16)


def random_memory(kernel: Kernel, program, rng: random.Random) -> Kernel:
    """Caches and prefetches of what stages read, in loops of their nests, among random layers."""
    schedule, memory = random_layers(program, rng)
    graph = build_graph(normalize(program))
    lines = list(memory.lines)
    for line in schedule.lines:
        pieces = getattr(line, "pieces", ())
        if not pieces or rng.random() < 0.3:
            continue
        read = sorted({load.tensor.name for load in loads(graph.stage(line.stage.name).expr)})
        counts = [p.axis for p in pieces]
        names = [
            p.axis if counts.count(p.axis) == 1 else f"{p.axis}{counts[:k].count(p.axis)}"
            for k, p in enumerate(pieces)
        ]
        for tensor in read:
            if rng.random() < 0.5:
                wide = rng.choice([None, None, DType.F32, DType.S32, DType.F64])
                lines.append(CacheLine((Cached(Ref(tensor), wide),), line.stage, rng.choice(names)))
            elif rng.random() < 0.3:
                lines.append(
                    PrefetchLine(
                        (Ref(tensor),), line.stage, rng.choice(names), Num(rng.choice([1, 3, 50]))
                    )
                )
    extra = [line for line in lines if not isinstance(line, LayoutLine)]
    rng.shuffle(extra)
    lines = [line for line in lines if isinstance(line, LayoutLine)] + extra[:2]
    rng.shuffle(lines)
    return with_layers(kernel, [schedule], [MemoryLayer("cpu", tuple(lines))])


@pytest.mark.parametrize("name", PROGRAMS)
def test_random_caches_and_prefetches(name):
    kernel, program = load_text(PROGRAMS[name])
    rng = random.Random(f"{name} caches")
    accepted = 0
    for seed in range(20 * SEEDS):
        if accepted == SEEDS:
            break
        made = random_memory(kernel, program, rng)
        result = lower(made, program, TARGET)
        if result.module is None:
            assert all(d.rule.code[:2] in ("E4", "E5") for d in result.diagnostics)
            continue
        try:
            check(made, program, seed=seed)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{print_kernel(made)}") from error
        accepted += 1
    assert accepted
