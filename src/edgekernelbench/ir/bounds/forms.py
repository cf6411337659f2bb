"""Forms: core expressions as linear forms over atoms, with what must hold for that to be true.

An atom is a value that is not split further: a variable, an element read, ``e // 4``, a minimum.
Equal expressions get equal atoms. A form is exact integer arithmetic; the machine computes the
same as long as no signed operation overflows, so a form carries its *needs*: the operations that
may overflow by the ranges of their operands, to be proved harmless from facts.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import linear as lin
from edgekernelbench.ir.bounds.atoms import (
    MAX_TERMS,
    MAX_VALUE,
    UNBOUNDED,
    Atom,
    Form,
    Need,
    axioms_of,
    capped,
    hopeless,
    order,
)
from edgekernelbench.ir.bounds.interval import Interval, binary_int
from edgekernelbench.ir.bounds.linear import Linear
from edgekernelbench.ir.bounds.ranges import Ranges
from edgekernelbench.ir.dtypes import DType


class Forms:
    """Atoms of one program, numbered as they are met.

    Kinds of atoms and their args: ``fdiv`` (numerator, constant divisor), ``quotient`` and
    ``remainder`` (numerator, divisor), ``min``, ``max``, ``mul``, ``and``, ``or``, ``shl``,
    ``shr`` (operands), ``abs`` (operand), ``select`` (then, other), ``wrap`` (exact value);
    ``opaque`` has none.
    """

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.atoms: list[Atom] = []
        self._numbers: dict[Hashable, int] = {}
        self._forms: dict[int, tuple[core.Expr, Form]] = {}
        self._keys: dict[int, tuple[core.Expr, int]] = {}
        self._interned: dict[Hashable, int] = {}
        self._axioms: dict[int, tuple[Linear, ...]] = {}

    # ------------------------------------------------------------ forms
    def form(self, expr: core.Expr) -> Form:
        """The form of an integer expression."""
        match expr:
            case core.Const():
                return Form(lin.constant(int(expr.value)))
            case core.VarRef():
                value = self.ranges.let_value(expr.var)
                if value is not None:
                    return self.form(value)
        known = self._forms.get(id(expr))
        if known is None:
            made = self._make(expr)
            if made.needs and self.ranges.of(expr).safe:
                made = Form(made.linear)
            known = (expr, made)
            self._forms[id(expr)] = known
        return known[1]

    def _make(self, expr: core.Expr) -> Form:
        match expr:
            case core.VarRef():
                return self._opaque(("var", expr.var.uid), expr)
            case core.Unary(op="neg"):
                arg = self.form(expr.arg)
                return self._result(expr, arg.linear.scaled(-1), arg.needs)
            case core.Unary(op="inv"):
                arg = self.form(expr.arg)
                if expr.dtype.is_signed:
                    return Form(arg.linear.scaled(-1).plus(-1), arg.needs)
                top = lin.constant(expr.dtype.int_range[1])
                return Form(lin.sub(top, arg.linear), arg.needs)
            case core.Binary() if expr.dtype.is_int:
                return self._binary(expr)
            case core.Select() if expr.dtype.is_int:
                return self._select(expr)
            case core.Cast() if expr.arg.dtype.is_int and expr.dtype.is_int:
                return self._cast(expr)
            case core.Call(fn="abs") if expr.dtype.is_int:
                return self._absolute(expr)
            case core.Block():
                for var, value in expr.lets:
                    self.bind_let(var, value)
                return self.form(expr.result)
        return self._opaque(self.key(expr), expr)

    def _opaque(self, key: Hashable, expr: core.Expr) -> Form:
        known = self.ranges.of(expr)
        return Form(self._atom("opaque", (), key, known, expr))

    def _atom(
        self, kind: str, args: tuple[Linear, ...], key: Hashable, known: Interval, expr: core.Expr
    ) -> Linear:
        full_key = (kind, args, key)
        number = self._numbers.get(full_key)
        if number is None:
            number = len(self.atoms)
            self._numbers[full_key] = number
            self.atoms.append(Atom(number, kind, args, int(known.lo), int(known.hi), expr))
        return lin.of_atom(number)

    def _result(self, expr: core.Expr, form: Linear, needs: tuple[Need, ...]) -> Form:
        """The result of exact arithmetic, in the expression's dtype."""
        dtype = expr.dtype
        exact = self.interval(form)
        if len(form.terms) > MAX_TERMS or max(-exact.lo, exact.hi) > MAX_VALUE:
            safe = self.ranges.of(expr).safe
            opaque = self._atom("opaque", (), ("node", id(expr)), self.ranges.of(expr), expr)
            return Form(opaque, () if safe else (hopeless(expr),))
        low, high = dtype.int_range
        known = self.ranges.of(expr)
        if dtype.is_signed:
            if known.safe or (low <= exact.lo and exact.hi <= high):
                return Form(form, needs)
            return Form(form, capped((*needs, Need(form, low, high, expr))))
        if (low <= exact.lo and exact.hi <= high) or (known.lo, known.hi) != (low, high):
            return Form(form, needs)
        return Form(self._wrapped(form, dtype, expr), needs)

    def _wrapped(self, form: Linear, dtype: DType, expr: core.Expr) -> Linear:
        return self._atom("wrap", (form,), dtype, Interval(*dtype.int_range), expr)

    # ------------------------------------------------------------ operators
    def _binary(self, expr: core.Binary) -> Form:
        a, b = self.form(expr.left), self.form(expr.right)
        needs = capped(a.needs + b.needs)
        match expr.op:
            case "add":
                return self._result(expr, lin.add(a.linear, b.linear), needs)
            case "sub":
                return self._result(expr, lin.sub(a.linear, b.linear), needs)
            case "mul":
                return self._product(expr, a.linear, b.linear, needs)
            case "fdiv" | "mod":
                return self._division(expr, a.linear, b.linear, needs)
            case "min" | "max":
                return Form(self._extremum(expr, a.linear, b.linear), needs)
            case "shl" | "shr":
                return self._shift(expr, a.linear, b.linear, needs)
            case "bitand" | "bitor":
                return Form(self._bits(expr, a.linear, b.linear), needs)
        args = tuple(sorted((a.linear, b.linear), key=order))
        return Form(self._atom("opaque", args, expr.op, self.ranges.of(expr), expr), needs)

    def _product(self, expr: core.Binary, a: Linear, b: Linear, needs: tuple[Need, ...]) -> Form:
        if a.is_const:
            a, b = b, a
        if b.is_const:
            return self._result(expr, a.scaled(b.const), needs)
        exact = binary_int("mul", self.interval(a), self.interval(b), UNBOUNDED)
        args = tuple(sorted((a, b), key=order))
        return self._result(expr, self._atom("mul", args, None, exact, expr), needs)

    def _division(self, expr: core.Binary, a: Linear, b: Linear, needs: tuple[Need, ...]) -> Form:
        if b.is_const and b.const >= 1:
            quotient = self._floor(a, b.const, expr)
            if expr.op == "fdiv":
                return Form(quotient, needs)
            return Form(lin.combine(a, 1, quotient, -b.const), needs)
        needs = capped((*needs, Need(b, 1, expr.right.dtype.int_range[1], expr)))
        known = self.ranges.of(expr)
        kind = "quotient" if expr.op == "fdiv" else "remainder"
        return Form(self._atom(kind, (a, b), None, known, expr), needs)

    def _floor(self, a: Linear, divisor: int, expr: core.Expr) -> Linear:
        """Floor division by a positive constant."""
        whole, rest = lin.split_divisible(a, divisor)
        known = self.interval(rest)
        low, high = int(known.lo) // divisor, int(known.hi) // divisor
        if low == high:
            return whole.plus(low)
        args = (rest, lin.constant(divisor))
        return lin.add(whole, self._atom("fdiv", args, None, Interval(low, high), expr))

    def _extremum(self, expr: core.Binary, a: Linear, b: Linear) -> Linear:
        gap = self.interval(lin.sub(a, b))
        if gap.hi <= 0:
            return a if expr.op == "min" else b
        if gap.lo >= 0:
            return b if expr.op == "min" else a
        known = binary_int(expr.op, self.interval(a), self.interval(b), UNBOUNDED)
        args = tuple(sorted((a, b), key=order))
        return self._atom(expr.op, args, None, known, expr)

    def _shift(self, expr: core.Binary, a: Linear, b: Linear, needs: tuple[Need, ...]) -> Form:
        bits = expr.dtype.bits
        if b.is_const and 0 <= b.const < bits:
            if expr.op == "shl":
                return self._result(expr, a.scaled(1 << b.const), needs)
            return Form(self._floor(a, 1 << b.const, expr), needs)
        known = self.ranges.of(expr)
        atom = self._atom(expr.op, (a, b), None, known, expr)
        if expr.op == "shl" and expr.dtype.is_signed and not self._shifts_safely(expr):
            return Form(atom, capped((*needs, Need(a, *expr.dtype.int_range, expr, (), b))))
        return Form(atom, needs)

    def _shifts_safely(self, expr: core.Binary) -> bool:
        """True when the shift itself loses no bit, its operands taken as they are."""
        a, b = self.ranges.of(expr.left), self.ranges.of(expr.right)
        plain = Interval(a.lo, a.hi), Interval(b.lo, b.hi)
        return binary_int("shl", *plain, expr.dtype).safe

    def _bits(self, expr: core.Binary, a: Linear, b: Linear) -> Linear:
        if expr.op == "bitand":
            for x, y in ((a, b), (b, a)):
                if y.is_const and y.const >= 0 and (y.const & (y.const + 1)) == 0:
                    size = y.const + 1
                    return lin.combine(x, 1, self._floor(x, size, expr), -size)
        args = tuple(sorted((a, b), key=order))
        known = binary_int(expr.op, self.interval(a), self.interval(b), UNBOUNDED)
        low, high = expr.dtype.int_range
        known = Interval(max(known.lo, low), min(known.hi, high))
        return self._atom(expr.op[3:], args, None, known, expr)

    def _absolute(self, expr: core.Call) -> Form:
        arg = self.form(expr.args[0])
        known = self.interval(arg.linear)
        if known.lo >= 0:
            return arg
        if known.hi <= 0:
            return self._result(expr, arg.linear.scaled(-1), arg.needs)
        limit = int(max(-known.lo, known.hi))
        atom = self._atom("abs", (arg.linear,), None, Interval(0, limit), expr)
        return self._result(expr, atom, arg.needs)

    def _cast(self, expr: core.Cast) -> Form:
        arg = self.form(expr.arg)
        low, high = expr.dtype.int_range
        known, source = self.interval(arg.linear), self.ranges.of(expr.arg)
        fits = (low <= known.lo and known.hi <= high) or (low <= source.lo and source.hi <= high)
        if fits or (low <= expr.arg.dtype.int_range[0] and expr.arg.dtype.int_range[1] <= high):
            return arg
        return Form(self._wrapped(arg.linear, expr.dtype, expr), arg.needs)

    def _select(self, expr: core.Select) -> Form:
        then, other = self.form(expr.then), self.form(expr.other)
        needs = self.condition_needs(expr.cond)
        for branch, truth in ((then, True), (other, False)):
            guard = (expr.cond, truth)
            needs += tuple(replace(n, guards=(guard, *n.guards)) for n in branch.needs)
        if then.linear == other.linear:
            return Form(then.linear, capped(needs))
        known = self.interval(then.linear).join(self.interval(other.linear))
        args = (then.linear, other.linear)
        return Form(self._atom("select", args, self.key(expr.cond), known, expr), capped(needs))

    def condition_needs(self, cond: core.Expr) -> tuple[Need, ...]:
        """What the integer comparisons of a condition need not to overflow."""
        if self.ranges.of(cond).safe:
            return ()
        match cond:
            case core.Binary() if cond.op in core.BOOL_OPS:
                return capped(self.condition_needs(cond.left) + self.condition_needs(cond.right))
            case core.Binary() if cond.left.dtype.is_int:
                return capped(self.form(cond.left).needs + self.form(cond.right).needs)
            case core.Unary():
                return self.condition_needs(cond.arg)
            case core.VarRef():
                value = self.ranges.let_value(cond.var)
                return () if value is None else self.condition_needs(value)
            case core.Block():
                return self.condition_needs(cond.result)
        return (hopeless(cond),)

    # ------------------------------------------------------------ ranges, axioms, keys
    def interval(self, form: Linear) -> Interval:
        """From the ranges of the atoms; may be wider than any dtype."""
        low = high = form.const
        for number, factor in form.terms:
            atom = self.atoms[number]
            low += factor * (atom.lo if factor > 0 else atom.hi)
            high += factor * (atom.hi if factor > 0 else atom.lo)
        return Interval(low, high)

    def axioms(self, number: int) -> tuple[Linear, ...]:
        """Forms that are never negative, from what an atom is."""
        known = self._axioms.get(number)
        if known is None:
            known = axioms_of(self.atoms[number], self.interval)
            self._axioms[number] = known
        return known

    def key(self, expr: core.Expr) -> Hashable:
        """Equal keys mean equal values; for any dtype."""
        if expr.dtype.is_int and not isinstance(expr, core.Load | core.Reduce):
            if isinstance(expr, core.Cast | core.Call) and not _splits(expr):
                return self._structure(expr)
            return self.form(expr).linear
        return self._structure(expr)

    def _structure(self, expr: core.Expr) -> int:
        """The number of an expression's structure: small, so that keys of keys stay small."""
        if isinstance(expr, core.VarRef):
            value = self.ranges.let_value(expr.var)
            return self._intern(("var", expr.var.uid) if value is None else self.key(value))
        known = self._keys.get(id(expr))
        if known is None:
            known = (expr, self._intern(self._make_key(expr)))
            self._keys[id(expr)] = known
        return known[1]

    def _intern(self, key: Hashable) -> int:
        return key if isinstance(key, int) else self._interned.setdefault(key, len(self._interned))

    def _make_key(self, expr: core.Expr) -> Hashable:
        match expr:
            case core.Const():
                return ("const", expr.value, expr.dtype)
            case core.Load():
                return ("load", expr.tensor.name, tuple(self.key(i) for i in expr.indices))
            case core.Unary() | core.Cast():
                op = expr.op if isinstance(expr, core.Unary) else "cast"
                return (op, expr.dtype, self.key(expr.arg))
            case core.Binary():
                return (expr.op, expr.dtype, self.key(expr.left), self.key(expr.right))
            case core.Call():
                return (expr.fn, expr.dtype, tuple(self.key(a) for a in expr.args))
            case core.Select():
                return ("select", *(self.key(e) for e in (expr.cond, expr.then, expr.other)))
            case core.Block():
                for var, value in expr.lets:
                    self.bind_let(var, value)
                return self.key(expr.result)
        return ("node", id(expr))

    def bind_let(self, var: core.Var, value: core.Expr) -> None:
        """Lets are bound in order, so that no chain of them becomes deep recursion."""
        self.ranges.bind_let(var, value)
        self.key(value)


def _splits(expr: core.Cast | core.Call) -> bool:
    """Has `Forms._make` a case of its own for this node."""
    if isinstance(expr, core.Cast):
        return expr.arg.dtype.is_int
    return expr.fn == "abs"
