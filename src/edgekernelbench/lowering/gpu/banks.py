"""Where the rows of a tile in shared memory begin."""

from __future__ import annotations

from edgekernelbench.lowering.emit.context import Context
from edgekernelbench.lowering.expr.rewrite import free_vars
from edgekernelbench.lowering.gpu.side_by_side import VECTOR_BYTES
from edgekernelbench.lowering.gpu.tensor_cores import on_tensor_cores


def rows_apart(ctx: Context, name: str, extents: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of a stage's tile in shared memory. Rows that begin in different banks, an odd
    number of 16 bytes apart, where several are read at once (tensor cores read eight) or written at
    once (a copy that turns its tensor)."""
    plan = ctx.plan
    readers = (plan.stages[reader] for reader in plan.graph.readers(name))
    read = any(on_tensor_cores(ctx, reader) for reader in readers)
    if len(extents) < 2 or not (read or _turned(ctx, name)):
        return extents
    lanes = VECTOR_BYTES // plan.stages[name].stage.tensor.dtype.bytes
    rows = -(-extents[-1] // lanes)
    return (*extents[:-1], (rows | 1) * lanes)


def _turned(ctx: Context, name: str) -> bool:
    """Whether the last dimension of a copied tensor is not the last one of the copy."""
    layout = ctx.plan.layouts.get(name)
    if layout is None or name not in ctx.plan.caches:
        return False
    return layout.formals[-1] not in free_vars(layout.index[-1])
