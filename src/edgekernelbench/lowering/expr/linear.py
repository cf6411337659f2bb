"""Integer index expressions as ``const + sum(coefficient * atom)``.

Atoms are expressions that are not sums themselves: variables, and ``//``, ``%``, ``min``, ``max``,
loads and so on. Two forms are equal exactly when their terms and constants are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Var
from edgekernelbench.ir.dtypes import DType

Ranges = Mapping[Var, tuple[int, int]]
"""Lowest and highest value (inclusive) of integer variables."""

Range = tuple[int, int]

_INDEX_DTYPES = (DType.S32, DType.S64)


@dataclass(frozen=True, slots=True)
class Linear:
    """``const + sum(coefficient * atom)``; coefficients are not 0, atoms are distinct."""

    terms: Mapping[Expr, int] = field(default_factory=dict)
    const: int = 0

    def __hash__(self) -> int:
        return hash((frozenset(self.terms.items()), self.const))

    def plus(self, other: Linear, sign: int = 1) -> Linear:
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            total = terms.get(atom, 0) + sign * coefficient
            if total:
                terms[atom] = total
            else:
                terms.pop(atom, None)
        return Linear(terms, self.const + sign * other.const)

    def minus(self, other: Linear) -> Linear:
        return self.plus(other, -1)

    def times(self, factor: int) -> Linear:
        if factor == 0:
            return Linear()
        return Linear({a: c * factor for a, c in self.terms.items()}, self.const * factor)

    def shifted(self, offset: int) -> Linear:
        return Linear(self.terms, self.const + offset)

    @property
    def is_const(self) -> bool:
        return not self.terms


def is_index(expr: Expr) -> bool:
    """Whether the dtype is one whose sums may be rearranged (no wrap-around by definition)."""
    return expr.dtype in _INDEX_DTYPES


def linear(expr: Expr) -> Linear:
    """The linear form of an s32 or s64 expression; what is not a sum becomes an atom."""
    match expr:
        case core.Const(value=value):
            return Linear({}, int(value))
        case core.Unary(op="neg", arg=arg) if is_index(expr):
            return linear(arg).times(-1)
        case core.Binary(op="add" | "sub" as op, left=left, right=right) if is_index(expr):
            return linear(left).plus(linear(right), 1 if op == "add" else -1)
        case core.Binary(op="mul", left=left, right=right) if is_index(expr):
            a, b = linear(left), linear(right)
            if a.is_const:
                return b.times(a.const)
            if b.is_const:
                return a.times(b.const)
    return Linear({expr: 1}, 0)


def to_expr(form: Linear, dtype: DType = DType.S32) -> Expr:
    """An expression of the form, larger coefficients first, negative terms last."""
    out: Expr | None = None
    items = sorted(form.terms.items(), key=lambda item: (item[1] < 0, -abs(item[1])))
    for atom, coefficient in items:
        if out is None and coefficient < 0:
            out, form = core.Const(form.const, dtype), Linear(form.terms, 0)
        size = abs(coefficient)
        term = atom if size == 1 else core.Binary("mul", atom, core.Const(size, dtype), dtype)
        if out is None:
            out = term
        else:
            out = core.Binary("add" if coefficient > 0 else "sub", out, term, dtype)
    if out is None:
        return core.Const(form.const, dtype)
    if form.const:
        op = "add" if form.const > 0 else "sub"
        out = core.Binary(op, out, core.Const(abs(form.const), dtype), dtype)
    return out


def is_pure(expr: Expr) -> bool:
    """No data inside: loop variables, constants and integer arithmetic only."""
    return all(
        isinstance(node, core.Const | core.VarRef | core.Unary | core.Binary)
        and not node.dtype.is_float
        for node in core.walk(expr)
    )


def int_const(value: int, dtype: DType = DType.S32) -> core.Const:
    return core.Const(value, dtype)


def shifted(index: Expr, by: int) -> Expr:
    """``index + by``, in s64 where s32 cannot hold ``by``."""
    if by == 0:
        return index
    low, high = index.dtype.int_range
    if not low < by <= high:
        index = core.Cast(index, DType.S64)
    op = "add" if by > 0 else "sub"
    return core.Binary(op, index, int_const(abs(by), index.dtype), index.dtype)


def const_value(expr: Expr) -> int | None:
    """The value of an integer constant, None for anything else."""
    if isinstance(expr, core.Const) and not expr.dtype.is_float:
        return int(expr.value)
    return None


def divisible(expr: Expr, n: int) -> bool:
    """Whether an index is known to be a multiple of ``n``."""
    form = linear(expr)
    if form.const % n:
        return False
    return all(factor % n == 0 or _multiple(atom, n) for atom, factor in form.terms.items())


def _multiple(atom: Expr, n: int) -> bool:
    if isinstance(atom, core.Binary) and atom.op in ("min", "max"):
        return divisible(atom.left, n) and divisible(atom.right, n)
    return False
