"""Ranges: the interval of an expression from the ranges of its variables and tensors alone.

No fact of an enclosing condition is used; `Prover` adds those.
"""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import interval as iv
from edgekernelbench.ir.bounds.interval import Interval
from edgekernelbench.ir.dtypes import DType


class Ranges:
    """What is known about variables and tensors, and intervals derived from it.

    A variable is bound once (its uid is unique in the program), so results are kept.
    """

    def __init__(self) -> None:
        self._vars: dict[int, Interval] = {}
        self._lets: dict[int, core.Expr] = {}
        self._tensors: dict[str, Interval] = {}
        # The expression is kept beside its interval: its id may not be reused meanwhile.
        self._known: dict[int, tuple[core.Expr, Interval]] = {}

    def bind(self, var: core.Var, lo: int, hi: int) -> None:
        """An axis or loop index runs over lo..hi (inclusive; lo > hi when it never runs)."""
        self._vars[var.uid] = Interval(lo, max(lo, hi))

    def bind_axis(self, axis: core.ReduceAxis) -> None:
        """A reduction axis, as running over 0..extent-1.

        That it starts at ``lo`` is a fact inside its own body only: a reduction nested in it is
        computed for the whole box.
        """
        self.bind(axis.var, 0, axis.extent - 1)

    def bind_let(self, var: core.Var, value: core.Expr) -> None:
        self._lets[var.uid] = value
        self.of(value)  # at once: a chain of lets must not become deep recursion

    def bind_tensor(self, tensor: core.Tensor, values: Interval) -> None:
        """What a read of the tensor yields; without it, any value of its dtype."""
        low, high = (0, 0) if tensor.dtype.is_float else tensor.dtype.int_range
        if not tensor.dtype.is_float and values.safe and low <= values.lo and values.hi <= high:
            self._tensors[tensor.name] = values

    def let_value(self, var: core.Var) -> core.Expr | None:
        """The expression a let variable stands for; None for an axis or a loop index."""
        return self._lets.get(var.uid)

    def tensor(self, tensor: core.Tensor) -> Interval:
        known = self._tensors.get(tensor.name)
        if known is not None:
            return known
        return iv.any_float() if tensor.dtype.is_float else iv.full(tensor.dtype)

    def variable(self, var: core.Var) -> Interval:
        """The range of an axis or loop index."""
        known = self._vars.get(var.uid)
        return known if known is not None else iv.full(var.dtype)

    def of(self, expr: core.Expr) -> Interval:
        """Every value ``expr`` may take lies in the result."""
        match expr:
            case core.Const():
                return _constant(expr)
            case core.VarRef():
                value = self._lets.get(expr.var.uid)
                return self.variable(expr.var) if value is None else self.of(value)
        known = self._known.get(id(expr))
        if known is None:
            known = (expr, self._compute(expr))
            self._known[id(expr)] = known
        return known[1]

    def _compute(self, expr: core.Expr) -> Interval:
        found = self._exact(expr)
        if expr.dtype is DType.F16 and isinstance(expr, core.Unary | core.Binary | core.Call):
            return iv.convert(found, DType.F32, DType.F16)  # each operation rounds to f16
        return found

    def _exact(self, expr: core.Expr) -> Interval:
        """As `of`, without the coarse rounding of f16 operations."""
        match expr:
            case core.Load():
                return self.tensor(expr.tensor)
            case core.Unary():
                return self._unary(expr)
            case core.Binary():
                return self._binary(expr)
            case core.Call():
                return self._call(expr)
            case core.Select():
                joined = self.of(expr.then).join(self.of(expr.other))
                return joined if self.of(expr.cond).safe else Interval(joined.lo, joined.hi, False)
            case core.Cast():
                return iv.convert(self.of(expr.arg), expr.arg.dtype, expr.dtype)
            case core.Reduce():
                return self._reduce(expr)
            case core.Block():
                for var, value in expr.lets:
                    self.bind_let(var, value)
                return self.of(expr.result)
        return iv.full(expr.dtype)

    def _unary(self, expr: core.Unary) -> Interval:
        arg = self.of(expr.arg)
        match expr.op:
            case "neg":
                return iv.negate(arg, expr.dtype)
            case "inv":
                return iv.invert(arg, expr.dtype)
            case "not":
                return Interval(1 - arg.hi, 1 - arg.lo, arg.safe)

    def _binary(self, expr: core.Binary) -> Interval:
        a, b = self.of(expr.left), self.of(expr.right)
        if expr.op in core.COMPARE_OPS:
            return _compare(expr.op, a, b)
        if expr.op in core.BOOL_OPS:
            pick = max if expr.op == "or" else min
            return Interval(pick(a.lo, b.lo), pick(a.hi, b.hi), a.safe and b.safe)
        if expr.dtype.is_float:
            return iv.binary_float(expr.op, a, b)
        return iv.binary_int(expr.op, a, b, expr.dtype)

    def _call(self, expr: core.Call) -> Interval:
        args = [self.of(arg) for arg in expr.args]
        safe = all(arg.safe for arg in args)
        match expr.fn:
            case "abs":
                return iv.absolute(args[0], expr.dtype)
            case "sign":
                return Interval(-1, 1, safe)
            case "popcount":
                return Interval(0, 64, safe)
            case "floor" | "ceil" | "trunc" | "rne":
                return iv.rounded(expr.fn, args[0])
            case "nofma":
                return args[0]
            case "sin" | "cos" | "tanh" | "erf" if iv.is_finite(args[0]):
                return iv.outward(-1.0, 1.0, safe)
        return iv.full(expr.dtype, safe)

    def _reduce(self, expr: core.Reduce) -> Interval:
        if expr.dtype.is_float:
            return iv.any_float()
        for axis in expr.axes:
            self.bind_axis(axis)
        if expr.combiner is not None:
            return iv.full(expr.dtype, not _may_overflow(expr))
        body = self.of(expr.body)
        if expr.dtype is DType.BOOL:
            return Interval(0, 1, body.safe)
        box = 1
        for axis in expr.axes:
            box *= max(axis.extent, 0)
        full_box = expr.where is None and all(a.is_constant and a.extent > 0 for a in expr.axes)
        match expr.op:
            case "argmax" | "argmin":
                return Interval(0 if full_box else -1, box - 1, body.safe)
            case "max" | "min":
                if full_box:
                    return body
                empty = core.identity(expr.op, expr.dtype)
                return body.join(Interval(int(empty), int(empty)))
            case "sum" if body.safe:
                low, high = min(body.lo, 0), max(body.hi, 0)
                return iv.fit(int(low) * box, int(high) * box, expr.dtype, True)
        return iv.full(expr.dtype, False)


