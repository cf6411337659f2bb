"""Results that a thread has side by side go to memory 16 bytes at once.

An unrolled loop whose iterations store neighbours is cut in two: one computes the values into
registers, one moves them as vectors. A store of four bytes by each thread, 16 apart, takes memory
four times as many transactions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.slots import flat_index
from edgekernelbench.lowering.expr.linear import divisible, int_const, linear
from edgekernelbench.lowering.expr.rewrite import free_vars, loads, substitute
from edgekernelbench.lowering.nest import Alloc, For, If, LetValue, Seq, Stmt, Store, statements

if TYPE_CHECKING:
    from edgekernelbench.lowering.emit.context import Context

VECTOR_BYTES = 16


def stored_side_by_side(ctx: Context, body: list[Stmt]) -> list[Stmt]:
    """The body of a kernel with its stores of neighbours as vectors."""
    found = (s for top in body for s in statements(top))
    own = frozenset(s.tensor.name for s in found if isinstance(s, Alloc))
    return [_Rewriter(ctx, own).run(statement) for statement in body]


@dataclass(frozen=True, slots=True)
class _Rewriter:
    """``own``: buffers that are allocated in the kernel."""

    ctx: Context
    own: frozenset[str]

    def run(self, statement: Stmt) -> Stmt:
        match statement:
            case For():
                made = self._vectors(statement)
                return made or replace(statement, body=self.run(statement.body))
            case Seq():
                return replace(statement, body=tuple(self.run(s) for s in statement.body))
            case If():
                other = None if statement.other is None else self.run(statement.other)
                return replace(statement, then=self.run(statement.then), other=other)
            case _:
                return statement

    def _vectors(self, loop: For) -> Stmt | None:
        """The loop in two, None where it does not store neighbours only."""
        extent = loop.extent.value if isinstance(loop.extent, core.Const) else 0
        parts = loop.body.body if isinstance(loop.body, Seq) else (loop.body,)
        store = parts[-1] if parts else None
        if loop.kind != "unroll" or not isinstance(store, Store):
            return None
        before = parts[:-1]
        if not all(isinstance(s, LetValue) for s in before) or store.tensor.name in self.own:
            return None
        exprs = [s.value for s in before if isinstance(s, LetValue)]
        read = {load.tensor.name for e in (store.value, *exprs) for load in loads(e)}
        lanes = self._lanes(loop, store, int(extent))
        named = {s.var for s in before if isinstance(s, LetValue)}
        moves = any(named & free_vars(index) for index in store.indices)
        if lanes < 2 or moves or store.tensor.name in read:
            return None
        row = self.ctx.buffer(f"{store.tensor.name}.row", store.tensor.dtype, (int(extent),))
        kept = Store(row, (core.VarRef(loop.var),), store.value)
        computed = replace(loop, body=Seq((*before, kept)))
        moved = [self._moved(loop, store, row, at, lanes) for at in range(0, int(extent), lanes)]
        return Seq((Alloc(row, "local"), computed, *moved))

    def _moved(self, loop: For, store: Store, row: core.Tensor, first: int, lanes: int) -> Stmt:
        lane = self.ctx.loop_var("lane", 0, lanes - 1)
        place = core.Binary("add", int_const(first), core.VarRef(lane), DType.S32)
        here: Expr = self.ctx.simple(place)
        where = tuple(self.ctx.simple(substitute(i, {loop.var: here})) for i in store.indices)
        return self.ctx.loop(
            lane, lanes, "vectorize", [Store(store.tensor, where, core.Load(row, (here,)))]
        )

    def _lanes(self, loop: For, store: Store, extent: int) -> int:
        """How many neighbours may be stored at once, aligned."""
        place = self.ctx.simple(flat_index(store.indices, store.tensor.shape))
        form = linear(place)
        own = core.VarRef(loop.var)
        hidden = any(loop.var in free_vars(atom) for atom in form.terms if atom != own)
        zero = isinstance(loop.lo, core.Const) and loop.lo.value == 0
        if hidden or not zero or form.terms.get(own) != 1 or store.tensor.dtype is DType.BOOL:
            return 1
        first = self.ctx.simple(substitute(place, {loop.var: int_const(0)}))
        lanes = VECTOR_BYTES // store.tensor.dtype.bytes
        while lanes > 1 and (extent % lanes or not divisible(first, lanes)):
            lanes //= 2
        return lanes
