"""The back end as a whole: loops, packing, parallel code, contraction, limits, failures, calls."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.compilers.base import Manifest
from edgekernelbench.compilers.contraction import find_fences
from edgekernelbench.compilers.tvm import TvmCompiler
from edgekernelbench.compilers.tvm.compiler import compile_module, internal_error
from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy, aligned_empty
from edgekernelbench.ir.core import Expr, Load, Tensor, VarRef
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest
from edgekernelbench.targets.host import host_target
from tests.compilers.nests import (
    call,
    cast,
    elementwise,
    k,
    loop,
    module,
    op,
    program_of,
    run,
    var,
)
from tests.lowering.support import DATA, load_text

F32, S32, S8 = DType.F32, DType.S32, DType.S8


def scale_and_shift(x: Expr) -> Expr:
    return op("add", op("mul", x, k(0.1, F32)), k(0.3, F32))


def rounding_matters() -> np.ndarray:
    """Values for which a fused multiply-add rounds ``x * 0.1 + 0.3`` otherwise."""
    x = np.random.default_rng(0).uniform(-900, 900, 1 << 16).astype(np.float32)
    fused = (x.astype(np.float64) * np.float64(np.float32(0.1)) + np.float32(0.3)).astype(
        np.float32
    )
    return x[fused != x * np.float32(0.1) + np.float32(0.3)][:4096]


def test_products_are_fused_where_floats_stay_floats(tmp_path: Path) -> None:
    """Otherwise the tests below would show nothing on this host."""
    if host_target().vector_bits < 256:
        pytest.skip("this CPU has no fused multiply-add")
    x = rounding_matters()
    got = elementwise(tmp_path, scale_and_shift, {"x": x}, F32)
    assert (got != x * np.float32(0.1) + np.float32(0.3)).all()


def test_products_that_become_integers_keep_their_rounding(tmp_path: Path) -> None:
    x = rounding_matters()

    def bits(x: Expr) -> Expr:
        """The rounded sum, its last bits made visible in an integer."""
        return cast(op("mul", scale_and_shift(x), k(2.0**20, F32)), S32)

    got = elementwise(tmp_path, bits, {"x": x}, S32)
    plain = x * np.float32(0.1) + np.float32(0.3)
    np.testing.assert_array_equal(got, (plain * np.float32(2.0**20)).astype(np.int32))


def test_rounding_is_kept_through_buffers_and_lets(tmp_path: Path) -> None:
    x = rounding_matters()
    source = Tensor("x", F32, x.shape, "input")
    middle = Tensor("m", F32, x.shape, "stage")
    floats = Tensor("f", F32, x.shape, "output")
    target = Tensor("y", S32, x.shape, "output")
    let = var("v", F32)

    def first(i: Expr) -> nest.Stmt:
        return nest.Store(middle, (i,), scale_and_shift(Load(source, (i,))))

    def second(i: Expr) -> nest.Stmt:
        value = op("mul", VarRef(let), k(1024.0, F32))
        return nest.Seq((
            nest.LetValue(let, op("add", Load(middle, (i,)), k(0.0, F32))),
            nest.Store(floats, (i,), VarRef(let)),
            nest.Store(target, (i,), cast(value, S32)),
        ))  # fmt: skip

    size = len(x)
    body = nest.Seq((
        nest.Alloc(middle, "global"),
        loop("serial", size, first),
        loop("serial", size, second),
    ))  # fmt: skip
    got = run(tmp_path, module(body, source, floats, target), {"x": x})
    np.testing.assert_array_equal(got["f"], x * np.float32(0.1) + np.float32(0.3))


def test_accumulation_is_not_fenced_in_its_own_store() -> None:
    acc, x = Tensor("acc", F32, (), "stage"), Tensor("x", F32, (8,), "input")
    y = Tensor("y", S32, (), "output")

    def step(i: Expr) -> nest.Stmt:
        square = op("mul", Load(x, (i,)), Load(x, (i,)))
        return nest.Store(acc, (), op("add", Load(acc, ()), square))

    body = nest.Seq((
        nest.Alloc(acc, "local"),
        nest.Store(acc, (), k(0.0, F32)),
        loop("serial", 8, step),
        nest.Store(y, (), cast(Load(acc, ()), S32)),
    ))  # fmt: skip
    function = nest.Function("f", (x, y), body)
    assert "acc" in find_fences((function,)).tensors
    from edgekernelbench.compilers.tvm.emit import emit_module

    assert "arithmetic.fence" not in emit_module(module(body, x, y)).script()


# ------------------------------------------------------------------ loops and buffers
def test_dynamic_extents_offsets_and_branches(tmp_path: Path) -> None:
    """y[i] = sum of x[j] for start[i] <= j < i + 1, odd i left at zero by a branch."""
    size = 40
    x, start = Tensor("x", F32, (size,), "input"), Tensor("s", S32, (size,), "input")
    y = Tensor("y", F32, (size,), "output")

    def row(i: Expr) -> nest.Stmt:
        j = var("j")
        low = Load(start, (i,))
        extent = op("sub", op("add", i, k(1)), low)
        add = nest.Store(y, (i,), op("add", Load(y, (i,)), Load(x, (VarRef(j),))))
        inner = nest.For(j, low, extent, "serial", add)
        odd = op("eq", op("mod", i, k(2)), k(1))
        return nest.Seq((
            nest.Store(y, (i,), k(0.0, F32)),
            nest.If(odd, nest.Store(y, (i,), k(0.0, F32)), inner),
        ))  # fmt: skip

    values = np.arange(size, dtype=np.float32)
    starts = np.minimum(np.arange(size) // 2 * 2, np.arange(size)).astype(np.int32)
    got = run(tmp_path, module(loop("serial", size, row), x, start, y), {"x": values, "s": starts})
    want = [0 if i % 2 else values[starts[i] : i + 1].sum() for i in range(size)]
    np.testing.assert_array_equal(got["y"], want)


@pytest.mark.parametrize("kind", ["vectorize", "unroll", "parallel"])
def test_loops_that_do_not_start_at_zero(tmp_path: Path, kind: nest.LoopKind) -> None:
    x, y = Tensor("x", F32, (24,), "input"), Tensor("y", F32, (24,), "output")
    i = var("i")
    tail = nest.For(i, k(16), k(8), kind, nest.Store(y, (VarRef(i),), Load(x, (VarRef(i),))))
    head = loop("serial", 16, lambda j: nest.Store(y, (j,), k(1.0, F32)))
    values = np.arange(24, dtype=np.float32)
    got = run(tmp_path, module(nest.Seq((head, tail)), x, y), {"x": values})
    np.testing.assert_array_equal(got["y"], np.r_[np.ones(16), values[16:]])


def test_lets_in_vectorised_loops_are_one_a_lane(tmp_path: Path) -> None:
    """A let that is used twice, after the store to the buffer that it was read from."""
    x, y = Tensor("x", F32, (32,), "input"), Tensor("y", F32, (32,), "output")

    def tile(o: Expr) -> nest.Stmt:
        def lane(i: Expr) -> nest.Stmt:
            at, let = op("add", op("mul", o, k(8)), i), var("v", F32)
            return nest.Seq((
                nest.Store(y, (at,), Load(x, (at,))),
                nest.LetValue(let, Load(y, (at,))),
                nest.Store(y, (at,), k(-1.0, F32)),
                nest.Store(y, (at,), op("mul", VarRef(let), VarRef(let))),
            ))  # fmt: skip

        return loop("vectorize", 8, lane)

    values = np.arange(32, dtype=np.float32)
    got = run(tmp_path, module(loop("parallel", 4, tile), x, y), {"x": values})
    np.testing.assert_array_equal(got["y"], values**2)


def test_gathers_in_vectorised_loops(tmp_path: Path) -> None:
    size = 64
    x, n = Tensor("x", F32, (size,), "input"), Tensor("n", DType.S64, (size,), "input")
    y = Tensor("y", F32, (size,), "output")
    body = loop("vectorize", size, lambda i: nest.Store(y, (i,), Load(x, (Load(n, (i,)),))))
    rng = np.random.default_rng(0)
    values, order = rng.normal(size=size).astype(np.float32), rng.permutation(size)
    got = run(tmp_path, module(body, x, n, y), {"x": values, "n": order})
    np.testing.assert_array_equal(got["y"], values[order])


def test_local_buffers_stay_out_of_the_allocator(tmp_path: Path) -> None:
    from edgekernelbench.compilers.tvm import build
    from edgekernelbench.compilers.tvm.emit import emit_module

    acc = Tensor("acc", F32, (16, 64), "stage")
    y = Tensor("y", F32, (16, 64), "output")

    def fill(target: Tensor, value: Expr | None) -> nest.Stmt:
        return loop("serial", 16, lambda i: loop("vectorize", 64, lambda j: nest.Store(
            target, (i, j), Load(acc, (i, j)) if value is None else value)))  # fmt: skip

    body = nest.Seq((nest.Alloc(acc, "local"), fill(acc, k(1.0, F32)), fill(y, None)))
    target = build.tvm_target(host_target())
    lowered = build.lower(emit_module(module(body, y)), target).script()
    assert "AllocWorkspace" not in lowered
    assert (run(tmp_path, module(body, y), {})["y"] == 1).all()


# ------------------------------------------------------------------ the compiler and its artifact
def test_layered_kernel_is_packed_and_described(tmp_path: Path) -> None:
    text = (DATA / "examples-layered" / "matmul_bias_relu.ekir").read_text()
    kernel, program = load_text(text, {"M": 16, "K": 8, "N": 64})
    built = TvmCompiler().compile(kernel, program, host_target(), tmp_path)
    assert built.artifact is not None
    manifest = Manifest.model_validate_json((tmp_path / "manifest.json").read_text())
    assert manifest == built.artifact.manifest
    roles = {a.name: a.role for a in manifest.arguments}
    assert roles["X"] == "input" and roles["W"] == "const" and roles["Y"] == "output"
    assert "packed" in roles.values() and manifest.prepack_args[0] == "W"
    assert "W" not in manifest.main_args
    facts = manifest.facts
    assert facts.packed_bytes >= 8 * 64 * 4
    assert facts.flops >= 2 * 16 * 8 * 64
    assert facts.code_bytes is not None and 500 < facts.code_bytes < 100_000
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kernel.so", "manifest.json"]

    loaded = LoadedKernel(tmp_path)
    rng = np.random.default_rng(0)
    arrays = {t.name: aligned_copy(rng.normal(size=t.shape).astype(np.float32))
              for t in program.inputs}  # fmt: skip
    consts = {n: arrays.pop(n) for n in ("W", "b")}
    y = aligned_empty((16, 64), F32)
    loaded.bind(arrays, consts, {"Y": y})()
    np.testing.assert_allclose(
        y, np.maximum(arrays["X"] @ consts["W"] + consts["b"], 0), rtol=1e-4, atol=1e-5
    )
    consts = {n: aligned_copy(c * 2) for n, c in consts.items()}
    again = loaded.bind(arrays, consts, {"Y": y})
    again()
    np.testing.assert_allclose(
        y, np.maximum(arrays["X"] @ consts["W"] + consts["b"], 0), rtol=1e-4, atol=1e-5
    )


def test_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    x, y = Tensor("x", F32, (16,), "input"), Tensor("y", F32, (16,), "output")
    body = loop("serial", 16, lambda i: nest.Store(y, (i,), Load(x, (i,))))
    program = program_of(module(body, x, y))
    assert compile_module(module(body, x, y), program, host_target(), tmp_path).artifact
    loaded = LoadedKernel(tmp_path)
    good, out = aligned_empty((16,), F32), aligned_empty((16,), F32)
    with pytest.raises(ValueError, match=r"'x' must be f32\[16\]"):
        loaded.bind({"x": aligned_empty((17,), F32)}, {}, {"y": out})
    with pytest.raises(ValueError, match="'x' must be f32"):
        loaded.bind({"x": good.astype(np.float64)}, {}, {"y": out})
    with pytest.raises(ValueError, match="aligned"):
        loaded.bind({"x": aligned_empty((17,), F32)[1:]}, {}, {"y": out})
    with pytest.raises(KeyError):
        loaded.bind({}, {}, {"y": out})


def test_unrolled_code_is_capped(tmp_path: Path) -> None:
    y = Tensor("y", F32, (64, 64, 64), "output")
    body = loop("unroll", 64, lambda a: loop("unroll", 64, lambda b: loop(
        "unroll", 64, lambda c: nest.Store(y, (a, b, c), k(1.0, F32)))))  # fmt: skip
    started = time.perf_counter()
    built = compile_module(module(body, y), program_of(module(body, y)), host_target(), tmp_path)
    assert time.perf_counter() - started < 2
    assert built.artifact is None
    assert [d.rule.code for d in built.diagnostics] == ["E601"]
    assert "operations" in built.diagnostics[0].message and built.diagnostics[0].help


def test_very_wide_vectors_are_refused(tmp_path: Path) -> None:
    y = Tensor("y", F32, (4096,), "output")
    body = loop("vectorize", 4096, lambda i: nest.Store(y, (i,), k(1.0, F32)))
    built = compile_module(module(body, y), program_of(module(body, y)), host_target(), tmp_path)
    assert [d.rule.code for d in built.diagnostics] == ["E602"]


def test_exceptions_of_the_compiler_become_a_diagnostic() -> None:
    found = internal_error(ValueError("Traceback:\n  deep inside\nCheck failed: a == b"))
    assert found.rule.code == "E699"
    assert found.message == "ValueError: Check failed: a == b"
    assert "deep inside" in found.notes[0]


def test_other_backends_are_not_supported(tmp_path: Path) -> None:
    target = host_target().model_copy(update={"backend": "metal", "name": "metal"})
    kernel, program = load_text((DATA / "examples" / "softmax_last.ekir").read_text())
    built = TvmCompiler().compile(kernel, program, target, tmp_path)
    assert not TvmCompiler().supports(target)
    assert [d.rule.code for d in built.diagnostics] == ["E603"]


def test_neither_the_package_nor_the_run_time_imports_tvm(tmp_path: Path) -> None:
    kernel, program = load_text((DATA / "examples" / "softmax_last.ekir").read_text())
    assert TvmCompiler().compile(kernel, program, host_target(), tmp_path).artifact
    code = f"""