def _may_overflow(expr: core.Reduce) -> bool:
    """Whether a combiner does arithmetic on signed integers, of which nothing is known."""
    assert expr.combiner is not None
    nodes = (node for part in expr.combiner.exprs for node in core.walk(part))
    return any(
        node.dtype.is_int
        and node.dtype.is_signed
        and isinstance(node, core.Binary | core.Unary)
        and node.op in ("add", "sub", "mul", "shl", "neg")
        for node in nodes
    )


def _constant(expr: core.Const) -> Interval:
    value = expr.value
    if isinstance(value, float):
        return Interval(value, value) if abs(value) < float("inf") else iv.any_float()
    return Interval(int(value), int(value))


def _compare(op: str, a: Interval, b: Interval) -> Interval:
    """0..0 or 1..1 when the ranges decide the comparison, else 0..1."""
    safe = a.safe and b.safe
    if op in ("gt", "ge"):
        op, a, b = {"gt": "lt", "ge": "le"}[op], b, a
    match op:
        case "lt":
            yes, no = a.hi < b.lo, a.lo >= b.hi
        case "le":
            yes, no = a.hi <= b.lo, a.lo > b.hi
        case _:
            same = a.lo == a.hi == b.lo == b.hi
            apart = a.hi < b.lo or b.hi < a.lo
            yes, no = (same, apart) if op == "eq" else (apart, same)
    if not safe or not (iv.is_finite(a) and iv.is_finite(b)):
        return Interval(0, 1, safe)
    return Interval(int(yes), int(not no))
