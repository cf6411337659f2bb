"""Index algebra: simplification and ranges against brute force, boxes against enumeration."""

from __future__ import annotations

import random
from itertools import product

import pytest

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Const, Expr, Var, VarRef
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.boxes import Span, image, union, within
from edgekernelbench.lowering.emit.lanes import chunks
from edgekernelbench.lowering.expr.linear import int_const, linear, to_expr
from edgekernelbench.lowering.expr.ranges import range_of
from edgekernelbench.lowering.expr.rewrite import free_vars, size, substitute
from edgekernelbench.lowering.expr.simplify import simplify
from edgekernelbench.lowering.passes.total import total
from edgekernelbench.lowering.sketch import show

A, B, C = (Var(name, uid) for uid, name in enumerate("abc"))
RANGES = {A: (0, 5), B: (-3, 4), C: (2, 9)}
POINTS = [
    dict(zip(RANGES, values, strict=True))
    for values in product(*(range(low, high + 1) for low, high in RANGES.values()))
]


def evaluate(expr: Expr, at: dict[Var, int]) -> int:
    match expr:
        case Const(value=value):
            return value
        case VarRef(var=var):
            return at[var]
        case core.Unary(op="neg", arg=arg):
            return -evaluate(arg, at)
        case core.Select(cond=cond, then=then, other=other):
            return evaluate(then if evaluate(cond, at) else other, at)
        case core.Cast(arg=arg):
            return evaluate(arg, at)
        case core.Binary(op=op, left=left, right=right):
            a, b = evaluate(left, at), evaluate(right, at)
            table = {
                "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b,
                "fdiv": lambda: a // b, "mod": lambda: a % b, "min": lambda: min(a, b),
                "max": lambda: max(a, b), "lt": lambda: a < b, "le": lambda: a <= b,
                "gt": lambda: a > b, "ge": lambda: a >= b, "eq": lambda: a == b,
                "ne": lambda: a != b, "and": lambda: bool(a and b), "or": lambda: bool(a or b),
            }  # fmt: skip
            return table[op]()
    raise AssertionError(expr)