import sys
import numpy as np
from pathlib import Path
from edgekernelbench.compilers.tvm import TvmCompiler
from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy, aligned_empty
x, y = aligned_copy(np.ones((4, 9), np.float32)), aligned_empty((4, 9), np.dtype(np.float32))
LoadedKernel(Path({str(tmp_path)!r})).bind({{"x": x}}, {{}}, {{"y": y}})()
assert abs(y - 1 / 9).max() < 1e-6
assert "tvm" not in sys.modules and "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_results_are_deterministic(tmp_path: Path) -> None:
    """Two builds of one kernel give one library, and two calls one result, to the bit."""
    x = np.random.default_rng(0).normal(size=4096).astype(np.float32)
    first = elementwise(tmp_path / "a", lambda x: call("tanh", scale_and_shift(x)), {"x": x}, F32)
    second = elementwise(tmp_path / "b", lambda x: call("tanh", scale_and_shift(x)), {"x": x}, F32)
    assert first.tobytes() == second.tobytes()
    text = [(tmp_path / n / "kernel.so").read_bytes() for n in ("a", "b")]
    assert text[0] == text[1]


def test_buffers_beyond_the_reach_of_int32(tmp_path: Path) -> None:
    """Writes the last row of 2 GiB, of which the system maps only what is touched."""
    shape = (65537, 32768)
    y, s = Tensor("y", DType.U8, shape, "output"), Tensor("s", S32, (16,), "output")

    def tile(o: Expr) -> nest.Stmt:
        def lane(i: Expr) -> nest.Stmt:
            at = op("add", op("mul", o, k(16)), i)
            return nest.Store(y, (k(65536), at), cast(at, DType.U8))

        return loop("vectorize", 16, lane)

    back = loop("serial", 16, lambda i: nest.Store(s, (i,), Load(y, (k(65536), i))))
    whole = module(nest.Seq((loop("serial", 4, tile), back)), y, s)
    assert compile_module(whole, program_of(whole), host_target(), tmp_path).artifact
    outputs = {"y": aligned_empty(shape, DType.U8), "s": aligned_empty((16,), S32)}
    LoadedKernel(tmp_path).bind({}, {}, outputs)()
    np.testing.assert_array_equal(outputs["y"][65536, :64], np.arange(64))
    np.testing.assert_array_equal(outputs["s"], np.arange(16))
