"""Integer analysis: intervals hold all values, proofs need their facts, overflow proves nothing."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import NOTHING, Interval, Prover, Ranges
from edgekernelbench.ir.dtypes import DType
from tests.ir.checked_run import Machine, strict_value

FALSE = core.Const(False, DType.BOOL)
S32, S64, U32 = DType.S32, DType.S64, DType.U32
LOW, HIGH = S32.int_range


def const(value: int, dtype: DType = S32) -> core.Const:
    return core.Const(value, dtype)


def op(name: str, a: core.Expr | int, b: core.Expr | int, dtype: DType | None = None) -> core.Expr:
    kind = next((e.dtype for e in (a, b) if not isinstance(e, int)), S32)
    left, right = (const(e, kind) if isinstance(e, int) else e for e in (a, b))
    result = DType.BOOL if name in core.COMPARE_OPS or name in core.BOOL_OPS else kind
    return core.Binary(name, left, right, dtype or result)  # type: ignore[arg-type]


class Setting:
    """Variables i in 0..9, j in 0..5 and two data elements of any value."""

    def __init__(self) -> None:
        self.ranges = Ranges()
        self.uids = itertools.count()
        self.i = self.variable("i", 0, 9)
        self.j = self.variable("j", 0, 5)
        tensor = core.Tensor("a", S32, (10,), "input")
        self.a = core.Load(tensor, (self.i,))
        self.b = core.Load(tensor, (self.j,))
        self.prover = Prover(self.ranges)

    def variable(self, name: str, lo: int, hi: int, dtype: DType = S32) -> core.VarRef:
        var = core.Var(name, next(self.uids), dtype)
        self.ranges.bind(var, lo, hi)
        return core.VarRef(var)


# ---------------------------------------------------------------- intervals
def test_intervals_of_operators() -> None:
    s = Setting()
    i, j = s.i, s.j
    table: list[tuple[core.Expr, int, int]] = [
        (op("add", i, j), 0, 14),
        (op("sub", i, j), -5, 9),
        (op("mul", op("sub", i, 4), j), -20, 25),
        (op("fdiv", op("sub", i, 4), 3), -2, 1),
        (op("mod", op("sub", i, 4), 3), 0, 2),
        (op("mod", j, 8), 0, 5),
        (op("min", i, 3), 0, 3),
        (op("max", i, 3), 3, 9),
        (op("shl", j, 2), 0, 20),
        (op("shr", i, 1), 0, 4),
        (op("bitand", s.a, 7), 0, 7),
        (op("bitor", i, 4), 4, 15),
        (core.Unary("neg", i, S32), -9, 0),
        (core.Unary("inv", i, S32), -10, -1),
        (core.Call("abs", (op("sub", i, 4),), S32), 0, 5),
        (core.Cast(op("lt", i, 3), S32), 0, 1),
        (core.Cast(i, S64), 0, 9),
        (core.Cast(core.Cast(i, DType.F32), S32), 0, 9),
        (core.Select(op("lt", s.a, 0), i, j, S32), 0, 9),
    ]
    for expr, lo, hi in table:
        found = s.ranges.of(expr)
        assert found.safe and lo >= found.lo and hi <= found.hi
        assert found.within(lo - 1, hi + 1), (expr, found)


def test_overflow_makes_unsafe_and_stays_so() -> None:
    s = Setting()
    for unsafe in (
        op("add", s.a, 1),
        op("mul", s.a, s.a),
        op("sub", 0, s.a),
        core.Unary("neg", s.a, S32),
        core.Call("abs", (s.a,), S32),
        op("shl", s.a, 1),
    ):
        assert not s.ranges.of(unsafe).safe
        for around in (
            op("min", op("max", unsafe, 0), 7),
            op("bitand", unsafe, 7),
            op("mod", unsafe, 8),
            core.Cast(unsafe, S64),
        ):
            assert not s.ranges.of(around).within(LOW, HIGH)
            assert not s.prover.in_range(around, 0, 7)
    assert s.ranges.of(op("add", core.Cast(s.a, S64), const(1, S64))).safe


def test_unsigned_arithmetic_wraps_and_is_safe() -> None:
    s = Setting()
    u = s.variable("u", *U32.int_range, U32)
    expr = op("mul", op("add", u, 5), 2654435761)
    assert s.ranges.of(expr) == Interval(*U32.int_range)
    assert s.prover.in_range(op("shr", expr, 29), 0, 7)
    assert not s.prover.in_range(op("sub", u, 1), 0, 9, s.prover.assume(NOTHING, op("lt", u, 11)))
    known = s.prover.assume(NOTHING, op("and", op("lt", u, 11), op("gt", u, 0)))
    assert s.prover.in_range(op("sub", u, 1), 0, 9, known)


def test_floats_that_index() -> None:
    s = Setting()
    y = core.Binary("mul", core.Cast(s.i, DType.F32), core.Const(0.5, DType.F32), DType.F32)
    index = core.Cast(core.Call("floor", (y,), DType.F32), S32)
    assert s.ranges.of(index).within(-1, 5)
    data = core.Load(core.Tensor("f", DType.F32, (10,), "input"), (s.i,))
    assert s.ranges.of(core.Cast(data, S32)) == Interval(LOW, HIGH)


# ---------------------------------------------------------------- proofs
def proof(s: Setting, index: core.Expr, lo: int, hi: int, *conditions: core.Expr) -> bool:
    facts = NOTHING
    for condition in conditions:
        facts = s.prover.assume(facts, condition)
    return s.prover.in_range(index, lo, hi, facts)


def test_facts_are_needed_and_enough() -> None:
    s = Setting()
    i, j, a, b = s.i, s.j, s.a, s.b
    a_in = (op("ge", a, 0), op("lt", a, 8))
    table: list[tuple[core.Expr, tuple[core.Expr, ...], int, int]] = [
        (op("sub", i, 1), (op("gt", i, 0),), 0, 8),
        (op("sub", i, 1), (op("ne", i, 0),), 0, 8),
        (op("sub", i, j), (op("le", j, i),), 0, 9),
        (op("add", i, j), (op("lt", op("add", i, j), 10),), 0, 9),
        (a, a_in, 0, 7),
        (op("sub", a, 1), (op("gt", a, 0), op("le", a, 8)), 0, 7),
        (op("add", a, b), (*a_in, op("ge", b, 0), op("lt", b, op("sub", 8, a))), 0, 7),
        (op("fdiv", op("sub", i, 4), 2), (op("ge", i, 4),), 0, 2),
        (op("sub", op("fdiv", i, 3), 2), (op("ge", i, 6),), 0, 1),
        (op("sub", op("mul", op("fdiv", i, 3), 3), i), (op("gt", i, 100),), 0, 0),
        (op("min", a, op("sub", 4, j)), (op("ge", a, 0), op("lt", j, 5)), 0, 7),
        (op("mod", a, op("add", i, 1)), (op("lt", i, 7),), 0, 7),
        (core.Select(op("lt", a, 0), i, a, S32), (op("lt", a, 10),), 0, 9),
        (core.Call("abs", (op("sub", i, j),), S32), (op("le", i, 7),), 0, 7),
        (core.Cast(op("sub", core.Cast(a, S64), const(1, S64)), S32), (op("eq", a, 3),), 0, 7),
        (
            i,
            (core.Unary("not", op("or", op("gt", i, 7), op("eq", i, 0)), DType.BOOL),),
            1,
            7,
        ),
        (i, (op("or", op("eq", i, 3), op("eq", i, 5)),), 3, 5),
        (i, (core.Select(op("gt", a, 0), op("lt", i, 3), FALSE, DType.BOOL),), 0, 2),
        (op("shl", const(1), op("sub", j, 1)), (op("gt", j, 0),), 1, 16),
    ]  # fmt: skip
    for index, conditions, lo, hi in table:
        assert proof(s, index, lo, hi, *conditions), index
        assert not proof(s, index, lo, hi, *conditions[:-1]), index


def test_intervals_under_facts() -> None:
    s = Setting()
    facts = s.prover.assume(NOTHING, op("and", op("ge", s.i, 4), op("lt", s.a, 3)))
    assert s.prover.interval(op("fdiv", s.i, 2), facts) == Interval(2, 4)
    assert s.prover.interval(op("sub", s.i, 4), facts) == Interval(0, 5)
    assert s.prover.interval(op("add", s.a, 1), facts) == Interval(LOW + 1, 3)
    assert not s.prover.interval(op("add", s.a, 1)).safe


def test_conditions_that_may_overflow_say_nothing() -> None:
    s = Setting()
    moved = op("add", s.a, 5)
    facts = s.prover.assume(NOTHING, op("and", op("ge", moved, 0), op("lt", moved, 8)))
    assert facts.forms == () and len(facts.unusable) == 2
    assert not s.prover.in_range(moved, 0, 7, facts)


def test_quotient_and_remainder_belong_together() -> None:
    s = Setting()
    flat = op("add", op("mul", s.i, 6), s.j)
    assert proof(s, op("fdiv", flat, 6), 0, 9)
    back = op("add", op("mul", op("fdiv", flat, 7), 7), op("mod", flat, 7))
    assert proof(s, op("sub", back, flat), 0, 0)


def test_equal_expressions_are_one_value() -> None:
    s = Setting()
    again = core.Load(s.a.tensor, (core.VarRef(s.i.var),))
    assert proof(s, again, 0, 7, op("ge", s.a, 0), op("lt", s.a, 8))
    other = core.Load(s.a.tensor, (op("sub", 9, s.i),))
    assert not proof(s, other, 0, 7, op("ge", s.a, 0), op("lt", s.a, 8))


def test_lets_stand_for_their_values() -> None:
    s = Setting()
    var = core.Var("t", 77, S32)
    s.ranges.bind_let(var, op("sub", s.i, s.j))
    assert proof(s, core.VarRef(var), 0, 9, op("ge", s.i, s.j))
    assert not proof(s, core.VarRef(var), 0, 9)


def test_impossible_branches_prove_anything() -> None:
    s = Setting()
    assert proof(s, s.a, 0, 0, op("gt", s.i, 9))
    assert proof(s, s.a, 0, 0, op("lt", s.i, s.j), op("lt", s.j, 0))


def test_the_work_is_bounded() -> None:
    s = Setting()
    tensor = core.Tensor("c", S32, (64,), "input")
    data = [core.Load(tensor, (const(n),)) for n in range(40)]
    facts = NOTHING
    for first, second in itertools.pairwise(data):
        facts = s.prover.assume(facts, op("or", op("lt", first, second), op("gt", first, 3)))
    before = s.prover.steps_left
    assert not s.prover.in_range(data[0], 0, 5, facts)
    assert before - s.prover.steps_left < 1000
    s.prover.steps_left = 0
    assert not proof(s, op("sub", s.i, s.j), 0, 9, op("le", s.j, s.i))


# ---------------------------------------------------------------- brute force
def trees(leaves: list[core.Expr]) -> st.SearchStrategy[core.Expr]:
    names = ("add", "sub", "mul", "min", "max", "bitand", "bitor", "bitxor", "shl", "shr")

    def deeper(inner: st.SearchStrategy[core.Expr]) -> st.SearchStrategy[core.Expr]:
        plain = st.tuples(st.sampled_from(names), inner, inner).map(lambda t: op(*t))
        divided = st.tuples(st.sampled_from(("fdiv", "mod")), inner, st.integers(1, 7)).map(
            lambda t: op(*t)
        )
        chosen = st.tuples(st.sampled_from(("lt", "eq", "ge")), inner, inner, inner, inner).map(
            lambda t: core.Select(op(t[0], t[1], t[2]), t[3], t[4], S32)
        )
        unary = inner.map(lambda e: core.Call("abs", (e,), S32))
        return st.one_of(plain, plain, divided, chosen, unary)

    numbers = st.integers(-9, 9).map(const)
    return st.recursive(st.one_of(st.sampled_from(leaves), numbers), deeper, max_leaves=6)


SETTING = Setting()
VALUES = (LOW, LOW + 1, -9, -1, 0, 1, 2, 3, 7, 8, 1 << 20, HIGH)


def points():
    """Machines with all values of i and j and a choice of data."""
    for i, j in itertools.product((0, 1, 4, 9), (0, 1, 5)):
        for a in VALUES:
            machine = Machine()
            machine.variables = {SETTING.i.var.uid: i, SETTING.j.var.uid: j}
            machine.memory = {"a": {(n,): (a if n == i else -a % 11) for n in range(10)}}
            yield machine


@settings(max_examples=100, deadline=None, derandomize=True)
@given(trees([SETTING.i, SETTING.j, SETTING.a]))
def test_safe_intervals_hold_every_value(expr: core.Expr) -> None:
    known = SETTING.ranges.of(expr)
    if known.safe:
        for machine in points():
            value = strict_value(machine, expr)
            assert value is not None, "overflow although safe"
            assert known.lo <= value <= known.hi


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    trees([SETTING.i, SETTING.j, SETTING.a]),
    trees([SETTING.i, SETTING.a]),
    st.sampled_from(("lt", "le", "ge", "gt", "eq", "ne")),
    trees([SETTING.i, SETTING.j, SETTING.b]),
)
def test_proofs_hold_wherever_their_facts_do(
    index: core.Expr, left: core.Expr, sign: str, right: core.Expr
) -> None:
    prover = Prover(SETTING.ranges)
    cond = op("and", op(sign, left, right), op("ge", SETTING.a, -1))
    facts = prover.assume(NOTHING, cond)
    for lo, hi in ((0, 9), (-1, 20), (LOW, HIGH)):
        if prover.in_range(index, lo, hi, facts):
            for machine in points():
                exact = [strict_value(machine, e) for e in (left, right)]
                if None not in exact and machine.value(cond):
                    value = strict_value(machine, index)
                    assert value is not None and lo <= value <= hi
