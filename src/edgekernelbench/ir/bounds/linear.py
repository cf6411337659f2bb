"""Linear forms over atoms with integer coefficients: the currency of proofs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd


@dataclass(frozen=True, slots=True)
class Linear:
    """``const + sum(coefficient * atom)``; atoms by number, ascending, none with coefficient 0."""

    terms: tuple[tuple[int, int], ...]
    const: int

    @property
    def is_const(self) -> bool:
        return not self.terms

    def coefficient(self, atom: int) -> int:
        for number, factor in self.terms:
            if number == atom:
                return factor
        return 0

    def plus(self, value: int) -> Linear:
        return Linear(self.terms, self.const + value)

    def scaled(self, factor: int) -> Linear:
        if factor == 0:
            return ZERO
        return Linear(tuple((a, c * factor) for a, c in self.terms), self.const * factor)


ZERO = Linear((), 0)


def constant(value: int) -> Linear:
    return Linear((), value)


def of_atom(atom: int) -> Linear:
    return Linear(((atom, 1),), 0)


def combine(a: Linear, ka: int, b: Linear, kb: int) -> Linear:
    """``ka * a + kb * b``."""
    sums: dict[int, int] = {}
    for form, factor in ((a, ka), (b, kb)):
        for atom, coefficient in form.terms:
            sums[atom] = sums.get(atom, 0) + coefficient * factor
    return from_dict(sums, ka * a.const + kb * b.const)


def from_dict(sums: dict[int, int], const: int) -> Linear:
    return Linear(tuple((a, sums[a]) for a in sorted(sums) if sums[a]), const)


def add(a: Linear, b: Linear) -> Linear:
    return combine(a, 1, b, 1)


def sub(a: Linear, b: Linear) -> Linear:
    return combine(a, 1, b, -1)


def substitute(form: Linear, atom: int, value: Linear) -> Linear:
    """``form`` with an atom replaced by what it equals."""
    factor = form.coefficient(atom)
    rest = Linear(tuple(t for t in form.terms if t[0] != atom), form.const)
    return combine(rest, 1, value, factor)


def tightened(form: Linear) -> Linear:
    """An equivalent of ``form >= 0`` over integers with coprime coefficients."""
    divisor = common_divisor(c for _, c in form.terms)
    if divisor <= 1:
        return form
    return Linear(tuple((a, c // divisor) for a, c in form.terms), form.const // divisor)


def common_divisor(values: Iterable[int]) -> int:
    out = 0
    for value in values:
        out = gcd(out, value)
    return out


def split_divisible(form: Linear, divisor: int) -> tuple[Linear, Linear]:
    """(A, B) with ``form = divisor * A + B`` and B's constant in 0..divisor-1."""
    whole = tuple((a, c // divisor) for a, c in form.terms if c % divisor == 0)
    rest = tuple((a, c) for a, c in form.terms if c % divisor)
    return Linear(whole, form.const // divisor), Linear(rest, form.const % divisor)
