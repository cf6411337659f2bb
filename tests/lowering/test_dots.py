# ruff: noqa: E501 (kernel texts and tables)
"""`dot4`: whatever instruction a target has, the sums are those of the compute layer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from edgekernelbench.ir.interpret import interpret
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.dots.instructions import TABLE, WORDS
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets import host
from edgekernelbench.targets.model import Target

from .run_nest import run_module
from .support import TARGET, load_text, must_lower

CPUS: dict[str, tuple[int, tuple[str, ...]]] = {
    "VNNI": (512, ("sse2", "avx2", "avx512bw", "avx512vl", "avx512vnni")),
    "VNNI, 256 bits": (256, ("sse2", "avx2", "avxvnni")),
    "VNNI-INT8": (256, ("sse2", "avx2", "avxvnni", "avxvnniint8")),
    "AVX-512": (512, ("sse2", "avx2", "avx512bw")),
    "AVX2": (256, ("sse2", "avx2")),
    "dotprod": (128, ("dotprod",)),
    "i8mm": (128, ("dotprod", "i8mm")),
    "nothing": (128, ()),
}

PRODUCT = """kernel k[M={m}, N={n}, K={k}](A: {a}[M, K], B: {const}{b}[K, N]) -> (C: s32[M, N]) {{
  compute {{ C[i, j] = sum[k: K](A[i, k] * B[k, j]) }}
  schedule for cpu {{
    loops C (parallel i by {rows}, j by {columns}, k by 4, unroll i, vectorize j, dot4 k)
  }}
  memory for cpu {{ layout B [k, j] -> [j // 16, k // 4, j % 16, k % 4] }}
}}"""


def cpu(name: str) -> Target:
    bits, features = CPUS[name]
    return TARGET.model_copy(update={"vector_bits": bits, "features": features})


def product(m: int, n: int, k: int, a: str, b: str, const: str = "const ") -> str:
    sizes = {"m": m, "n": n, "k": k, "rows": min(4, m), "columns": min(16, n)}
    return PRODUCT.format(**sizes, a=a, b=b, const=const)


def dots(module: nest.Module | None) -> Iterator[nest.Dot]:
    assert module is not None
    for statement in nest.statements(module.main.body):
        if isinstance(statement, nest.Dot):
            yield statement


def names(module: nest.Module | None) -> set[str]:
    return {dot.instruction.name for dot in dots(module)}


def checked(text: str, target: Target, extreme: float = 0.7) -> nest.Module:
    """The module, after its results on mostly extreme bytes were compared with the interpreter."""
    kernel, program = load_text(text)
    module = must_lower(kernel, program, target).module
    assert module is not None
    rng = np.random.default_rng(1)
    inputs = {}
    for tensor in program.inputs:
        low, high = tensor.dtype.int_range
        if tensor.dtype.bytes > 1:
            low, high = -9, 9
        drawn = rng.integers(low, high, tensor.shape, endpoint=True)
        drawn = np.where(rng.random(tensor.shape) < extreme, low if low < 0 else high, drawn)
        inputs[tensor.name] = drawn.astype(tensor.dtype.numpy)
    outputs = {tensor.name for tensor in program.outputs}
    got, want = run_module(module, inputs, outputs), interpret(program, inputs, "declared")
    for name in outputs:
        np.testing.assert_array_equal(got[name], want[name])
    return module


SHAPES = [(4, 32, 16), (5, 21, 30), (3, 7, 9), (2, 40, 5), (1, 16, 4)]


@pytest.mark.parametrize("name", CPUS)
@pytest.mark.parametrize(("a", "b"), list(itertools.product(("s8", "u8"), repeat=2)))
def test_products_of_all_kinds_of_bytes_and_sizes(name: str, a: str, b: str) -> None:
    for shape in SHAPES:
        checked(product(*shape, a, b), cpu(name))


@pytest.mark.parametrize(
    ("name", "kinds", "instruction"),
    [
        ("VNNI", "s8 s8", "vpdpbusd"),
        ("VNNI", "u8 s8", "vpdpbusd"),
        ("VNNI, 256 bits", "u8 u8", "vpdpbusd"),
        ("VNNI-INT8", "s8 s8", "vpdpbssd"),
        ("VNNI-INT8", "u8 u8", "vpdpbuud"),
        ("VNNI-INT8", "s8 u8", "vpdpbusd"),
        ("AVX2", "s8 s8", "vpmaddwd"),
        ("AVX-512", "u8 u8", "vpmaddwd"),
        ("dotprod", "s8 s8", "sdot"),
        ("dotprod", "u8 s8", "sdot"),
        ("dotprod", "s8 u8", "udot"),
        ("i8mm", "u8 s8", "usdot"),
        ("nothing", "s8 s8", WORDS.name),
    ],
)
def test_each_target_gets_the_best_that_it_has(name: str, kinds: str, instruction: str) -> None:
    kernel, program = load_text(product(4, 32, 16, *kinds.split()))
    module = must_lower(kernel, program, cpu(name)).module
    assert module is not None
    assert names(module) == {instruction}
    assert instruction in module.nest


def test_s8_by_s8_starts_from_sums_of_constant_weights_that_are_packed() -> None:
    module = checked(product(4, 32, 16, "s8", "s8"), cpu("VNNI"))
    assert [t.name for t in module.packed] == ["B.packed", "C.offset"]
    assert all(dot.b.bias == 128 and not dot.b.moving for dot in dots(module))
    module = checked(product(4, 32, 16, "u8", "s8"), cpu("VNNI"))
    assert [t.name for t in module.packed] == ["B.packed"]


def test_the_sums_of_other_weights_are_computed_in_the_call() -> None:
    module = checked(product(6, 40, 18, "s8", "s8", const=""), cpu("VNNI"))
    assert not module.packed
    assert "C.offset" in module.nest


def test_long_sums_take_no_detour_that_could_overflow() -> None:
    kernel, program = load_text(product(2, 16, (1 << 15) + 4, "s8", "s8"))
    assert names(must_lower(kernel, program, cpu("VNNI")).module) == {"vpmaddwd"}
    kernel, program = load_text(product(2, 16, 1 << 15, "s8", "s8"))
    assert names(must_lower(kernel, program, cpu("VNNI")).module) == {"vpdpbusd"}


def test_tails_of_a_padded_layout_are_whole_vectors() -> None:
    module = checked(product(4, 45, 30, "s8", "s8"), cpu("VNNI"))
    assert {dot.lanes for dot in dots(module)} == {16}
    assert {dot.count for dot in dots(module)} == {4, 2}


KERNELS = {
    "chunks of the reduction on several threads": """
      compute { C[i, j] = sum[k: 40](A[i, k] * B[k, j]) }
      schedule for cpu {
        loops C (parallel k by 16, i by 2, j by 16, k by 4, unroll i, vectorize j, dot4 k)
      }""",
    "unrolled, in two levels": """
      compute { C[i, j] = sum[k: 40](A[i, k] * B[k, j]) }
      schedule for cpu {
        loops C (j by 32, k by 16, i by 3, unroll k by 4, unroll i, vectorize j, dot4 k)
      }""",
    "rows that run inside the reduction": """
      compute { C[i, j] = sum[k: 40](A[i, k] * B[k, j]) }
      schedule for cpu { loops C (j by 32, k by 4, i, vectorize j, dot4 k) }""",
    "a consumer of the accumulators": """
      compute {
        acc[i: 6, j: 48] = sum[k: 40](A[i, k] * B[k, j])
        C[i, j] = acc[i, j] * 2 + 1
      }
      schedule for cpu {
        loops acc (i by 3, j by 16, k by 4, unroll i, vectorize j, dot4 k)
        place C in acc.j0
      }""",
    "a cached operand": """
      compute { C[i, j] = sum[k: 40](A[i, k] * B[k, j]) }
      schedule for cpu { loops C (i by 2, j by 16, k by 4, unroll i, vectorize j, dot4 k) }
      memory for cpu { cache A in C.i0 %s }""",
    "a producer in front": """
      compute {
        q[i: 6, k: 40] = s8(clip(s32(A[i, k]) + 3, -128, 127))
        C[i, j] = sum[k: 40](q[i, k] * B[k, j])
      }
      schedule for cpu {
        loops C (i by 2, j by 16, k by 4, unroll i, vectorize j, dot4 k)
        place q in C.i0
      }""",
    "a producer that is constant": """
      compute {
        w[k: 40, j: 48] = s8(s32(B[k, j]) ^ 1)
        C[i, j] = sum[k: 40](A[i, k] * w[k, j])
      }
      schedule for cpu { loops C (i by 2, j by 16, k by 4, unroll i, vectorize j, dot4 k) }
      memory for cpu { layout w [k, j] -> [j // 16, k // 4, j % 16, k % 4] }""",
    "two axes, of which the last is taken by fours": """
      compute { C[i, j] = sum[r: 5, c: 8](A[i, r * 8 + c] * B[r * 8 + c, j]) }
      schedule for cpu { loops C (i by 2, j by 16, r, c by 4, unroll i, vectorize j, dot4 c) }""",
    "the factors the other way round": """
      compute { C[i, j] = sum[k: 40](B[k, j] * A[i, k]) }
      schedule for cpu { loops C (i by 2, j by 16, k by 4, unroll i, vectorize j, dot4 k) }""",
    "inside a loop of the program": """
      compute {
        seq t: 6 {
          h[k: 40] = s8(s32(A[t, k]) + pad(C[t - 1, 0], 0) % 7)
          C[t, j: 48] = sum[k: 40](h[k] * B[k, j])
        }
      }
      schedule for cpu { loops C (j by 32, k by 4, vectorize j, dot4 k) }""",
}  # fmt: skip
QUADS = "layout B [k, j] -> [j // 16, k // 4, j % 16, k % 4]"


@pytest.mark.parametrize("name", CPUS)
@pytest.mark.parametrize("case", KERNELS)
def test_nests_around_dot_products(case: str, name: str) -> None:
    layers = KERNELS[case]
    if "%s" in layers:
        layers = layers % QUADS
    elif "memory" not in layers:
        layers += f"memory for cpu {{ {QUADS} }}"
    module = checked(
        f"kernel k(A: s8[6, 40], B: const s8[40, 48]) -> (C: s32[6, 48]) {{{layers}}}", cpu(name)
    )
    assert any(True for _ in dots(module))


CONV = """kernel k[H=7, W=9, C=12, F=20](x: s8[H, W, C], z: const s8[1], w: const s8[F, 3, 3, C])
  -> (y: s32[H, W, F]) {
  compute {
    acc[i: H, j: W, f: F] = sum[r: 3, s: 3, c: C](pad(x[i + r - 1, j + s - 1, c], z[0]) * w[f, r, s, c])
    ws[f: F] = sum[r: 3, s: 3, c: C](w[f, r, s, c])
    y[i, j, f] = acc[i, j, f] - z[0] * ws[f]
  }
  schedule for cpu {
    loops acc (parallel i, f by 16, j by 4, r, s, c by 4, unroll j, vectorize f, dot4 c)
    place y in acc.i
  }
  memory for cpu { layout w [f, r, s, c] -> [f // 16, r, s, c // 4, f % 16, c % 4] }
}"""


@pytest.mark.parametrize("name", CPUS)
def test_a_convolution_with_borders_and_a_zero_point(name: str) -> None:
    module = checked(CONV, cpu(name))
    assert any(True for _ in dots(module))


def test_options_that_narrow_the_code_take_its_instructions_away() -> None:
    text = product(4, 32, 16, "u8", "s8").replace(
        "schedule for cpu {", "schedule for llvm { option vector_bits 256"
    )
    kernel, program = load_text(text)
    assert names(must_lower(kernel, program, cpu("VNNI")).module) == {"vpmaddwd"}
    both = cpu("VNNI").model_copy(update={"features": (*cpu("VNNI").features, "avxvnni")})
    assert names(must_lower(kernel, program, both).module) == {"vpdpbusd"}


def test_profiles_tell_every_feature_of_the_table() -> None:
    assert {need for row in TABLE for need in row.needs} == set(host._FEATURES.values())


# ---------------------------------------------------------------- refusals
ILL = """kernel k[M=8, N=32, K=64, T=3](A: s8[M, K], At: s8[K, M], B: const s8[K, N], F: f32[M, K], B3: const s8[T, N], n: s32[1]) -> (C: s32[M, N], D: f32[M, N]) {
  compute {
    C[i, j] = sum[k: K](A[i, k] * B[k, j])
    c2[i: M, j: N] = sum[k: K](At[k, i] * B[k, j])
    cz[i: M, j: N] = sum[k: K]((A[i, k] - 3) * B[k, j])
    cw[i: M, j: N] = sum[k: K where k != i](A[i, k] * B[k, j])
    cr[i: M, j: N] = sum[k: 0..clamp(n[0], 0, K)](A[i, k] * B[k, j])
    c3[i: M, j: N] = sum[t: T](A[i, t] * B3[t, j])
    cm[i: M, j: N] = max[k: K](A[i, k] * B[k, j])
    D[i, j] = sum[k: K](F[i, k] * B[k, j]) + c2[i, j] + cz[i, j] + cw[i, j] + cr[i, j] + c3[i, j] + cm[i, j]
  }
  schedule for cpu { %s }
  memory for cpu { %s }
}"""
NEST = "loops %s (i by 4, j by 16, k by 4, unroll i, vectorize j, dot4 k)"
REFUSED = [
    (NEST % "C", "", "E434", "`B` moves by 1 elements along the lanes and by 32", "write `layout B [k, j] -> [j // 16, k // 4, j % 16, k % 4]`"),
    (NEST % "C", "layout B [k, j] -> [j // 9, k // 4, j % 9, k % 4]", "E434", "`B` has tiles that the vectors do not fit", "layout B [k, j] -> [j // 16"),
    (NEST % "c2", QUADS, "E434", "`At` moves by 0 elements along the lanes and by 8", "write `layout At [k, i] -> [i, k]`"),
    (NEST % "cz", QUADS, "E433", "is no product of two bytes", "a zero point goes outside"),
    (NEST % "cw", QUADS, "E433", "`cw` sums under a condition", ""),
    (NEST % "cm", QUADS, "E433", "`cm` is no sum", ""),
    (NEST % "cr", QUADS, "E432", "the range of `k` is not constant", "drop `dot4`"),
    (NEST % "D.sum", QUADS, "E433", "`D.sum` sums in f32", "the sum is an s32"),
    ("loops C (i, j by 16, k by 8, vectorize j, dot4 k)", QUADS, "E432", "it would take 8 values of `k`", "write `k by 4` further out"),
    ("loops c3 (i, j by 16, vectorize j, dot4 t)", "", "E432", "it would take 3 values of `t`", "drop `dot4`"),
    ("loops C (i, k by 4, j, dot4 k)", QUADS, "E432", "no vectorised spatial axis", "end the nest in `vectorize j, dot4 k`"),
    ("loops C (i, j by 16, k by 4, dot4 k, vectorize j)", QUADS, "E432", "`j1` is inside of it", "move `dot4 k` to the end"),
    ("loops C (i, k, vectorize j, dot4 i)", QUADS, "E411", "", ""),
    ("loops C (k, j by 16, vectorize j, dot4 i)", QUADS, "E432", "`i` is no reduction axis", "its reduction axes are k"),
]  # fmt: skip


@pytest.mark.parametrize(("schedule", "memory", "code", "message", "help"), REFUSED)
@pytest.mark.parametrize("name", ["VNNI", "nothing"])
def test_what_dot4_cannot_do_is_refused_with_a_way_out(
    schedule: str, memory: str, code: str, message: str, help: str, name: str
) -> None:
    kernel, program = load_text(ILL % (schedule, memory))
    result = lower(kernel, program, cpu(name))
    assert result.module is None
    found = result.diagnostics[0]
    assert found.rule.code == code and found.span is not None
    assert message in found.message
    assert help in " ".join(found.help)


@pytest.mark.parametrize("name", CPUS)
def test_narrower_tiles_take_narrower_instructions(name: str) -> None:
    text = product(4, 40, 12, "s8", "s8").replace("16, k // 4, j % 16", "8, k // 4, j % 8")
    module = checked(text, cpu(name))
    assert {dot.lanes for dot in dots(module)} <= {8, 4}


def test_the_layout_that_is_named_is_accepted() -> None:
    kernel, program = load_text(ILL % (NEST % "c2", QUADS + " layout At [k, i] -> [i, k]"))
    assert lower(kernel, program, cpu("VNNI")).module is not None
