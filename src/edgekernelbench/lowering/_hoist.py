"""Moves the reductions of one stage into stages of their own."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import Ranges
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import _terms as terms

MAX_CARRIED = 1_000_000  # nodes of lets and conditions copied into hoisted stages, per program


class NormalizeError(ValueError):
    """The program grows beyond a fixed limit when its reductions become stages."""


@dataclass(slots=True)
class Names:
    """Fresh names and variables of a program, and how much may still be copied."""

    taken: set[str]
    next_uid: int
    room: int = MAX_CARRIED

    def fresh(self, var: core.Var) -> core.Var:
        made = core.Var(var.name, self.next_uid, var.dtype)
        self.next_uid += 1
        return made

    def spend(self, nodes: int) -> None:
        self.room -= nodes
        if self.room < 0:
            raise NormalizeError(
                f"hoisting the reductions copies more than {MAX_CARRIED:,} operations: "
                "compute shared values in stages of their own"
            )


@dataclass(frozen=True, slots=True)
class _Let:
    """A let in view.

    Attributes:
        refs: the axes and loop indices it varies with, also through other lets.
        needs: uids of the lets its value uses, directly or not, and its own.
        number: lets are numbered in the order of their definition.
    """

    var: core.Var
    value: core.Expr
    refs: frozenset[int]
    needs: frozenset[int]
    number: int


@dataclass(frozen=True, slots=True)
class _Condition:
    """Something that holds inside an enclosing reduction; ``refs`` as in `_Let`."""

    expr: core.Expr
    refs: frozenset[int]
    number: int


@dataclass(slots=True)
class Hoister:
    """Rewrites the expression of one stage.

    Attributes:
        axes: the stage's axes and those of the reductions met so far, with their extents.
        conditions: what holds where the rewriting stands, from enclosing reductions.
        path: conditions of the enclosing `Select` branches, up to the next reduction outside.
        made: the new stages, in the order in which they must run.
    """

    stage: core.Stage
    names: Names
    ranges: Ranges
    axes: dict[int, tuple[core.Var, int]] = field(default_factory=dict)
    lets: dict[int, _Let] = field(default_factory=dict)
    conditions: list[_Condition] = field(default_factory=list)
    path: list[core.Expr] = field(default_factory=list)
    made: list[core.Stage] = field(default_factory=list)
    known: dict[object, core.Expr] = field(default_factory=dict)
    assumed: int = 0

    def run(self) -> tuple[core.Stage, ...]:
        """The new stages, then the stage itself."""
        for axis in self.stage.axes:
            self._axis(axis.var, axis.extent)
        top = self.stage.expr
        lets: list[tuple[core.Var, core.Expr]] = []
        while isinstance(top, core.Block):
            lets += top.lets
            top = top.result
        if isinstance(top, core.Reduce):
            for var, value in lets:
                self._bind(var, self._rewrite(value))
            expr: core.Expr = self._with_lets(self._parts(top))
        else:
            expr = self._rewrite(self.stage.expr)
        s = self.stage
        changed = core.Stage(s.name, s.tensor, s.lhs, s.axes, expr, s.span)
        return (*self.made, s if expr is s.expr else changed)

    # ------------------------------------------------------------ rewriting
    def _rewrite(self, expr: core.Expr) -> core.Expr:
        match expr:
            case core.Reduce():
                return self._hoist(expr)
            case core.Block():
                lets = []
                for var, value in expr.lets:
                    lets.append((var, self._rewrite(value)))
                    self._bind(*lets[-1])
                return core.Block(tuple(lets), self._rewrite(expr.result), expr.span)
            case core.Select():
                return self._select(expr)
        return terms.with_children(expr, self._rewrite)

    def _select(self, expr: core.Select) -> core.Expr:
        cond = self._rewrite(expr.cond)
        self.path.append(cond)
        then = self._rewrite(expr.then)
        self.path[-1] = core.Unary("not", cond, cond.dtype)
        other = self._rewrite(expr.other)
        self.path.pop()
        return core.Select(cond, then, other, expr.dtype, expr.border, expr.span)

    def _axis(self, var: core.Var, extent: int) -> None:
        self.axes[var.uid] = (var, extent)
        self.ranges.bind(var, 0, extent - 1)

    def _bind(self, var: core.Var, value: core.Expr) -> None:
        """Notes a let. Where it is used outside the branch it stands in, the branch guards it."""
        self.ranges.bind_let(var, value)
        if self.path and not terms.is_total(value, self.ranges):
            for cond in reversed(self.path):
                value = terms.guarded(cond, value, 0)
        direct = terms.free_uids(value)
        needs = frozenset((*self._used(direct), var.uid))
        self.names.spend(len(needs))
        self.lets[var.uid] = _Let(var, value, self._reach(direct), needs, len(self.lets))

    def _used(self, uids: set[int]) -> list[int]:
        """The lets among ``uids`` and those they use, in the order of their definition."""
        needed: set[int] = set()
        for uid in uids & self.lets.keys():
            needed |= self.lets[uid].needs
        return sorted(needed, key=lambda uid: self.lets[uid].number)

    def _reach(self, uids: set[int]) -> frozenset[int]:
        """The variables behind ``uids``: lets stand for what they vary with."""
        out = uids - self.lets.keys()
        for uid in uids & self.lets.keys():
            out |= self.lets[uid].refs
        return frozenset(out)

    # ------------------------------------------------------------ one reduction
    def _hoist(self, reduce: core.Reduce) -> core.Expr:
        shape = terms.key(reduce)
        around = tuple(condition.number for condition in self.conditions)
        if shape is not None and (shape, around) in self.known:
            return self.known[shape, around]
        name = self._name(reduce.op)
        read = self._stage_of(name, self._parts(reduce))
        if shape is not None:
            self.known[shape, around] = read
        return read

    def _name(self, op: str) -> str:
        number = 0
        while True:
            name = f"{self.stage.name}.{op}{number or ''}"
            if name not in self.names.taken:
                self.names.taken.add(name)
                return name
            number += 1

    def _parts(self, reduce: core.Reduce) -> core.Reduce:
        """The reduction with those inside it hoisted."""
        outer_path, self.path = self.path, []
        mark = len(self.conditions)
        axes = []
        for axis in reduce.axes:
            lo, hi = self._rewrite(axis.lo), self._rewrite(axis.hi)
            axes.append(core.ReduceAxis(axis.var, lo, hi, axis.extent, axis.span))
            self._axis(axis.var, axis.extent)
            self._domain(axes[-1])
        where = None if reduce.where is None else self._rewrite(reduce.where)
        if where is not None:
            for cond in terms.conjuncts(where):
                self._assume(cond)
        body = self._rewrite(reduce.body)
        del self.conditions[mark:]
        self.path = outer_path
        return core.Reduce(reduce.op, tuple(axes), where, body, reduce.dtype, reduce.span)

    def _domain(self, axis: core.ReduceAxis) -> None:
        at = core.VarRef(axis.var)
        if not (isinstance(axis.lo, core.Const) and axis.lo.value <= 0):
            self._assume(core.Binary("ge", at, axis.lo, DType.BOOL))
        if not (isinstance(axis.hi, core.Const) and axis.hi.value >= axis.extent):
            self._assume(core.Binary("lt", at, axis.hi, DType.BOOL))

    def _assume(self, cond: core.Expr) -> None:
        self.assumed += 1
        refs = self._reach(terms.free_uids(cond))
        self.conditions.append(_Condition(cond, refs, self.assumed))

    def _stage_of(self, name: str, reduce: core.Reduce) -> core.Expr:
        """Makes a stage of a reduction without inner ones; returns the read of it."""
        reduce = self._under(self._with_lets(reduce), self._needed(reduce))
        free = terms.free_uids(reduce)
        axes = [self.axes[uid] for uid in self.axes if uid in free]
        renamed = {var.uid: self.names.fresh(var) for var, _ in axes}
        own = tuple(core.Axis(renamed[var.uid], extent) for var, extent in axes)
        for axis in own:
            self.ranges.bind(axis.var, 0, axis.extent - 1)
        shape = tuple(axis.extent for axis in own)
        tensor = core.Tensor(name, reduce.dtype, shape, "stage")
        expr = terms.rename(reduce, renamed)
        lhs = tuple(axis.var for axis in own)
        self.made.append(core.Stage(name, tensor, lhs, own, expr, reduce.span))
        if tensor.dtype.is_int:
            self.ranges.bind_tensor(tensor, self.ranges.of(reduce))
        read = core.Load(tensor, tuple(core.VarRef(var) for var, _ in axes), reduce.span)
        return read if read.dtype is reduce.dtype else core.Cast(read, reduce.dtype, reduce.span)

    def _needed(self, reduce: core.Reduce) -> list[core.Expr]:
        """The conditions that the reduction's reads may rely on, all that share its variables."""
        direct = terms.free_uids(reduce)
        used = [reduce, *(self.lets[uid].value for uid in self._used(direct))]
        if not self.conditions or all(terms.is_total(expr, self.ranges) for expr in used):
            return []
        refs = set(self._reach(direct))
        chosen: set[int] = set()
        grown = True
        while grown:
            grown = False
            for number, condition in enumerate(self.conditions):
                if number not in chosen and condition.refs & refs:
                    chosen.add(number)
                    refs |= condition.refs
                    grown = True
        return [self.conditions[number].expr for number in sorted(chosen)]

    def _under(self, reduce: core.Reduce, conditions: list[core.Expr]) -> core.Reduce:
        """The reduction over nothing where ``conditions`` (of enclosing reductions) fail."""
        if not conditions:
            return reduce
        # Lets are bound inside each term, behind the terms that guard them.
        copies = [self._closed(self._copied(cond)) for cond in conditions]
        whole = copies[-1]
        for cond in reversed(copies[:-1]):
            whole = terms.both(cond, whole, self.ranges)
        axes = tuple(self._guarded_axis(axis, whole) for axis in reduce.axes)
        where = whole if reduce.where is None else terms.both(whole, reduce.where, self.ranges)
        return core.Reduce(reduce.op, axes, where, reduce.body, reduce.dtype, reduce.span)

    def _guarded_axis(self, axis: core.ReduceAxis, cond: core.Expr) -> core.ReduceAxis:
        lo, hi = (
            bound
            if terms.is_total(bound, self.ranges)
            else terms.guarded(self._copied(cond), bound, 0)
            for bound in (axis.lo, axis.hi)
        )
        return core.ReduceAxis(axis.var, lo, hi, axis.extent, axis.span)

    def _copied(self, expr: core.Expr) -> core.Expr:
        self.names.spend(sum(1 for _ in core.walk(expr)))
        return terms.copy(expr, {}, self.names.fresh)

    # ------------------------------------------------------------ lets
    def _with_lets(self, reduce: core.Reduce) -> core.Reduce:
        """The reduction with the lets it uses bound inside its bounds, where and body."""
        if not terms.free_uids(reduce) & self.lets.keys():
            return reduce
        return terms.with_children(reduce, self._closed)  # type: ignore[return-value]

    def _closed(self, expr: core.Expr) -> core.Expr:
        needed = self._used(terms.free_uids(expr))
        if not needed:
            return expr
        renamed: dict[int, core.Var] = {}
        lets = []
        for uid in needed:
            let = self.lets[uid]
            value = terms.rename(self._copied(let.value), renamed)
            renamed[uid] = self.names.fresh(let.var)
            lets.append((renamed[uid], value))
        return core.Block(tuple(lets), terms.rename(expr, renamed), expr.span)
