"""Atoms, forms and needs: what the integer analysis is made of. See `forms`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import linear as lin
from edgekernelbench.ir.bounds.interval import Interval, absolute, binary_int
from edgekernelbench.ir.bounds.linear import Linear

MAX_NEEDS = 48
MAX_TERMS = 64
MAX_VALUE = 1 << 200


@dataclass(frozen=True, slots=True)
class Need:
    """``lo <= form <= hi`` must hold for ``expr`` not to overflow, where the guards hold.

    With ``shift``, the amount of a shift to the left, ``form`` shifted by it is meant.
    """

    form: Linear
    lo: int
    hi: int
    expr: core.Expr
    guards: tuple[tuple[core.Expr, bool], ...] = ()
    shift: Linear | None = None


@dataclass(frozen=True, slots=True)
class Form:
    linear: Linear
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True)
class Atom:
    """``args`` are the forms it is made of, by kind: see `Forms`."""

    number: int
    kind: str
    args: tuple[Linear, ...]
    lo: int
    hi: int
    expr: core.Expr


class Unbounded:
    """Stands in for a dtype where exact integers are meant."""

    int_range = (-MAX_VALUE, MAX_VALUE)
    is_signed = True
    is_float = False
    bits = 200


UNBOUNDED: Any = Unbounded()


def order(form: Linear) -> tuple[tuple[tuple[int, int], ...], int]:
    return form.terms, form.const


def hopeless(expr: core.Expr) -> Need:
    return Need(lin.constant(0), 1, 1, expr)


def capped(needs: tuple[Need, ...]) -> tuple[Need, ...]:
    """Many needs are as good as none that can be proved: work stays bounded."""
    if len(needs) <= MAX_NEEDS:
        return needs
    return (*needs[: MAX_NEEDS - 1], hopeless(needs[-1].expr))


def axioms_of(atom: Atom, interval: Callable[[Linear], Interval]) -> tuple[Linear, ...]:
    """Forms that are never negative, from what an atom is; ``interval`` is that of a form."""
    me, args = lin.of_atom(atom.number), atom.args
    match atom.kind:
        case "fdiv":
            rest = lin.combine(args[0], 1, me, -args[1].const)
            return rest, rest.scaled(-1).plus(args[1].const - 1)
        case "quotient" if interval(args[0]).lo >= 0:
            return (lin.sub(args[0], me),)
        case "remainder":
            below = (lin.sub(args[1], me).plus(-1),)
            return (*below, lin.sub(args[0], me)) if interval(args[0]).lo >= 0 else below
        case "min":
            return tuple(lin.sub(a, me) for a in args)
        case "max":
            return tuple(lin.sub(me, a) for a in args)
        case "abs":
            return lin.sub(me, args[0]), lin.add(me, args[0])
        case "and":
            return tuple(lin.sub(a, me) for a in args if interval(a).lo >= 0)
        case "or" if all(interval(a).lo >= 0 for a in args):
            return tuple(lin.sub(me, a) for a in args)
        case "shr" if interval(args[0]).lo >= 0:
            return (lin.sub(args[0], me),)
    return ()


def derived_range(atom: Atom, args: list[Interval], lo: int, hi: int) -> tuple[int, int]:
    """The range of an atom within ``lo..hi``, from the intervals of what it is made of."""
    match atom.kind:
        case "fdiv" | "quotient":
            found = binary_int("fdiv", args[0], args[1], UNBOUNDED)
        case "remainder":
            found = binary_int("mod", args[0], args[1], UNBOUNDED)
        case "min" | "max" | "mul":
            found = binary_int(atom.kind, args[0], args[1], UNBOUNDED)
        case "and" | "or":
            found = binary_int("bit" + atom.kind, args[0], args[1], atom.expr.dtype)
        case "shl" | "shr":
            found = binary_int(atom.kind, args[0], args[1], atom.expr.dtype)
        case "abs":
            found = absolute(args[0], UNBOUNDED)
        case "select":
            found = args[0].join(args[1])
        case "wrap" if atom.lo <= args[0].lo and args[0].hi <= atom.hi:
            found = args[0]
        case _:
            return lo, hi
    return max(lo, int(found.lo)), min(hi, int(found.hi))
