"""Loop programs of GPUs: their shape by the default rules, and their results on PoCL."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.compilers.tvm.compiler import compile_module
from edgekernelbench.compilers.tvm.device.load import LoadedDeviceKernel
from edgekernelbench.errors import UsageError
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.gpu.device import loops_of
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets.device import POCL, Choice
from edgekernelbench.targets.gpus import cuda_target, opencl_target
from edgekernelbench.targets.registry import find_target

from .support import compare, draw_inputs, load_text, must_lower

MAP = """kernel k[M=37, N=29](x: f32[M, N]) -> (y: f32[M, N]) {
  compute { y[i, j] = exp(x[i, j]) + pad(x[i - 1, j], 0) }
}"""
ROWS = """kernel k[R=5, C=300](x: f32[R, C]) -> (y: f32[R, C], at: s32[R]) {
  compute {
    m[r: R] = max[c: C](x[r, c])
    s[r: R] = sum[c: C](exp(x[r, c] - m[r]))
    y[r, c] = exp(x[r, c] - m[r]) / s[r]
    at[r] = argmax[c: C](x[r, c])
  }
}"""
MATMUL = """kernel k[M=33, K=20, N=47](X: f32[M, K], W: const f32[K, N]) -> (Y: f32[M, N]) {
  compute { Y[i, j] = relu(sum[k: K](X[i, k] * W[k, j])) }
}"""
FULL = """kernel k[N=70001](x: f32[N]) -> (y: f32[1]) { compute { y[i] = sum[n: N](x[n]) } }"""
SCALAR = """kernel k[N=120](x: f32[N]) -> (y: f32[N]) {
  compute { mx = max[n: N](x[n])  y[n] = x[n] - mx }
}"""
SCAN = """kernel k[L=40, D=6](x: f32[D, L]) -> (y: f32[D, L]) {
  compute { each d: D { seq t: L { y[d, t] = x[d, t] + 0.5 * pad(y[d, t-1], 0) } } }
}"""
STEPS = """kernel k[L=6, D=70](x: f32[L, D], w: const f32[D, D]) -> (h: f32[L, D]) {
  compute { seq t: L {
    p[d: D] = pad(h[t-1, d], 0)
    z[d: D] = sum[e: D](p[e] * w[e, d])
    h[t, d: D] = tanh(0.1 * z[d] + x[t, d])
  } }
}"""
SCATTER = """kernel k[L=50, V=8, D=3](idx: s32[L], x: f32[L, D]) -> (h: s32[V], a: f32[V, D]) {
  compute {
    h[v] = sum[p: L where idx[p] == v](1)
    a[v, d] = sum[p: L where idx[p] == v](x[p, d])
  }
}"""
TUPLES = """combiner lse((m, s), (n, t)) init (-1e30, 0) = {
  let e = exp(-abs(m - n))
  return (max(m, n), s + t * e if m > n else s * e + t)
}
kernel k[R=4, C=130](x: f32[R, C]) -> (m: f32[R], s: f32[R]) {
  compute { m[r], s[r] = lse[c: C](x[r, c], 1) }
}"""
NET = """template conv(t, w, stride) -> (o) {
  let P = dim(w, 2)//2
  o[k: dim(w, 0), i: (dim(t, 1) + stride - 1)//stride, j: (dim(t, 2) + stride - 1)//stride] =
    relu(sum[c: dim(w, 1), r: dim(w, 2), s: dim(w, 3)](
      pad(t[c, i*stride + r - P, j*stride + s - P], 0) * w[k, c, r, s]))
}
kernel k[H=12](x: f32[3, H, H], u: const f32[8, 3, 3, 3], v: const f32[8, 8, 3, 3],
               f: const f32[10, 8]) -> (y: f32[10]) {
  compute {
    a = conv(x, u, 2)
    b = conv(a, v, 1)
    g[c: 8] = sum[i: H//2, j: H//2](b[c, i, j]) / 36
    z[o: 10] = sum[c: 8](f[o, c] * g[c])
    m = max[o: 10](z[o])
    y[o] = exp(z[o] - m) / sum[q: 10](exp(z[q] - m))
  }
}"""
KERNELS = {
    "map": MAP, "rows": ROWS, "matmul": MATMUL, "full": FULL, "scan": SCAN, "steps": STEPS,
    "scatter": SCATTER, "tuples": TUPLES, "net": NET, "scalar": SCALAR,
}  # fmt: skip


def body(text: str, target=None) -> nest.Function:
    kernel, program = load_text(text)
    module = must_lower(kernel, program, target or opencl_target()).module
    assert module is not None
    return module.main


# ------------------------------------------------------------------ shape
def shapes(function: nest.Function) -> list[tuple[int, int]]:
    """Blocks and threads of each kernel."""
    out = []
    for block in loops_of("block", function.body):
        threads = list(loops_of("thread", block.body))
        assert len(threads) == 1
        out.append((block.extent.value, threads[0].extent.value))
    return out


def test_one_thread_an_element() -> None:
    assert shapes(body(MAP)) == [(17, 64)]  # 1073 elements


def test_a_block_a_row_and_a_tree() -> None:
    function = body(ROWS)
    assert (5, 128) in shapes(function)
    kernel = next(loops_of("block", function.body))
    shared = [s for s in _statements(kernel) if isinstance(s, nest.Alloc) and s.scope == "shared"]
    assert [s.tensor.shape for s in shared] == [(128,)]
    assert any(isinstance(s, nest.Barrier) for s in _statements(kernel))


def test_a_single_result_has_a_block_to_itself() -> None:
    assert shapes(body(SCALAR))[0] == (1, 32)


def test_very_many_terms_take_two_passes() -> None:
    first, second = shapes(body(FULL))
    assert first[0] > 1 and first[1] > 1 and second == (1, 1)


def test_light_steps_stay_in_one_block_heavy_ones_are_launched() -> None:
    assert len(shapes(body(STEPS))) == 1
    heavy = body(STEPS.replace("D=70", "D=2000"))
    loops = [s for s in _statements(heavy.body) if isinstance(s, nest.For)]
    assert loops[0].kind == "serial" and len(shapes(heavy)) == 3


def test_independent_recurrences_get_a_thread_each() -> None:
    assert shapes(body(SCAN)) == [(1, 6)]


def test_nothing_is_allocated_or_spread_inside_a_kernel() -> None:
    for text in KERNELS.values():
        function = body(text, cuda_target("sm_87"))
        for kernel in loops_of("block", function.body):
            inside = list(_statements(kernel.body))
            assert not [s for s in inside if isinstance(s, nest.Alloc) and s.scope == "global"]
            assert not list(loops_of("parallel", kernel.body))
        outside = [s for s in _outside(function.body) if isinstance(s, nest.Store)]
        assert outside == []


def _statements(body: nest.Stmt):
    return nest.statements(body)


def _outside(body: nest.Stmt):
    """Statements of the host."""
    if isinstance(body, nest.For):
        if body.kind != "block":
            yield from _outside(body.body)
    elif isinstance(body, nest.Seq):
        for inner in body.body:
            yield from _outside(inner)
    else:
        yield body


# ------------------------------------------------------------------ results
@pytest.fixture(scope="module")
def pocl(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Choice]:
    """A folder that stays while PoCL keeps its files there, and the device."""
    try:
        target = find_target("opencl")
    except UsageError as error:
        pytest.skip(error.message)
    if target.opencl is None or target.opencl.platform != POCL:
        pytest.skip("PoCL is not installed")
    return tmp_path_factory.mktemp("pocl"), target.opencl.choice


def run_on(pocl: tuple[Path, Choice], text: str, inputs: dict | None = None) -> tuple:
    """Inputs, results and program; outputs begin with what no kernel leaves."""
    kernel, program = load_text(text)
    module = must_lower(kernel, program, opencl_target()).module
    assert module is not None
    inputs = inputs or draw_inputs(program)
    folder = Path(tempfile.mkdtemp(dir=pocl[0]))
    built = compile_module(module, program, opencl_target(), folder)
    assert built.artifact is not None, built.diagnostics
    got = LoadedDeviceKernel(folder, pocl[1]).run_apart(inputs, inputs)
    return inputs, got, program


@pytest.mark.parametrize("name", KERNELS)
def test_results_on_pocl(name: str, pocl) -> None:
    inputs, got, program = run_on(pocl, KERNELS[name])
    want = interpret(program, inputs, "declared")
    for tensor in program.outputs:
        compare(got[tensor.name], want[tensor.name], tensor.name)


def test_a_scatter_that_is_too_large_to_search_on_pocl(pocl) -> None:
    text = """kernel k[L=30000, V=3000, D=2](i: s32[L], x: s32[L, D]) -> (a: s32[V, D]) {
      compute { a[v, d] = sum[p: L where i[p] == v](x[p, d]) }
    }"""
    rng = np.random.default_rng(0)
    drawn = {
        "i": rng.integers(-5, 3010, 30000).astype(np.int32),
        "x": rng.integers(-9, 9, (30000, 2)).astype(np.int32),
    }
    inputs, got, _ = run_on(pocl, text, drawn)
    want = np.zeros((3000, 2), np.int32)
    inside = (inputs["i"] >= 0) & (inputs["i"] < 3000)
    np.add.at(want, inputs["i"][inside], inputs["x"][inside])
    np.testing.assert_array_equal(got["a"], want)
    # 6,000 results are cleared, then 60,000 terms land atomically, a thread each.
    assert shapes(body(text)) == [(24, 256), (235, 256)]


# ------------------------------------------------------------------ source
@pytest.mark.parametrize("name", KERNELS)
def test_cuda_source_holds_every_kernel(name: str) -> None:
    from edgekernelbench.compilers.tvm.gpu import build
    from edgekernelbench.compilers.tvm.gpu.emit import emit_device_module

    target = cuda_target("sm_87")
    kernel, program = load_text(KERNELS[name])
    module = must_lower(kernel, program, target).module
    assert module is not None
    launched = len(list(loops_of("block", module.main.body)))
    tvm_target = build.device_target(target)
    lowered = build.split(emit_device_module(module, "cuda"), tvm_target)
    source = build.device_source(lowered, tvm_target)
    assert launched > 0
    assert source.count('extern "C" __global__') == 2 * len(build.kernel_names(lowered))
    assert len([n for n in build.kernel_names(lowered) if n.startswith("main")]) == launched


@pytest.mark.parametrize(("name", "promised"), [("matmul", True), ("scan", False)])
def test_pointers_may_alias_where_a_kernel_reads_what_it_writes(name: str, promised: bool) -> None:
    from edgekernelbench.compilers.tvm.gpu import build
    from edgekernelbench.compilers.tvm.gpu.emit import emit_device_module

    target = cuda_target("sm_90")
    kernel, program = load_text(KERNELS[name])
    module = must_lower(kernel, program, target).module
    assert module is not None
    tvm_target = build.device_target(target)
    lowered = build.split(emit_device_module(module, "cuda"), tvm_target)
    source = build.device_source(lowered, tvm_target)
    assert ("__restrict__" in source) == promised


def test_a_module_without_kernels_has_no_source() -> None:
    from tvm import ir

    from edgekernelbench.compilers.tvm.gpu import build

    with pytest.raises(ValueError, match="there are none"):
        build.device_source(ir.IRModule({}), build.device_target(opencl_target()))


# ------------------------------------------------------------------ stated schedules
TILED = """kernel k[M=21, K=9, N=40](X: f32[M, K], W: f32[K, N]) -> (Y: f32[M, N]) {
  compute { acc[i: M, j: N] = sum[k: K](X[i, k] * W[k, j])  Y[i, j] = relu(acc[i, j]) }
  schedule for gpu { %s }
  memory for gpu { %s }
}"""


def test_a_tile_of_each_thread_on_pocl(pocl) -> None:
    text = TILED % ("loops acc (parallel i by 4, parallel j by 8, k, unroll i, unroll j)", "")
    assert shapes(body(text))[0] == (1, 30)
    inputs, got, program = run_on(pocl, text)
    compare(got["Y"], interpret(program, inputs, "declared")["Y"], "Y")


@pytest.mark.parametrize(
    ("schedule", "memory", "code", "marked"),
    [
        ("loops acc (i, j, vectorize k)", "", "E450", "vectorize k"),
        ("", "prefetch X in acc.k ahead 1", "E455", "X"),
    ],
)
def test_what_has_no_form_on_a_gpu_is_refused(schedule, memory, code, marked) -> None:
    text = TILED % (schedule, memory)
    kernel, program = load_text(text)
    result = lower(kernel, program, opencl_target())
    assert result.module is None
    assert [d.rule.code for d in result.diagnostics] == [code]
    span = result.diagnostics[0].span
    assert span is not None and text[span.start : span.end] == marked
    assert result.diagnostics[0].help


def test_memory_that_threads_would_share_is_refused() -> None:
    text = """kernel k[M=4, K=3, N=4000](X: f32[M, K], W: f32[K, N]) -> (Y: s32[M, N]) {
      compute { Y[i, j] = argmax[k: K](X[i, k] * W[k, j]) }
      schedule for gpu { loops Y (parallel i, k, j) }
    }"""
    kernel, program = load_text(text)
    result = lower(kernel, program, opencl_target())
    assert [d.rule.code for d in result.diagnostics] == ["E451"]
    assert "16000 bytes of `Y`" in result.diagnostics[0].message
