"""Halves in vectorised loops: converted as whole vectors in front of the loop and behind it.

GCC 12 does not vectorise conversions of single halves. So what a loop reads of neighbouring halves
is brought into floats before it begins, and what it stores is left as floats until it has ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Load, Tensor
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.expr.linear import linear


@dataclass(frozen=True, slots=True)
class Halves:
    """What of a loop is converted as a whole: reads, and stores by the number of the statement."""

    loads: tuple[Load, ...]
    stores: tuple[nest.Store, ...]

    def __bool__(self) -> bool:
        return bool(self.loads or self.stores)


def halves_of(loop: nest.For) -> Halves:
    """The reads and stores of neighbouring halves of a vectorised loop from 0.

    None of a tensor that the loop both reads and writes, unless the one store to it is also the one
    statement that reads it: each lane then reads its own element, before it is written.
    """
    if not (isinstance(loop.lo, core.Const) and loop.lo.value == 0):
        return Halves((), ())
    statements = [
        s for s in nest.statements(loop.body) if isinstance(s, (nest.Store, nest.LetValue))
    ]
    inner = {s.var for s in statements if isinstance(s, nest.LetValue)} | {loop.var}
    stores = [s for s in statements if isinstance(s, nest.Store) and s.tensor.dtype is DType.F16]
    good = {s.tensor.name for s in stores if _alone(s, statements)}
    moved = tuple(
        s for s in stores
        if s.tensor.name in good and _neighbours(s.tensor, s.indices, loop.var, inner)
    )  # fmt: skip
    bad = {s.tensor.name for s in stores} - {s.tensor.name for s in moved}
    loads = dict.fromkeys(
        node
        for statement in statements
        for node in _loads(statement)
        if node.tensor.dtype is DType.F16
        and node.tensor.name not in bad
        and _neighbours(node.tensor, node.indices, loop.var, inner)
    )
    return Halves(tuple(loads), tuple(s for s in moved if not isinstance(s.value, Load)))


def _loads(statement: nest.Stmt) -> list[Load]:
    """What a statement reads; a store that only copies moves bits as they are."""
    if isinstance(statement, nest.Store) and isinstance(statement.value, Load):
        return []
    nodes = (n for e in nest.expressions(statement) for n in core.unique_nodes(e))
    return [node for node in nodes if isinstance(node, Load)]


def _alone(store: nest.Store, statements: list[nest.Store | nest.LetValue]) -> bool:
    """Whether no other statement touches the tensor of a store."""
    name = store.tensor.name
    for other in statements:
        if other is store:
            continue
        written = isinstance(other, nest.Store) and other.tensor.name == name
        nodes = (n for e in nest.expressions(other) for n in core.unique_nodes(e))
        if written or any(isinstance(n, Load) and n.tensor.name == name for n in nodes):
            return False
    return True


def _neighbours(
    tensor: Tensor, indices: tuple[Expr, ...], lane: core.Var, inner: set[core.Var]
) -> bool:
    """Whether lanes touch elements that follow one another in memory."""
    if not indices or any(i.dtype is not DType.S32 for i in indices):
        return False
    *outer, last = indices
    if any(_uses(index, inner) for index in outer):
        return False
    terms = linear(last).terms
    own = [c for atom, c in terms.items() if isinstance(atom, core.VarRef) and atom.var == lane]
    rest = [a for a in terms if not (isinstance(a, core.VarRef) and a.var == lane)]
    return own == [1] and not any(_uses(atom, inner) for atom in rest)


def _uses(expr: Expr, variables: set[core.Var]) -> bool:
    return any(isinstance(n, core.VarRef) and n.var in variables for n in core.unique_nodes(expr))
