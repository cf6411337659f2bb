"""Moves the reductions of one stage into stages of their own."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgekernelbench.ir import core
from edgekernelbench.lowering import _terms as terms

MAX_CARRIED = 1_000_000  # nodes of lets copied into hoisted stages, per program


class NormalizeError(ValueError):
    """The program grows beyond a fixed limit when its reductions become stages."""


@dataclass(slots=True)
class Names:
    """Fresh names and variables of a program, and how much may still be copied."""

    taken: set[str]
    next_uid: int
    room: int

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
        needs: uids of the lets its value uses, directly or not, and its own.
        number: lets are numbered in the order of their definition.
    """

    var: core.Var
    value: core.Expr
    needs: frozenset[int]
    number: int


@dataclass(slots=True)
class Hoister:
    """Rewrites the expression of one stage.

    Attributes:
        axes: the stage's axes and those of the reductions met so far, with their extents.
        made: the new stages, in the order in which they must run.
        known: reads of the new stages, by key of the reduction.
    """

    stage: core.Stage
    names: Names
    axes: dict[int, tuple[core.Var, int]] = field(default_factory=dict)
    lets: dict[int, _Let] = field(default_factory=dict)
    made: list[core.Stage] = field(default_factory=list)
    known: dict[object, core.Expr] = field(default_factory=dict)

    def run(self) -> tuple[core.Stage, ...]:
        """The new stages, then the stage itself."""
        for axis in self.stage.axes:
            self.axes[axis.var.uid] = (axis.var, axis.extent)
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
        return terms.with_children(expr, self._rewrite)

    def _bind(self, var: core.Var, value: core.Expr) -> None:
        needs = frozenset((*self._used(terms.free_uids(value)), var.uid))
        self.names.spend(len(needs))
        self.lets[var.uid] = _Let(var, value, needs, len(self.lets))

    def _used(self, uids: set[int]) -> list[int]:
        """The lets among ``uids`` and those they use, in the order of their definition."""
        needed: set[int] = set()
        for uid in uids & self.lets.keys():
            needed |= self.lets[uid].needs
        return sorted(needed, key=lambda uid: self.lets[uid].number)

    # ------------------------------------------------------------ one reduction
    def _hoist(self, reduce: core.Reduce) -> core.Expr:
        key = terms.key(reduce)
        if key is not None and key in self.known:
            return self.known[key]
        name = self._name(reduce.label)
        read = self._stage_of(name, self._with_lets(self._parts(reduce)))
        if key is not None:
            self.known[key] = read
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
        for axis in reduce.axes:
            self.axes[axis.var.uid] = (axis.var, axis.extent)
        return terms.with_children(reduce, self._rewrite)

    def _stage_of(self, name: str, reduce: core.Reduce) -> core.Expr:
        """Makes a stage of a reduction without inner ones; returns the read of it."""
        free = terms.free_uids(reduce)
        axes = [self.axes[uid] for uid in self.axes if uid in free]
        renamed = {var.uid: self.names.fresh(var) for var, _ in axes}
        own = tuple(core.Axis(renamed[var.uid], extent) for var, extent in axes)
        shape = tuple(axis.extent for axis in own)
        tensor = core.Tensor(name, reduce.dtype, shape, "stage")
        lhs = tuple(axis.var for axis in own)
        expr = terms.rename(reduce, renamed)
        self.made.append(core.Stage(name, tensor, lhs, own, expr, reduce.span))
        read = core.Load(tensor, tuple(core.VarRef(var) for var, _ in axes), reduce.span)
        return read if read.dtype is reduce.dtype else core.Cast(read, reduce.dtype, reduce.span)

    # ------------------------------------------------------------ lets
    def _with_lets(self, reduce: core.Reduce) -> core.Reduce:
        """The reduction with the lets it uses bound inside its bounds, where and body."""
        if not terms.free_uids(reduce) & self.lets.keys():
            return reduce
        return terms.with_children(reduce, self._closed)

    def _closed(self, expr: core.Expr) -> core.Expr:
        needed = self._used(terms.free_uids(expr))
        if not needed:
            return expr
        renamed: dict[int, core.Var] = {}
        lets = []
        for uid in needed:
            let = self.lets[uid]
            self.names.spend(sum(1 for _ in core.walk(let.value)))
            value = terms.copy(let.value, renamed, self.names.fresh)
            renamed[uid] = self.names.fresh(let.var)
            lets.append((renamed[uid], value))
        return core.Block(tuple(lets), terms.rename(expr, renamed), expr.span)
