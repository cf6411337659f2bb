"""`mma` at the end of a nest: results, instructions, and what is refused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from edgekernelbench.ir.interpret import interpret
from edgekernelbench.lowering import nest
from edgekernelbench.targets.gpus import cuda_target, opencl_target

from .run_cuda import cuda_source, emulated
from .support import DATA, compare, draw_inputs, load_text, must_lower
from .test_device import pocl
from .test_gpu_layers import of_kind, refused, right, shapes

__all__ = ["pocl"]

PRODUCT = """kernel k[M=%d, K=%d, N=%d](X: %s[%s], W: %s[%s], b: f32[N]) -> (Y: f32[M, N]) {
  compute {
    acc[i: M, j: N] = sum[k: K](X[%s] * W[%s])
    Y[i, j] = relu(f32(acc[i, j]) + b[j])
  }
  schedule for gpu { loops acc (%s) place Y in acc.j0 }
  memory for gpu { %s }
}"""
ENDS = "mma i, mma j, mma k"
NEST = f"block i by 32, block j by 64, k by 32, warp i by 16, warp j by 32, {ENDS}"
CACHED = "cache X, W in acc.k0"
AHEAD = CACHED + " prefetch X, W in acc.k0 ahead 1"
KINDS = [("f16", "f16"), ("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("u8", "u8")]


def product(
    loops: str = NEST,
    memory: str = AHEAD,
    sizes: tuple[int, int, int] = (64, 96, 128),
    kinds: tuple[str, str] = ("f16", "f16"),
    left: str = "ik",
    right: str = "jk",
) -> str:
    names = {"i": "M", "j": "N", "k": "K"}
    shape = [", ".join(names[axis] for axis in side) for side in (left, right)]
    index = [", ".join(side) for side in (left, right)]
    header = (kinds[0], shape[0], kinds[1], shape[1], index[0], index[1])
    return PRODUCT % (*sizes, *header, loops, memory)


def check(text: str, folder: Path, arch: str = "sm_90") -> nest.Module:
    """The module of a kernel that gives the interpreter's results on emulated tensor cores."""
    kernel, program = load_text(text)
    module = must_lower(kernel, program, cuda_target(arch)).module
    assert module is not None
    inputs = draw_inputs(program)
    got = emulated(module, program, cuda_target(arch), inputs, folder)
    want = interpret(program, inputs, "declared")
    for tensor in program.outputs:
        compare(got[tensor.name], want[tensor.name], tensor.name)
    return module


@pytest.fixture(autouse=True)
def _needs_a_compiler() -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")


# ------------------------------------------------------------------ results
@pytest.mark.parametrize("memory", ["", CACHED, AHEAD], ids=["direct", "cached", "ahead"])
@pytest.mark.parametrize("order", ["ik jk", "ik kj", "ki kj", "ki jk"])
def test_halves_in_any_order(order: str, memory: str, tmp_path: Path) -> None:
    left, right = order.split()
    module = check(product(memory=memory, left=left, right=right), tmp_path)
    assert of_kind(module, nest.Mma)
    kinds = [m.transposed for m in of_kind(module, nest.Matrices)]
    assert set(kinds) == ({left == "ki", right == "kj"} if memory else set())


@pytest.mark.parametrize("memory", ["", AHEAD], ids=["direct", "ahead"])
@pytest.mark.parametrize("kinds", KINDS[1:], ids=" ".join)
def test_bytes(kinds: tuple[str, str], memory: str, tmp_path: Path) -> None:
    module = check(product(memory=memory, kinds=kinds), tmp_path)
    assert bool(of_kind(module, nest.Matrices)) == bool(memory)


def test_bytes_that_lie_in_columns(tmp_path: Path) -> None:
    module = check(product(kinds=("s8", "s8"), right="kj"), tmp_path)
    assert of_kind(module, nest.Packed) and of_kind(module, nest.Matrices)


@pytest.mark.parametrize(
    "loops",
    [
        f"block i by 16, block j by 16, k by 16, {ENDS}",
        f"block i by 64, block j by 32, k by 96, warp j by 16, warp i by 32, {ENDS}",
        f"block i by 32, block j by 32, warp i by 16, k by 48, {ENDS}",
        f"block i, j by 64, k by 32, warp j by 16, {ENDS}".replace("block i,", "block i by 32,"),
        f"block k by 48, block i by 32, block j by 32, k by 16, warp i by 16, {ENDS}",
    ],
)
def test_nests(loops: str, tmp_path: Path) -> None:
    text = product(loops, "" if "warp i by 16, k" in loops else CACHED)
    if "block k" in loops:
        text = text.replace("place Y in acc.j0", "").replace("acc.k0", "acc.k1")
    check(text, tmp_path)


BATCH = """kernel k[B=3, M=32, K=32, N=32](X: f16[B, M, K], W: f16[B, K, N]) -> (Y: f16[B, M, N]) {
  compute { a[b: B, i: M, j: N] = sum[k: K](X[b, i, k] * W[b, k, j])  Y[b, i, j] = a[b, i, j] }
  schedule for gpu {
    loops a (block b, block i by 16, block j by 32, k by 16, warp j by 16, %s)
    place Y in a.j0
  }
  memory for gpu { cache X, W in a.k0 }
}"""


def test_batches_and_a_result_in_halves(tmp_path: Path) -> None:
    check(BATCH % ENDS, tmp_path)


