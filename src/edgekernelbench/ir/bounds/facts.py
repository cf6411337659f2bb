"""Facts: what holds at a point of the program, as linear forms that are never negative there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from edgekernelbench.ir.bounds import linear as lin
from edgekernelbench.ir.bounds.linear import Linear
from edgekernelbench.ir.core import Expr

Literal = tuple[Expr, bool]
"""A condition and whether it holds."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Immutable; `Prover.assume` makes richer ones.

    Attributes:
        forms: linear forms known to be at least 0.
        bounds: tighter ranges of single atoms, from such forms: (atom, lo, hi), None for open.
        cases: one of the alternatives of each holds, every one a conjunction.
        path: the conditions as written, for examples and messages.
        unequal: forms known not to be 0.
        unusable: conditions that say nothing, because they may overflow.
        impossible: no iteration gets here.
        ranges: ranges of atoms under these facts, filled in by the prover as it needs them.
    """

    forms: tuple[Linear, ...] = ()
    bounds: tuple[tuple[int, int | None, int | None], ...] = ()
    cases: tuple[tuple[tuple[Literal, ...], ...], ...] = ()
    path: tuple[Literal, ...] = ()
    unequal: tuple[Linear, ...] = ()
    unusable: tuple[Expr, ...] = ()
    impossible: bool = False
    ranges: dict[int, tuple[int, int]] = field(
        init=False, compare=False, repr=False, default_factory=dict
    )

    def with_form(self, form: Linear) -> Facts:
        """Adds ``form >= 0``."""
        form = lin.tightened(form)
        if form.is_const:
            return self if form.const >= 0 else replace(self, impossible=True)
        if form in self.forms:
            return self
        out = replace(self, forms=(*self.forms, form))
        if len(form.terms) > 1:
            return out
        for atom, factor in form.terms:
            out = out._with_limit(atom, factor, form.const)
        return out

    def _with_limit(self, atom: int, factor: int, limit: int) -> Facts:
        """``factor * atom + limit >= 0``."""
        low = -(limit // factor) if factor > 0 else None
        high = limit // -factor if factor < 0 else None
        return replace(self, bounds=(*self.bounds, (atom, low, high)))


NOTHING = Facts()
