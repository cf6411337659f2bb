"""What the printer must know of a function before it begins."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr
from edgekernelbench.lowering import nest

_STACK_BYTES = 1 << 16


def index_variables(function: nest.Function) -> set[int]:
    """Uids of the lets that a place of an access, the head of a loop or a branch depends on."""
    lets: dict[int, Expr] = {}
    pending: list[Expr] = []
    for statement in nest.statements(function.body):
        exprs = nest.expressions(statement)
        match statement:
            case nest.LetValue(var=var, value=value):
                lets[var.uid] = value
            case nest.Store(indices=indices):
                pending += indices
            case nest.Prefetch(indices=indices):
                pending += indices
            case nest.For() | nest.If() | nest.Dot():
                pending += exprs
        loads = (n for e in exprs for n in core.unique_nodes(e) if isinstance(n, core.Load))
        pending += [index for load in loads for index in load.indices]
    found: set[int] = set()
    while pending:
        for node in core.unique_nodes(pending.pop()):
            if isinstance(node, core.VarRef) and node.var.uid not in found:
                found.add(node.var.uid)
                if node.var.uid in lets:
                    pending.append(lets[node.var.uid])
    return found


def tiles(function: nest.Function) -> set[str]:
    """Names of the local buffers whose elements can be registers: once the loops around them are
    unrolled, it is known which element is written where. Compilers must see that nothing else
    points into them, so the other local buffers are hidden from them behind a pointer."""
    found: set[str] = set()
    moving: set[str] = set()
    known: set[core.Var] = set()
    for statement in nest.statements(function.body):
        match statement:
            case nest.For(var=var, kind="unroll" | "vectorize"):
                known.add(var)
            case nest.Alloc(tensor=tensor, scope="local"):
                found.add(tensor.name)
            case (
                nest.Store(tensor=tensor, indices=indices)
                | nest.Dot(tensor=tensor, indices=indices)
            ):
                if any(not _is_known(index, known) for index in indices):
                    moving.add(tensor.name)
            case _:
                pass
    return found - moving


def _is_known(index: Expr, known: set[core.Var]) -> bool:
    leaves = (n for n in core.unique_nodes(index) if isinstance(n, (core.VarRef, core.Load)))
    return all(isinstance(leaf, core.VarRef) and leaf.var in known for leaf in leaves)


def written(function: nest.Function) -> set[str]:
    kinds = (nest.Store, nest.Dot, nest.Stamp)
    return {s.tensor.name for s in nest.statements(function.body) if isinstance(s, kinds)}


def on_stack(allocation: nest.Alloc) -> bool:
    return allocation.scope == "local" and allocation.tensor.bytes <= _STACK_BYTES


def unrolls_alone(body: nest.Stmt) -> bool:
    """Whether compilers unroll the loop around ``body`` by themselves when they are told to."""
    return all(
        not isinstance(s, nest.For) or s.kind in ("vectorize", "unroll")
        for s in nest.statements(body)
    )
