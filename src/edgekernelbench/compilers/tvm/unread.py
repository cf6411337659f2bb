"""Buffers that are stored to and never read: TVM's storage planner gives their memory away.

Where the life of one buffer ends in the statement, a loop for example, in which that of another one
of its size begins, the planner takes the second to be computed in place of the first, unless a read
shows otherwise. It does not look at stores. So in ``for i: {a[i] = ..; b[i // 2, i % 2] = ..}``
with an ``a`` that nobody reads, later stores to ``a`` destroy what is in ``b`` (found by fuzzing;
`tests/compilers/test_unread.py` has the kernel). What nobody reads is therefore not computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from edgekernelbench.ir import core
from edgekernelbench.lowering import nest

Name = str | int
"""A buffer by its name, a let by the uid of its variable."""


def without_unread(function: nest.Function) -> nest.Function:
    """The function without buffers and lets that no parameter, loop or condition depends on."""
    needed = _needed(function)
    body = _Pruner(needed).pruned(function.body)
    return replace(function, body=nest.Seq(()) if body is None else body)


def _needed(function: nest.Function) -> set[Name]:
    params: set[Name] = {tensor.name for tensor in function.params}
    uses: dict[Name, set[Name]] = {}
    pending = set(params)
    for statement in nest.statements(function.body):
        match statement:
            case nest.Store(tensor=core.Tensor(name=name)) | nest.LetValue(var=core.Var(uid=name)):
                uses.setdefault(name, set()).update(_used(statement))
            case _:
                pending.update(_used(statement))
    found: set[Name] = set()
    while pending:
        name = pending.pop()
        found.add(name)
        pending |= uses.get(name, set()) - found
    return found


def _used(statement: nest.Stmt) -> Iterator[Name]:
    """What a statement reads; of a dot product or a prefetch, all that it mentions."""
    exprs = nest.expressions(statement)
    match statement:
        case nest.Dot(tensor=tensor, a=a, b=b):
            yield from (tensor.name, a.tensor.name, b.tensor.name)
        case nest.Prefetch(tensor=tensor, indices=indices):
            yield tensor.name
            exprs = indices
        case nest.Mma() | nest.Matrices() | nest.Packed():
            raise NotImplementedError("a CPU has no tensor cores")
        case _:
            pass
    for expr in exprs:
        for node in core.unique_nodes(expr):
            if isinstance(node, core.Load):
                yield node.tensor.name
            elif isinstance(node, core.VarRef):
                yield node.var.uid


@dataclass(frozen=True, slots=True)
class _Pruner:
    needed: set[Name]

    def pruned(self, statement: nest.Stmt) -> nest.Stmt | None:
        """None where nothing is left."""
        match statement:
            case nest.Seq(body=body):
                kept = tuple(s for s in map(self.pruned, body) if s is not None)
                return replace(statement, body=kept) if kept else None
            case nest.For(body=body):
                inside = self.pruned(body)
                return None if inside is None else replace(statement, body=inside)
            case nest.If():
                return self._branches(statement)
            case nest.Store(tensor=tensor) | nest.Alloc(tensor=tensor):
                return statement if tensor.name in self.needed else None
            case nest.LetValue(var=var):
                return statement if var.uid in self.needed else None
            case _:
                return statement

    def _branches(self, statement: nest.If) -> nest.If | None:
        then = self.pruned(statement.then)
        other = None if statement.other is None else self.pruned(statement.other)
        if then is None and other is None:
            return None
        return replace(statement, then=nest.Seq(()) if then is None else then, other=other)
