"""Proofs of integer inequalities from facts.

A goal ``form >= 0`` is reached by subtracting facts and axioms of atoms until the ranges of the
atoms decide it (Fourier-Motzkin elimination, a few steps deep), by splitting minima, maxima,
absolute values and selects into their cases, and by splitting disjunctions among the facts. The
work of each proof is bounded; what is not proved within it counts as not provable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import linear as lin
from edgekernelbench.ir.bounds.atoms import Need, derived_range
from edgekernelbench.ir.bounds.facts import NOTHING, Facts, Literal
from edgekernelbench.ir.bounds.forms import Forms
from edgekernelbench.ir.bounds.interval import Interval, binary_int
from edgekernelbench.ir.bounds.linear import Linear
from edgekernelbench.ir.bounds.ranges import Ranges
from edgekernelbench.ir.dtypes import DType

TOTAL_STEPS = 60_000
_STEPS = 400
_DEPTH = 5
_WIDTH = 5
_SPLITS = 3
_MAX_COEFFICIENT = 1 << 80
_MAX_CASES = 4
_MAX_FACTS = 64

_COMPLEMENT = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


@dataclass(slots=True)
class _Work:
    """Steps left in one proof."""

    steps: int = _STEPS


class Prover:
    """Proves ranges of core expressions. Facts are passed in; the prover keeps none.

    ``steps_left`` bounds the work of all proofs together; at 0 nothing hard is proved any more.
    """

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.forms = Forms(ranges)
        self.steps_left = TOTAL_STEPS

    # ------------------------------------------------------------ questions
    def in_range(self, expr: core.Expr, lo: int, hi: int, facts: Facts = NOTHING) -> bool:
        """True when ``lo <= expr <= hi`` is proved, and that nothing in it overflows."""
        if self.ranges.of(expr).within(lo, hi):
            return True
        form = self.forms.form(expr)
        work = _Work()
        return (
            self._needs_hold(form.needs, facts, work)
            and self._holds(form.linear.plus(-lo), facts, work)
            and self._holds(form.linear.scaled(-1).plus(hi), facts, work)
        )

    def interval(self, expr: core.Expr, facts: Facts = NOTHING) -> Interval:
        """The interval of an integer expression where the facts hold."""
        known = self.ranges.of(expr)
        form = self.forms.form(expr)
        if not (known.safe or self._needs_hold(form.needs, facts, _Work())):
            return known
        under = self._interval(form.linear, facts)
        low, high = max(known.lo, under.lo), min(known.hi, under.hi)
        return Interval(low, max(low, high))

    def at_least(self, expr: core.Expr, lo: int, facts: Facts = NOTHING) -> bool:
        """True when ``expr >= lo`` is proved."""
        known = self.ranges.of(expr)
        if known.safe and known.lo >= lo:
            return True
        form = self.forms.form(expr)
        work = _Work()
        return self._needs_hold(form.needs, facts, work) and self._holds(
            form.linear.plus(-lo), facts, work
        )

    def not_above(self, a: core.Expr, b: core.Expr, gap: int, facts: Facts = NOTHING) -> bool:
        """True when ``a + gap <= b`` is proved."""
        left, right = self.forms.form(a), self.forms.form(b)
        work = _Work()
        return self._needs_hold(left.needs + right.needs, facts, work) and self._holds(
            lin.sub(right.linear, left.linear).plus(-gap), facts, work
        )

    def safe(self, expr: core.Expr, facts: Facts = NOTHING) -> bool:
        """True when it is proved that no signed arithmetic in ``expr`` overflows."""
        return self.ranges.of(expr).safe or self._needs_hold(
            self.forms.form(expr).needs, facts, _Work()
        )

    def overflowing(self, expr: core.Expr, facts: Facts = NOTHING) -> core.Expr | None:
        """The innermost operation that is not proved safe; None when all are."""
        for need in self.forms.form(expr).needs:
            if not self._need_holds(need, facts, _Work()):
                return need.expr
        return None

    # ------------------------------------------------------------ facts
    def assume(self, facts: Facts, cond: core.Expr, truth: bool = True) -> Facts:
        """``facts`` and that ``cond`` is ``truth``. Conditions that may overflow say nothing."""
        facts = replace(facts, path=(*facts.path, (cond, truth)))
        return self._retried(self._assumed(facts, cond, truth))

    def assume_at_least(self, facts: Facts, a: core.Expr, b: core.Expr, gap: int = 0) -> Facts:
        """``facts`` and ``a >= b + gap``."""
        left, right = self.forms.form(a), self.forms.form(b)
        if not self._needs_hold(left.needs + right.needs, facts, _Work()):
            return replace(facts, unusable=(*facts.unusable, a))
        return self._with(facts, lin.sub(left.linear, right.linear).plus(-gap))

    def _assumed(self, facts: Facts, cond: core.Expr, truth: bool) -> Facts:
        match cond:
            case core.Const():
                return facts if bool(cond.value) == truth else replace(facts, impossible=True)
            case core.VarRef():
                value = self.ranges.let_value(cond.var)
                return facts if value is None else self._assumed(facts, value, truth)
            case core.Block():
                for var, value in cond.lets:
                    self.forms.bind_let(var, value)
                return self._assumed(facts, cond.result, truth)
            case core.Unary(op="not"):
                return self._assumed(facts, cond.arg, not truth)
            case core.Binary(op="and" | "or"):
                return self._connective(facts, cond.left, cond.right, cond.op == "and", truth)
            case core.Select():
                return self._chosen(facts, cond, truth)
            case core.Cast() if cond.arg.dtype.is_int and cond.dtype is DType.BOOL:
                zero = core.Const(0, cond.arg.dtype)
                return self._compared(facts, "ne" if truth else "eq", cond.arg, zero, cond)
            case core.Binary() if cond.op in core.COMPARE_OPS and cond.left.dtype.is_int:
                op = cond.op if truth else _COMPLEMENT[cond.op]
                return self._compared(facts, op, cond.left, cond.right, cond)
        return facts

    def _connective(
        self, facts: Facts, a: core.Expr, b: core.Expr, conjunction: bool, truth: bool
    ) -> Facts:
        if conjunction == truth:
            for term in _terms(a, b, conjunction):
                facts = self._assumed(facts, term, truth)
            return facts
        if len(facts.cases) >= _MAX_CASES:
            return facts
        alternatives = tuple(((term, truth),) for term in _terms(a, b, conjunction))
        return replace(facts, cases=(*facts.cases, alternatives))

    def _chosen(self, facts: Facts, cond: core.Select, truth: bool) -> Facts:
        """``a if c else False`` holds when both a and c do, and so on."""
        branches: list[tuple[Literal, ...]] = []
        for branch, chosen in ((cond.then, True), (cond.other, False)):
            if isinstance(branch, core.Const):
                if bool(branch.value) == truth:
                    branches.append(((cond.cond, chosen),))
            else:
                branches.append(((cond.cond, chosen), (branch, truth)))
        if not branches:
            return replace(facts, impossible=True)
        if len(branches) == 1:
            for literal in branches[0]:
                facts = self._assumed(facts, *literal)
            return facts
        if len(facts.cases) >= _MAX_CASES:
            return facts
        return replace(facts, cases=(*facts.cases, tuple(branches)))

    def _compared(
        self, facts: Facts, op: str, a: core.Expr, b: core.Expr, cond: core.Expr
    ) -> Facts:
        left, right = self.forms.form(a), self.forms.form(b)
        if len(facts.forms) >= _MAX_FACTS:
            return facts
        if not self._needs_hold(left.needs + right.needs, facts, _Work()):
            return replace(facts, unusable=(*facts.unusable, cond))
        gap = lin.sub(right.linear, left.linear)
        match op:
            case "lt":
                return self._with(facts, gap.plus(-1))
            case "le":
                return self._with(facts, gap)
            case "gt":
                return self._with(facts, gap.scaled(-1).plus(-1))
            case "ge":
                return self._with(facts, gap.scaled(-1))
            case "eq":
                return self._with(self._with(facts, gap), gap.scaled(-1))
        if gap.is_const:
            return facts if gap.const else replace(facts, impossible=True)
        return replace(facts, unequal=(*facts.unequal, gap))

    def _with(self, facts: Facts, form: Linear) -> Facts:
        """Adds ``form >= 0``, also as a bound of what is divided in it."""
        return facts.with_form(form).with_form(_undivided(self.forms, form))

    def _retried(self, facts: Facts) -> Facts:
        """``e != 0`` becomes ``e >= 1`` where ``e >= 0`` can be proved, and likewise below."""
        for form in facts.unequal:
            for way in (form, form.scaled(-1)):
                if self._low(way, facts) >= 0:
                    facts = facts.with_form(way.plus(-1))
        for form in facts.forms:
            if self._high(form, facts) < 0:
                return replace(facts, impossible=True)
        return facts

    # ------------------------------------------------------------ needs
    def _needs_hold(self, needs: tuple[Need, ...], facts: Facts, work: _Work) -> bool:
        return all(self._need_holds(need, facts, work) for need in needs)

    def _need_holds(self, need: Need, facts: Facts, work: _Work) -> bool:
        for guard in need.guards:
            facts = self._assumed(facts, *guard)
        if need.shift is not None:
            operands = self._interval(need.form, facts), self._interval(need.shift, facts)
            return facts.impossible or binary_int("shl", *operands, need.expr.dtype).safe
        return self._holds(need.form.plus(-need.lo), facts, work) and self._holds(
            need.form.scaled(-1).plus(need.hi), facts, work
        )

    # ------------------------------------------------------------ proofs
    def _holds(self, goal: Linear, facts: Facts, work: _Work, splits: int = _SPLITS) -> bool:
        """True when ``goal >= 0`` is proved."""
        if facts.impossible:
            return True
        goal = self._unwrapped(goal, facts, work, splits)
        seen: set[Linear] = set()
        if self._reaches(goal, facts, work, _DEPTH, seen):
            return True
        goal = _undivided(self.forms, goal)
        if self._reaches(goal, facts, work, _DEPTH, seen):
            return True
        if splits == 0 or work.steps <= 0:
            return False
        return self._split_atom(goal, facts, work, splits - 1) or self._split_case(
            goal, facts, work, splits - 1
        )

    def _unwrapped(self, goal: Linear, facts: Facts, work: _Work, splits: int) -> Linear:
        """Values that may wrap replaced by their exact ones where these are proved to fit."""
        for number, _ in goal.terms:
            atom = self.forms.atoms[number]
            if atom.kind == "wrap" and splits > 0:
                exact = atom.args[0]
                if self._holds(exact.plus(-atom.lo), facts, work, splits - 1) and self._holds(
                    exact.scaled(-1).plus(atom.hi), facts, work, splits - 1
                ):
                    goal = lin.substitute(goal, number, exact)
        return goal

    def _reaches(
        self, goal: Linear, facts: Facts, work: _Work, depth: int, seen: set[Linear]
    ) -> bool:
        """Fourier-Motzkin: subtract facts from the goal until ranges decide it."""
        if self._low(goal, facts) >= 0:
            return True
        if depth == 0 or work.steps <= 0 or self.steps_left <= 0 or goal in seen:
            return False
        seen.add(goal)
        work.steps -= 1
        self.steps_left -= 1
        reduced = []
        for fact in self._relevant(goal, facts):
            for number, factor in fact.terms:
                mine = goal.coefficient(number)
                if mine * factor > 0:
                    rest = lin.combine(goal, abs(factor), fact, -abs(mine))
                    if all(abs(c) < _MAX_COEFFICIENT for _, c in rest.terms):
                        rest = lin.tightened(rest)
                        reduced.append((self._low(rest, facts), len(rest.terms), rest))
        reduced.sort(key=lambda item: (-item[0], item[1]))
        for _, _, rest in reduced[:_WIDTH]:
            if self._reaches(rest, facts, work, depth - 1, seen):
                return True
        return False

    def _relevant(self, goal: Linear, facts: Facts) -> list[Linear]:
        out = [f for f in facts.forms if any(goal.coefficient(n) for n, _ in f.terms)]
        for number, _ in goal.terms:
            out += self.forms.axioms(number)
        return out

    def _low(self, form: Linear, facts: Facts) -> int:
        """The least value by ranges and by facts on single atoms."""
        total = form.const
        for number, factor in form.terms:
            lo, hi = self._atom_range(number, facts)
            total += factor * (lo if factor > 0 else hi)
        return total

    def _high(self, form: Linear, facts: Facts) -> int:
        return -self._low(form.scaled(-1), facts)

    def _atom_range(self, number: int, facts: Facts) -> tuple[int, int]:
        atom = self.forms.atoms[number]
        if not facts.bounds:
            return atom.lo, atom.hi
        known = facts.ranges.get(number)
        if known is None:
            lo, hi = atom.lo, atom.hi
            for other, low, high in facts.bounds:
                if other == number:
                    lo = lo if low is None else max(lo, low)
                    hi = hi if high is None else min(hi, high)
            facts.ranges[number] = (lo, hi)  # met again below: no better than this
            args = [self._interval(arg, facts) for arg in atom.args]
            known = facts.ranges[number] = derived_range(atom, args, lo, hi)
        return known

    def _interval(self, form: Linear, facts: Facts) -> Interval:
        low, high = self._low(form, facts), self._high(form, facts)
        return Interval(low, max(low, high))

    # ------------------------------------------------------------ case splits
    def _split_atom(self, goal: Linear, facts: Facts, work: _Work, splits: int) -> bool:
        """Proves the goal in each case of an atom that is one of several values."""
        for number, _ in goal.terms:
            cases = self._cases_of(number, facts)
            if cases and all(
                self._holds(lin.substitute(goal, number, value), known, work, splits)
                for value, known in cases
            ):
                return True
            if work.steps <= 0:
                return False
        return False

    def _cases_of(self, number: int, facts: Facts) -> list[tuple[Linear, Facts]]:
        atom = self.forms.atoms[number]
        match atom.kind:
            case "min" | "max":
                a, b = atom.args
                gap = lin.sub(b, a) if atom.kind == "min" else lin.sub(a, b)
                return [(a, facts.with_form(gap)), (b, facts.with_form(gap.scaled(-1)))]
            case "abs":
                (arg,) = atom.args
                minus = arg.scaled(-1)
                return [(arg, facts.with_form(arg)), (minus, facts.with_form(minus))]
            case "select" if isinstance(atom.expr, core.Select):
                then, other = atom.args
                cond = atom.expr.cond
                return [
                    (then, self._retried(self._assumed(facts, cond, True))),
                    (other, self._retried(self._assumed(facts, cond, False))),
                ]
        return []

    def _split_case(self, goal: Linear, facts: Facts, work: _Work, splits: int) -> bool:
        """Proves the goal for each alternative of a disjunction among the facts."""
        for at, alternatives in enumerate(facts.cases):
            rest = replace(facts, cases=facts.cases[:at] + facts.cases[at + 1 :])
            if all(self._holds(goal, self._all(rest, a), work, splits) for a in alternatives):
                return True
        return False

    def _all(self, facts: Facts, literals: tuple[Literal, ...]) -> Facts:
        for literal in literals:
            facts = self._assumed(facts, *literal)
        return self._retried(facts)


def _undivided(forms: Forms, goal: Linear) -> Linear:
    """``e // c >= k`` as ``e >= c * k``, ``e // c <= k`` as ``e <= c * k + c - 1``."""
    goal = lin.tightened(goal)
    while len(goal.terms) == 1:
        (number, factor), limit = goal.terms[0], goal.const
        atom = forms.atoms[number]
        if atom.kind != "fdiv" or abs(factor) != 1:
            break
        numerator, divisor = atom.args[0], atom.args[1].const
        goal = numerator.scaled(factor).plus(divisor * limit + (divisor - 1 if factor < 0 else 0))
        goal = lin.tightened(goal)
    return goal


def _terms(a: core.Expr, b: core.Expr, conjunction: bool) -> list[core.Expr]:
    """The operands of a chain of one connective."""
    op = "and" if conjunction else "or"
    out: list[core.Expr] = []
    stack = [b, a]
    while stack:
        term = stack.pop()
        if isinstance(term, core.Binary) and term.op == op:
            stack += [term.right, term.left]
        else:
            out.append(term)
    return out