CONV = """kernel k[C=32, H=6, F=32](
  x: f16[H, H, C], w: f16[3, 3, C, F]
) -> (y: f32[H - 2, H - 2, F]) {
  compute {
    t[p: (H - 2)*(H - 2), r: 3, s: 3, c: C] = x[p // (H - 2) + r, p % (H - 2) + s, c]
    a[p: (H - 2)*(H - 2), f: F] = sum[r: 3, s: 3, c: C](t[p, r, s, c] * w[r, s, c, f])
    y[i, j, f] = a[i*(H - 2) + j, f]
  }
  schedule for gpu {
    loops a (block p by 16, block f by 32, r, s, c by 16, warp f by 16, mma p, mma f, mma c)
    place t in a.c0
  }
  memory for gpu { cache w in a.c0 }
}"""


def test_a_convolution_gathers_its_rows(tmp_path: Path) -> None:
    text = CONV.replace("t[p: ", "t: f16[p: ", 1)
    module = check(text, tmp_path)
    assert len(of_kind(module, nest.Matrices)) == 2


def test_the_example(tmp_path: Path) -> None:
    check((DATA / "examples-gpu" / "tensor_cores.ekir").read_text(encoding="utf-8"), tmp_path)


# ------------------------------------------------------------------ targets
def test_without_tensor_cores_the_same_nest_runs(pocl) -> None:
    text = product(kinds=("s8", "s8"))
    module = right(text, pocl)
    assert not of_kind(module, nest.Mma)
    assert shapes(module.main) == [(4, 128)]


@pytest.mark.parametrize("arch", ["sm_75", "sm_87", "sm_90"])
@pytest.mark.parametrize("kinds", KINDS[:2], ids=" ".join)
def test_nvcc_takes_it(kinds: tuple[str, str], arch: str, tmp_path: Path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed")
    for number, memory in enumerate(("", AHEAD)):
        kernel, program = load_text(product(memory=memory, kinds=kinds, right="kj"))
        module = must_lower(kernel, program, cuda_target(arch)).module
        assert module is not None
        name = f"k{number}"
        source = cuda_source(module, cuda_target(arch))
        (tmp_path / f"{name}.cu").write_text(source, encoding="utf-8")
        command = ["nvcc", f"-arch={arch}", "-cubin", "-o", f"{name}.cubin", f"{name}.cu"]
        subprocess.run(command, cwd=tmp_path, check=True)


def test_copies_keep_rows_in_different_banks() -> None:
    kernel, program = load_text(product())
    module = must_lower(kernel, program, cuda_target("sm_87")).module
    assert module is not None
    shared = {
        s.tensor.name: s.tensor.size for s in of_kind(module, nest.Alloc) if s.scope == "shared"
    }
    assert shared == {"X.cache": 2 * 32 * 40, "W.cache": 2 * 64 * 40}


# ------------------------------------------------------------------ refusals
@pytest.mark.parametrize(
    ("loops", "code", "words"),
    [
        ("block i by 16, block j by 16, mma i, mma j, k", "E456", "not the last three"),
        ("block i by 16, block j by 16, mma i, mma k, mma j", "E456", "not two spatial"),
        (f"block i by 16, block j by 16, thread i by 16, {ENDS}", "E456", "beside `mma`"),
        (f"block i by 16, block j by 16, warp k by 32, {ENDS}", "E456", "add up terms"),
        (f"block i by 64, k by 16, j by 16, {ENDS}", "E456", "between the reduction"),
        ("block i by 16, warp i, j, k", "E456", "in a nest without `mma`"),
        (f"block i by 24, block j by 16, {ENDS}", "E458", "24"),
        (f"block i by 16, block j by 8, {ENDS}", "E458", "no multiple of 16"),
        (f"block i by 16, block j by 16, k by 40, {ENDS}", "E458", "does not divide 96"),
        (f"block i by 16, block j by 16, warp j by 8, {ENDS}", "E458", "multiple"),
    ],
)
def test_refused_nests(loops: str, code: str, words: str) -> None:
    text = product(loops, "").replace("place Y in acc.j0", "")
    for target in (cuda_target("sm_90"), opencl_target()):
        found = refused(text, target)
        assert [c for c, _ in found] == [code] * len(found), found
        assert any(words in message for _, message in found), found


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("X: f16", "X: f32", "`X`, stored as f32"),
        ("sum[k: K](X", "sum[k: K where k > 3](X", "under a condition"),
        ("sum[k: K](X", "max[k: K](X", "is no sum"),
        ("X[i, k] * W[j, k]", "X[i, k] + W[j, k]", "no product of two values"),
        ("X[i, k] * W[j, k]", "X[i, k] * X[i, k]", "no factor moves"),
    ],
)
def test_refused_products(old: str, new: str, words: str) -> None:
    assert old in product()
    found = refused(product(memory="").replace(old, new), cuda_target("sm_90"))
    assert [code for code, _ in found] == ["E457"] and words in found[0][1], found


def test_an_architecture_without() -> None:
    ((code, message),) = refused(product(), cuda_target("sm_72"))
    assert code == "E459" and "sm_72" in message


def test_not_on_a_cpu() -> None:
    from .support import TARGET

    text = product(memory="").replace("for gpu", "for cpu")
    found = refused(text, TARGET)
    assert ("E453", "`mma i` in a layer for a CPU") in found
