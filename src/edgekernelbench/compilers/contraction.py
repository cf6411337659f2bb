"""Where a product must keep its own rounding.

LLVM contracts ``a * b + c`` into one fused operation wherever the CPU has one. For floats that is
welcome (one rounding less, and half the instructions). It is not where the result becomes an
integer: ``s8(rne(x * scale + zp))`` would round ties differently on CPUs with and without fused
operations, and integers are compared exactly. So products whose value flows into a cast from float
to integer are kept apart, except those that a reduction accumulates (``acc = acc + a * b``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeGuard

from edgekernelbench.ir import core
from edgekernelbench.lowering import nest


@dataclass(slots=True)
class FenceSet:
    """Names of float buffers and uids of lets whose values end up as integers."""

    tensors: set[str] = field(default_factory=set)
    lets: set[int] = field(default_factory=set)

    def covers_store(self, store: nest.Store) -> bool:
        return store.tensor.name in self.tensors

    def covers_let(self, let: nest.LetValue) -> bool:
        return let.var.uid in self.lets


def becomes_integer(node: core.Expr) -> TypeGuard[core.Cast]:
    return isinstance(node, core.Cast) and node.arg.dtype.is_float and not node.dtype.is_float


def accumulation(store: nest.Store) -> core.Binary | None:
    """The top addition of ``T[i] = T[i] + e``, whose products may be fused whatever follows."""
    value = store.value
    if isinstance(value, core.Binary) and value.op in ("add", "sub"):
        for side in (value.left, value.right):
            if isinstance(side, core.Cast):  # an f16 accumulator, which a load widens
                side = side.arg
            if isinstance(side, core.Load) and side.tensor.name == store.tensor.name:
                return value
    return None


def find_fences(functions: tuple[nest.Function, ...]) -> FenceSet:
    """Buffers and lets of a module whose float products must not be contracted."""
    stores: dict[str, list[core.Expr]] = {}
    lets: dict[int, core.Expr] = {}
    pending: list[core.Expr] = []
    for function in functions:
        for statement in nest.statements(function.body):
            match statement:
                case nest.Store(tensor=tensor, value=value):
                    stores.setdefault(tensor.name, []).append(value)
                case nest.LetValue(var=var, value=value):
                    lets[var.uid] = value
                case _:
                    continue
            pending += [n.arg for n in core.unique_nodes(value) if becomes_integer(n)]
    found = FenceSet()
    while pending:
        for node in core.unique_nodes(pending.pop()):
            match node:
                case core.Load(tensor=tensor) if tensor.dtype.is_float:
                    if tensor.name not in found.tensors:
                        found.tensors.add(tensor.name)
                        pending += stores.get(tensor.name, [])
                case core.VarRef(var=var) if var.dtype.is_float:
                    if var.uid not in found.lets:
                        found.lets.add(var.uid)
                        pending += [lets[var.uid]] if var.uid in lets else []
                case _:
                    pass
    return found
