"""The printed source: every kind of statement, names, and what is written how."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.compilers.c.functions import _words, closure, library
from edgekernelbench.compilers.c.names import Names, reserved
from edgekernelbench.compilers.c.source import source
from edgekernelbench.ir.core import Expr, Load, Select, Tensor, VarRef
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.options import Options
from tests.compilers.nests import call, cast, k, loop, module, op, run, var

F32, F16, S32, U8, BOOL = DType.F32, DType.F16, DType.S32, DType.U8, DType.BOOL
X = Tensor("x", F32, (16,), "input")
Y = Tensor("y", F32, (16,), "output")
VALUES = np.arange(-8, 8, dtype=np.float32)


def printed(body: nest.Stmt, *params: Tensor, options: Options | None = None) -> str:
    """The main function of the source, and the parallel bodies in front of it."""
    made = module(body, *params)
    made = nest.Module(made.main, None, (), 0, "", options or Options())
    text = source(made, "f")
    return text[re.search(r"^(struct|static int) kernel", text, re.MULTILINE).start() :]  # type: ignore[union-attr]


def copy(kind: nest.LoopKind = "serial") -> nest.For:
    return loop(kind, 16, lambda i: nest.Store(Y, (i,), Load(X, (i,))))


def test_a_loop_of_each_kind_says_what_it_is() -> None:
    text = {kind: printed(copy(kind), X, Y) for kind in ("serial", "vectorize", "unroll")}
    head = "for (int32_t i = 0; i < 16; ++i) {\n"
    assert f"  int failed = 0;\n  {head}" in text["serial"]
    assert f"  SIMD\n  {head}" in text["vectorize"]
    assert f"  UNROLL(16)\n  {head}" in text["unroll"]
    assert all("y[i] = x[i];" in each for each in text.values())


@pytest.mark.parametrize("order", ["block", "cyclic"])
def test_parallel_loops_share_out_their_iterations(tmp_path: Path, order: str) -> None:
    scale = var("scale", F32)
    body = nest.Seq((
        nest.LetValue(scale, k(2.0, F32)),
        loop("parallel", 16, lambda i: nest.Store(
            Y, (i,), op("mul", Load(X, (i,)), VarRef(scale)))),
    ))  # fmt: skip
    options = Options(parallel_order=order)  # type: ignore[arg-type]
    text = printed(body, X, Y, options=options)
    assert "struct kernel_1 data = {y, x, scale};" in text or "{x, scale, y}" in text
    assert "__TVMBackendParallelLaunch(kernel_1, &data, 0);" in text
    assert ("i += tasks" in text) == (order == "cyclic")
    made = nest.Module(module(body, X, Y).main, None, (), 0, "", options)
    np.testing.assert_array_equal(run(tmp_path, made, {"x": VALUES})["y"], VALUES * 2)


def test_unrolled_loops_with_loops_in_them_are_written_out(tmp_path: Path) -> None:
    y = Tensor("y", F32, (2, 8), "output")
    x = Tensor("x", F32, (2, 8), "input")
    body = loop("unroll", 2, lambda i: loop("serial", 8, lambda j: nest.Store(
        y, (i, j), Load(x, (i, j)))))  # fmt: skip
    text = printed(body, x, y)
    assert "UNROLL" not in text
    assert "y[i_2] = " not in text and text.count("++i") == 2
    assert "y[i] = x[i];" in text and "y[i + 8] = x[i + 8];" in text
    got = run(tmp_path, module(body, x, y), {"x": VALUES.reshape(2, 8)})
    np.testing.assert_array_equal(got["y"].ravel(), VALUES)


def test_branches(tmp_path: Path) -> None:
    def body(i: VarRef) -> nest.Stmt:
        def store(value: float) -> nest.Stmt:
            return nest.Store(Y, (i,), k(value, F32))

        return nest.If(op("lt", i, k(3)), store(1.0), store(2.0))

    made = loop("serial", 16, body)  # type: ignore[arg-type]
    text = printed(made, X, Y)
    assert "if (i < 3) {\n      y[i] = 1.0f;\n    } else {\n      y[i] = 2.0f;\n    }" in text
    got = run(tmp_path, module(made, X, Y), {"x": VALUES})["y"]
    np.testing.assert_array_equal(got, np.where(np.arange(16) < 3, 1, 2))


@pytest.mark.parametrize(("scope", "size"), [("local", 16), ("local", 1 << 15), ("global", 16)])
def test_buffers_on_the_stack_and_in_the_workspace(
    tmp_path: Path, scope: nest.Scope, size: int
) -> None:
    t = Tensor("t", F32, (size,), "stage")
    body = nest.Seq((
        nest.Alloc(t, scope),
        loop("serial", 16, lambda i: nest.Store(t, (i,), op("mul", Load(X, (i,)), k(3.0, F32)))),
        loop("serial", 16, lambda i: nest.Store(Y, (i,), Load(t, (i,)))),
    ))  # fmt: skip
    text = printed(body, X, Y)
    on_stack = scope == "local" and size == 16
    room = (
        f"float t_room[{size}] __attribute__((aligned(64)));\n  float *restrict t = hidden(t_room);"
    )
    assert (room in text) == on_stack
    assert text.count("__TVMBackendFreeWorkspace(1, 0, t);") == (not on_stack)
    got = run(tmp_path, module(body, X, Y), {"x": VALUES})["y"]
    np.testing.assert_array_equal(got, VALUES * 3)


def test_a_prefetch_and_a_reading_of_the_clock(tmp_path: Path) -> None:
    clock = Tensor("clock", DType.S64, (2,), "output")
    body = nest.Seq((nest.Stamp(clock, 0), nest.Prefetch(X, (k(0),)), copy(), nest.Stamp(clock, 1)))
    assert "__builtin_prefetch(&x[0], 0, 3);" in printed(body, X, Y, clock)
    got = run(tmp_path, module(body, X, Y, clock), {"x": VALUES})
    first, second = got["clock"]
    assert 0 < first <= second
    np.testing.assert_array_equal(got["y"], VALUES)


@pytest.mark.parametrize("statement", [
    nest.Barrier(), nest.Atomic(Tensor("n", S32, (1,), "output"), (k(0),), "sum", k(1)),
])  # fmt: skip
def test_statements_of_gpus_are_refused(statement: nest.Stmt) -> None:
    with pytest.raises(NotImplementedError, match="a CPU has no"):
        source(module(statement, Tensor("n", S32, (1,), "output")), "f")


def test_nests_are_told_by_comments() -> None:
    body = nest.Seq((nest.Part((copy(),), ("y", "z")),))
    assert "  /* y, z */\n  for" in printed(body, X, Y)


# ---------------------------------------------------------------- expressions
def one(value: object, *params: Tensor) -> str:
    """The text of what is stored."""
    text = printed(nest.Store(Y, (k(0),), value), *(params or (X,)), Y)  # type: ignore[arg-type]
    return re.search(r"y\[0\] = (.*);", text)[1]  # type: ignore[index]


LOAD = Load(X, (k(3),))


def test_indices_are_sums_of_products() -> None:
    x = Tensor("x", F32, (4, 8, 2), "input")
    i = var("i")
    body = nest.For(i, k(0), k(4), "serial", nest.Store(
        Y, (k(0),), Load(x, (VarRef(i), k(3), op("sub", VarRef(i), k(1))))))  # fmt: skip
    assert "y[0] = x[i * 16 + (i - 1) + 6];" in printed(body, x, Y)


def test_a_large_tensor_has_wide_indices() -> None:
    x = Tensor("x", F32, (1 << 16, 1 << 16), "input")
    i = var("i")
    body = nest.For(i, k(0), k(4), "serial", nest.Store(
        Y, (k(0),), Load(x, (VarRef(i), VarRef(i)))))  # fmt: skip
    assert "x[(int64_t)i * 65536 + (int64_t)i]" in printed(body, x, Y)


def test_products_are_contracted_here_and_fenced_here() -> None:
    product = op("mul", LOAD, k(2.0, F32))
    assert one(op("add", product, k(1.0, F32))) == "mad_f32(x[3], 2.0f, 1.0f)"
    assert one(op("sub", k(1.0, F32), product)) == "mad_f32(-x[3], 2.0f, 1.0f)"
    assert one(op("sub", product, k(1.0, F32))) == "mad_f32(x[3], 2.0f, -1.0f)"
    assert one(op("add", call("nofma", product), k(1.0, F32))) == "(x[3] * 2.0f) + 1.0f"
    whole = cast(cast(op("add", product, k(1.0, F32)), S32), F32)
    assert one(whole) == "(float)s32_of_f32(x[3] * 2.0f + 1.0f)"


def test_parentheses_stand_where_they_are_needed() -> None:
    a, c, b = LOAD, Load(X, (k(4),)), k(-2.0, F32)
    assert one(op("sub", a, op("sub", c, b))) == "x[3] - (x[4] - -2.0f)"
    assert one(op("div", a, op("div", c, b))) == "x[3] / (x[4] / -2.0f)"
    assert one(op("mul", op("add", a, b), b)) == "(x[3] + -2.0f) * -2.0f"
    chosen = Select(op("lt", a, b), c, b, F32)
    assert one(op("add", chosen, b)) == "((x[3] < -2.0f) ? x[4] : -2.0f) + -2.0f"


def test_values_that_are_used_twice_are_named() -> None:
    twice = op("add", LOAD, k(1.0, F32))
    text = printed(nest.Store(Y, (k(0),), op("mul", twice, twice)), X, Y)
    assert "const float t = x[3] + 1.0f;\n  y[0] = t * t;" in text


def test_integers_wrap_but_indices_are_plain() -> None:
    n = Tensor("n", S32, (16,), "input")
    value = Load(n, (k(0),))
    assert one(cast(op("add", value, value), F32), n) == "(float)add_s32(t, t)"
    assert one(Load(X, (op("add", value, k(1)),)), n, X) == "x[n[0] + 1]"
    i = op("fdiv", value, k(4))
    assert one(cast(i, F32), n) == "(float)(n[0] >> 2)"
    assert one(cast(op("mod", value, k(3)), F32), n) == "(float)mod_s32(n[0], 3)"
    small = Tensor("u", U8, (16,), "input")
    assert one(cast(op("mod", Load(small, (k(0),)), k(3)), F32), small) == "(float)(u[0] % 3)"


def test_lanes_evaluate_both_branches() -> None:
    def body(i: VarRef) -> nest.Stmt:
        chosen = Select(op("lt", i, k(3)), Load(X, (i,)), k(0.0, F32), F32)
        return nest.Store(Y, (i,), op("add", chosen, k(1.0, F32)))

    vector = printed(loop("vectorize", 16, body), X, Y)  # type: ignore[arg-type]
    assert "const float t = x[i];" in vector and "? t : 0.0f" in vector
    serial = printed(loop("serial", 16, body), X, Y)  # type: ignore[arg-type]
    assert "(i < 3) ? x[i] : 0.0f" in serial


def test_halves_and_bools_are_stored_as_bits() -> None:
    h, b = Tensor("h", F16, (4,), "input"), Tensor("b", BOOL, (4,), "input")
    out = Tensor("o", F16, (4,), "output")
    text = printed(nest.Seq((
        nest.Store(out, (k(0),), Load(h, (k(1),))),
        nest.Store(out, (k(1),), op("mul", Load(h, (k(1),)), k(2.0, F32))),
        nest.Store(out, (k(2),), Select(Load(b, (k(0),)), k(1.0, F32), k(0.0, F32), F32)),
    )), h, b, out)  # fmt: skip
    assert "o[0] = h[1];" in text
    assert "o[1] = f16_of_f32(f32_of_f16(h[1]) * 2.0f);" in text
    assert "o[2] = f16_of_f32((b[0] != 0) ? 1.0f : 0.0f);" in text


def half_loop(body: Callable[[Expr], nest.Stmt], lanes: int = 16) -> nest.For:
    return loop("vectorize", lanes, body)


def test_neighbouring_halves_are_converted_as_vectors(tmp_path: Path) -> None:
    h, o = Tensor("h", F16, (2, 20), "input"), Tensor("o", F16, (40,), "output")

    def body(i: Expr) -> nest.Stmt:
        value = op("mul", Load(h, (k(1), i)), k(1.5, F32))
        return nest.Store(o, (op("add", i, k(3)),), cast(value, F16))

    made = half_loop(body, 20)
    text = printed(made, h, o)
    assert "load_halves(h_lanes, &h[20], 20);" in text
    assert "o_lanes[i] = h_lanes[i] * 1.5f;" in text
    assert "store_halves(&o[3], o_lanes, 20);" in text
    values = np.linspace(-60000, 60000, 40).astype(np.float16).reshape(2, 20)
    got = run(tmp_path, module(made, h, o), {"h": values})["o"]
    with np.errstate(over="ignore"):
        want = (values[1].astype(np.float32) * 1.5).astype(np.float16)
    np.testing.assert_array_equal(got[3:23], want)


def test_halves_that_do_not_follow_one_another_are_converted_one_by_one() -> None:
    h = Tensor("h", F16, (16, 2), "input")
    text = printed(half_loop(lambda i: nest.Store(Y, (i,), Load(h, (i, k(0))))), h, Y)
    assert "load_halves" not in text and "y[i] = f32_of_f16(h[i * 2]);" in text


def test_halves_that_a_loop_writes_and_reads_elsewhere_stay_where_they_are() -> None:
    h, o = Tensor("h", F16, (16,), "output"), Tensor("o", F16, (16,), "output")

    def body(i: Expr) -> nest.Stmt:
        first = nest.Store(h, (i,), op("mul", Load(X, (i,)), k(2.0, F32)))
        return nest.Seq((first, nest.Store(o, (i,), op("add", Load(h, (i,)), k(1.0, F32)))))

    text = printed(half_loop(body), X, h, o)
    assert "h[i] = f16_of_f32(x[i] * 2.0f);" in text and "load_halves" not in text
    assert "o_lanes[i] = f32_of_f16(h[i]) + 1.0f;" in text


def test_an_accumulator_of_halves_reads_its_own_lane(tmp_path: Path) -> None:
    o = Tensor("o", F16, (16,), "output")

    def step(_: Expr) -> nest.Stmt:
        return half_loop(lambda i: nest.Store(
            o, (i,), cast(op("add", Load(o, (i,)), Load(X, (i,))), F16)))  # fmt: skip

    start = half_loop(lambda i: nest.Store(o, (i,), k(0.0, F16)))
    made = nest.Seq((start, loop("serial", 3, step)))
    assert "load_halves(o_lanes, &o[0], 16);" in printed(made, X, o)
    got = run(tmp_path, module(made, X, o), {"x": VALUES})["o"]
    np.testing.assert_array_equal(got, (VALUES * 3).astype(np.float16))


@pytest.mark.parametrize(("value", "dtype", "text"), [
    (float("inf"), F32, "__builtin_inff()"), (float("-inf"), F32, "-__builtin_inff()"),
    (float("nan"), F32, '__builtin_nanf("")'), (1e40, F32, "__builtin_inff()"),
    (0.1, F32, "0.1f"), (3.0, F32, "3.0f"), (1e-20, F32, "1e-20f"), (-0.0, F32, "-0.0f"),
])  # fmt: skip
def test_literals(value: float, dtype: DType, text: str) -> None:
    assert one(k(value, dtype)) == text


# ---------------------------------------------------------------- names
@pytest.mark.parametrize("name", ["int", "restrict", "scaled", "exp_f32", "__x", "uint8_t", "linux",
                                  "INT32_MAX", "at", "tasks_1"])  # fmt: skip
def test_names_with_a_meaning_in_c_are_not_taken(tmp_path: Path, name: str) -> None:
    x = Tensor(name, F32, (16,), "input")
    body = loop("vectorize", 16, lambda i: nest.Store(Y, (i,), call("exp", Load(x, (i,)))))
    got = run(tmp_path, module(body, x, Y), {name: VALUES})["y"]
    np.testing.assert_allclose(got, np.exp(VALUES), rtol=1e-6)


@pytest.mark.parametrize("name", ["tasks", "share", "begin", "end", "all", "data", "failed", "at",
                                  "failure", "kernel", "kernel_1", "group"])  # fmt: skip
def test_names_of_the_frame_are_not_taken(tmp_path: Path, name: str) -> None:
    x, t = Tensor(name, F32, (16,), "input"), Tensor("t", F32, (1 << 15,), "stage")
    body = nest.Seq((
        nest.Alloc(t, "global"),
        loop("parallel", 16, lambda i: nest.Store(t, (i,), Load(x, (i,)))),
        loop("parallel", 16, lambda i: nest.Store(Y, (i,), Load(t, (i,)))),
    ))  # fmt: skip
    got = run(tmp_path, module(body, x, Y), {name: VALUES})["y"]
    np.testing.assert_array_equal(got, VALUES)


def test_names_are_free_again_behind_their_block() -> None:
    names = Names()
    assert names.new("a.b") == "a_b"
    with names.block():
        assert names.new("a.b") == "a_b_2"
    assert names.new("a.b") == "a_b_2"
    assert reserved("while") and not reserved("acc")


def test_a_source_takes_the_functions_that_it_needs_and_no_others() -> None:
    texts = closure(["exp_f32"])
    heads = [re.search(r"(\w+)\(", text[text.index("INLINE") :])[1] for text in texts]  # type: ignore[index]
    assert heads[-1] == "exp_f32" and "erf_f32" not in heads
    defined: set[str] = set()
    for text, name in zip(texts, heads, strict=True):
        used = set(_words(text)) & set(library())
        assert used - {name} <= defined, f"{name} stands in front of what it calls"
        defined.add(name)


def test_a_loop_that_is_written_out_around_a_parallel_one(tmp_path: Path) -> None:
    y = Tensor("y", F32, (2, 8), "output")
    x = Tensor("x", F32, (2, 8), "input")
    body = loop("unroll", 2, lambda i: loop("parallel", 8, lambda j: nest.Store(
        y, (i, j), Load(x, (i, j)))))  # fmt: skip
    assert "y[j + 8] = x[j + 8]" in printed(body, x, y).replace("i_2", "j").replace("[i", "[j")
    got = run(tmp_path, module(body, x, y), {"x": VALUES.reshape(2, 8)})
    np.testing.assert_array_equal(got["y"].ravel(), VALUES)


def test_a_vectorised_loop_may_begin_anywhere(tmp_path: Path) -> None:
    i = var("i")
    body = nest.Seq((
        loop("vectorize", 16, lambda j: nest.Store(Y, (j,), k(0.0, F32))),
        nest.For(i, k(4), k(8), "vectorize", nest.Store(Y, (VarRef(i),), Load(X, (VarRef(i),)))),
    ))  # fmt: skip
    assert "  SIMD\n  for (int32_t i = 4; i < 4 + 8; ++i) {" in printed(body, X, Y)
    want = np.where((np.arange(16) >= 4) & (np.arange(16) < 12), VALUES, 0)
    np.testing.assert_array_equal(run(tmp_path, module(body, X, Y), {"x": VALUES})["y"], want)
