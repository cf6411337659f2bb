"""Loops of a nest whose iterations go to blocks and threads."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from edgekernelbench.ir.core import Expr
from edgekernelbench.lowering.emit.boxes import Box
from edgekernelbench.lowering.gpu.device import device_of, grid, kernel, strided
from edgekernelbench.lowering.nest import Stmt
from edgekernelbench.lowering.plan import StagePlan, extents_of
from edgekernelbench.targets.model import Gpu

if TYPE_CHECKING:
    from edgekernelbench.lowering.emit.walk import Walker

SPREAD = ("parallel", "block", "thread")


def spread(walker: Walker, k: int, box: Box) -> list[Stmt]:
    """The loops from piece ``k`` on that are of its kind, as one loop over the device."""
    ctx, kind = walker.ctx, walker.pieces[k].kind
    level = device_of(ctx).level
    if level == "thread" or (level == "block" and kind == "block"):
        return walker.serial(k, box)
    if level == "host" and kind == "thread":
        return kernel(ctx, 1, walker.threads, "block", lambda *_: spread(walker, k, box))
    end = k
    while end < len(walker.pieces) and walker.pieces[end].kind == kind:
        end += 1
    sizes = walker.sizes(k, end, box)
    total = prod(sizes)

    def one(index: Expr) -> list[Stmt]:
        names = [piece.name for piece in walker.pieces[k:end]]
        lets, indices = ctx.unfused(index, names, sizes)
        return lets + walker.iteration(k, list(zip(indices, sizes, strict=True)), box)

    if kind == "block":
        return kernel(ctx, total, walker.threads, "block", lambda block, _: one(block))
    return grid(ctx, total, one) if level == "host" else strided(ctx, total, one)


def block_threads(plan: StagePlan, gpu: Gpu) -> int:
    """Threads of a block in the kernel of a stage whose nest says ``block`` and ``thread``."""
    extents = extents_of(plan.stage)
    terms = prod(extents[p.axis] for p in plan.pieces if p.reduction and p.kind == "thread")
    return power_of_two(terms // 2, gpu.warp, min(256, gpu.max_threads))


def power_of_two(wanted: int, least: int, most: int) -> int:
    """The largest power of two up to ``wanted``, kept within bounds that are such powers."""
    return min(most, max(least, 1 << max(1, wanted).bit_length() - 1))
