"""Index expressions that are a constant plus multiples of variables."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType

_SIGNED = frozenset((DType.S8, DType.S16, DType.S32, DType.S64))


@dataclass(frozen=True, slots=True)
class Affine:
    """``const + sum(coefficient * variable)``; variables are named by uid."""

    const: int
    terms: tuple[tuple[int, int], ...] = ()

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        total = dict(self.terms)
        for uid, coefficient in other.terms:
            total[uid] = total.get(uid, 0) + sign * coefficient
        kept = tuple((uid, c) for uid, c in total.items() if c)
        return Affine(self.const + sign * other.const, kept)

    def times(self, factor: int) -> Affine:
        if factor == 0:
            return Affine(0)
        return Affine(self.const * factor, tuple((u, c * factor) for u, c in self.terms))


def affine(
    expr: core.Expr, variables: Container[int], lets: Mapping[int, Affine | None]
) -> Affine | None:
    """The affine form of an integer expression, None when it has none.

    Args:
        variables: uids of axes and loop indices.
        lets: affine forms of lets in scope, by uid.
    """
    if expr.dtype not in _SIGNED:  # unsigned index arithmetic wraps
        return None
    match expr:
        case core.Const():
            return Affine(int(expr.value))
        case core.VarRef(var=var):
            return Affine(0, ((var.uid, 1),)) if var.uid in variables else lets.get(var.uid)
        case core.Cast(arg=arg) if arg.dtype in _SIGNED and arg.dtype.bits <= expr.dtype.bits:
            return affine(arg, variables, lets)
        case core.Unary(op="neg", arg=arg):
            inner = affine(arg, variables, lets)
            return None if inner is None else inner.times(-1)
        case core.Binary(op="add" | "sub" | "mul" as op, left=left, right=right):
            return _combine(op, affine(left, variables, lets), affine(right, variables, lets))
    return None


def _combine(op: str, left: Affine | None, right: Affine | None) -> Affine | None:
    if left is None or right is None:
        return None
    if op == "mul":
        if not left.terms:
            return right.times(left.const)
        return left.times(right.const) if not right.terms else None
    return left.plus(right, 1 if op == "add" else -1)
