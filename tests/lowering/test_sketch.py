"""The printed nest: what has one name is one thing, as far as its indentation reaches."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.sketch import sketch

from .support import load_text, must_lower

X, Y = (core.Tensor(name, DType.S32, (8,), "input") for name in "xy")
ZERO, EIGHT = core.Const(0, DType.S32), core.Const(8, DType.S32)


def var(name: str, uid: int) -> core.Var:
    return core.Var(name, uid)


def loop(index: core.Var, *body: nest.Stmt) -> nest.For:
    return nest.For(index, ZERO, EIGHT, "serial", nest.Seq(body))


def copied(index: core.Var, value: core.Var) -> tuple[nest.Stmt, nest.Stmt]:
    at = (core.VarRef(index),)
    return nest.LetValue(value, core.Load(X, at)), nest.Store(Y, at, core.VarRef(value))


def shown(*body: nest.Stmt) -> list[str]:
    return sketch(nest.Function("main", (X, Y), nest.Seq(body))).splitlines()


def test_loops_side_by_side_keep_their_name() -> None:
    a, b = var("i", 0), var("i", 1)
    lines = shown(loop(a, *copied(a, var("t", 2))), loop(b, *copied(b, var("t", 3))))
    assert lines[:3] == lines[3:] == ["for i in 8:", "  let t = x[i]", "  y[i] = t"]


def test_a_name_of_an_outer_variable_or_of_a_buffer_is_not_taken_again() -> None:
    outer, inner = var("i", 0), var("i", 1)
    lines = shown(loop(outer, loop(inner, *copied(inner, var("x", 2)))))
    assert lines == ["for i in 8:", "  for i~1 in 8:", "    let x~1 = x[i~1]", "    y[i~1] = x~1"]


def test_sequences_do_not_show_and_end_no_scope() -> None:
    i = var("i", 0)
    parts = (nest.Seq(copied(i, var("t", uid))) for uid in (1, 2))
    lines = shown(loop(i, *parts))
    assert lines[1:] == ["  let t = x[i]", "  y[i] = t", "  let t~1 = x[i]", "  y[i] = t~1"]


def test_the_value_of_a_let_sees_the_variable_before_it() -> None:
    i, first, second = var("i", 0), var("t", 1), var("t", 2)
    again = nest.LetValue(second, core.Binary("add", core.VarRef(first), EIGHT, DType.S32))
    lines = shown(loop(i, *copied(i, first), again))
    assert lines[-1] == "  let t~1 = t + 8"


def test_names_of_a_combiner_and_of_an_axis() -> None:
    kernel, program = load_text("""
combiner am((a, i), (b, j)) init (-inf, 2147483647) = {
  let take = b > a or (b == a and j < i)
  return (b if take else a, j if take else i)
}
kernel k[R=40, C=32](x: f32[R, C]) -> (best: f32[C], at: s32[C]) {
  compute { best[j], at[j] = am[i: R](x[i, j], i) }
  schedule for cpu { loops best (j by 32, i, vectorize j) }
}""")
    module = must_lower(kernel, program).module
    assert module is not None
    lets = [line.strip() for line in module.nest.splitlines() if " let " in line]
    names = [line.split()[1] for line in lets]
    assert len(set(names)) == len(names) and "i" not in names
    assert any("(i < i~1)" in line for line in lets)