def random_index(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.15:
        return rng.choice([VarRef(A), VarRef(B), VarRef(C), int_const(rng.randint(-6, 12))])
    op = rng.choice(["add", "sub", "mul", "fdiv", "mod", "min", "max", "neg", "select", "add"])
    left = random_index(rng, depth - 1)
    if op == "neg":
        return core.Unary("neg", left, DType.S32)
    if op == "select":
        cond = random_test(rng, depth - 1)
        return core.Select(cond, left, random_index(rng, depth - 1), DType.S32)
    if op == "mul":
        return core.Binary("mul", left, int_const(rng.choice([-2, 1, 2, 3, 4, 8])), DType.S32)
    if op in ("fdiv", "mod"):
        return core.Binary(op, left, int_const(rng.choice([1, 2, 3, 4, 8])), DType.S32)
    return core.Binary(op, left, random_index(rng, depth - 1), DType.S32)


def random_test(rng: random.Random, depth: int) -> Expr:
    if depth > 0 and rng.random() < 0.3:
        a, b = random_test(rng, depth - 1), random_test(rng, depth - 1)
        return core.Binary(rng.choice(["and", "or"]), a, b, DType.BOOL)
    op = rng.choice(["lt", "le", "gt", "ge", "eq", "ne"])
    a, b = random_index(rng, max(0, depth)), random_index(rng, max(0, depth - 1))
    return core.Binary(op, a, b, DType.BOOL)


@pytest.mark.parametrize("seed", range(150))
def test_simplify_and_ranges_agree_with_brute_force(seed):
    rng = random.Random(seed)
    expr = random_index(rng, 4)
    simple = simplify(expr, RANGES)
    low, high = range_of(expr, RANGES)
    for point in POINTS:
        value = evaluate(expr, point)
        assert evaluate(simple, point) == value, f"{show(expr)} -> {show(simple)} at {point}"
        assert low <= value <= high, f"{show(expr)} in {low}..{high} at {point}"
    form = linear(expr)
    for point in POINTS[::17]:
        assert evaluate(to_expr(form), point) == evaluate(expr, point)


def ref(*terms: tuple[int, Var], const: int = 0) -> Expr:
    out: Expr = int_const(const)
    for factor, var in terms:
        scaled = core.Binary("mul", VarRef(var), int_const(factor), DType.S32)
        out = core.Binary("add", out, scaled, DType.S32)
    return out


@pytest.mark.parametrize(
    ("expr", "ranges", "text"),
    [
        (core.Binary("fdiv", ref((32, A), (1, B)), int_const(32), DType.S32), {B: (0, 31)}, "a"),
        (core.Binary("mod", ref((32, A), (1, B)), int_const(32), DType.S32), {B: (0, 31)}, "b"),
        (core.Binary("fdiv", ref((8, A), (1, B)), int_const(32), DType.S32), {B: (0, 7)}, "a // 4"),
        (
            core.Binary("mod", ref((8, A), (1, B)), int_const(32), DType.S32),
            {B: (0, 7)},
            "((a % 4) * 8) + b",
        ),
        (core.Binary("max", ref((1, A), const=-1), int_const(0), DType.S32), {A: (1, 9)}, "a - 1"),
    ],
)
def test_tile_arithmetic_becomes_simple(expr, ranges, text):
    assert show(simplify(expr, ranges)) == text


@pytest.mark.parametrize("seed", range(200))
def test_images_cover_exactly_what_is_read_when_affine(seed):
    rng = random.Random(seed)
    box = {A: Span(VarRef(C), rng.randint(1, 4)), B: Span(int_const(rng.randint(0, 3)), 3)}
    expr = random_index(rng, rng.randint(1, 3))
    if C in free_vars(expr):
        expr = substitute(expr, {C: int_const(1)})
    found = image(expr, box, {C: (2, 9)})
    if found is None:
        return
    for c in (2, 5, 9):
        base = evaluate(found.base, {C: c})
        seen = set()
        for a in range(c, c + box[A].extent):
            for b in range(box[B].extent):
                point = {A: a, B: evaluate(box[B].base, {}) + b}
                seen.add(evaluate(expr, point))
        assert base <= min(seen) and max(seen) < base + found.extent, show(expr)
        kinds = {n.op for n in core.walk(expr) if isinstance(n, core.Binary)}
        if kinds <= {"add", "sub"} and size(expr) <= 3 and len(free_vars(expr)) == 2:
            assert (base, base + found.extent - 1) == (min(seen), max(seen))


def test_spans_that_stick_out_are_shifted_inside():
    ranges = {A: (0, 9)}
    span = Span(core.Binary("sub", VarRef(A), int_const(2), DType.S32), 4)
    inside = within(span, 10, ranges)
    assert inside.extent == 4
    for a in range(10):
        base = evaluate(inside.base, {A: a})
        needed = {i for i in range(a - 2, a + 2) if 0 <= i < 10}
        assert base >= 0 and base + 4 <= 10
        assert needed <= set(range(base, base + 4))


def test_unions_cover_both():
    ranges = {A: (0, 9), B: (0, 2)}
    first, second = Span(VarRef(A), 3), Span(ref((1, A), (1, B), const=-1), 2)
    both = union(first, second, ranges)
    assert both is not None
    for a, b in product(range(10), range(3)):
        base = evaluate(both.base, {A: a, B: b})
        for span in (first, second):
            low = evaluate(span.base, {A: a, B: b})
            assert base <= low and low + span.extent <= base + both.extent


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("lanes", [4, 16, 32])
def test_chunks_cover_every_element_once(lanes, whole):
    for extent in range(1, 140):
        covered = [
            chunk.start + k * chunk.width + lane
            for chunk in chunks(extent, lanes, whole)
            for k in range(chunk.count)
            for lane in range(chunk.width)
        ]
        assert covered == list(range(extent))


def test_conditional_reads_are_clamped_and_their_arithmetic_cannot_overflow():
    x = core.Tensor("x", DType.F32, (10,), "input")
    i = core.Tensor("i", DType.U16, (10,), "input")
    data = core.Load(i, (VarRef(A),))
    index = core.Binary("mul", data, data, DType.S32)
    cond = core.Binary("lt", index, int_const(10), DType.BOOL)
    read = core.Select(cond, core.Load(x, (index,)), core.Const(0.0, DType.F32), DType.F32)
    safe = total(read, {A: (0, 9)})
    (inner,) = [n for n in core.walk(safe) if isinstance(n, core.Load) and n.tensor == x]
    assert range_of(inner.indices[0], {A: (0, 9)}) == (0, 9)
    products = [n for n in core.walk(inner) if isinstance(n, core.Binary) and n.op == "mul"]
    assert [p.dtype for p in products] == [DType.U32]


def test_a_conditional_divisor_stays_positive():
    n = core.Tensor("n", DType.S32, (), "input")
    quotient = core.Binary("fdiv", VarRef(A), core.Load(n, ()), DType.S32)
    cond = core.Binary("gt", core.Load(n, ()), int_const(0), DType.BOOL)
    safe = total(core.Select(cond, quotient, int_const(0), DType.S32), {A: (0, 9)})
    (division,) = [e for e in core.walk(safe) if isinstance(e, core.Binary) and e.op == "fdiv"]
    assert range_of(division.right, {})[0] == 1
