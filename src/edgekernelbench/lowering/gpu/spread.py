"""Loops of a nest whose iterations go to blocks and threads."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from edgekernelbench.ir.core import Expr
from edgekernelbench.lowering.emit.boxes import Box
from edgekernelbench.lowering.gpu.device import device_of, grid, kernel, strided
from edgekernelbench.lowering.gpu.team import Team
from edgekernelbench.lowering.nest import Stmt
from edgekernelbench.lowering.plan import StagePlan, extents_of
from edgekernelbench.targets.model import Gpu

if TYPE_CHECKING:
    from edgekernelbench.lowering.emit.walk import Walker

SPREAD = ("parallel", "block", "thread")
USUAL_THREADS = 128


def spread(walker: Walker, k: int, box: Box) -> list[Stmt]:
    """The loops from piece ``k`` on that are of its kind, as one loop over the device."""
    ctx, piece = walker.ctx, walker.pieces[k]
    device = device_of(ctx)
    if piece in device.digits:
        return walker.iteration(k, [device.digits[piece]], box)
    if device.level == "block" and piece.kind == "thread":
        assert walker.team is not None
        return walker.team.region(ctx, lambda: walker.walk(k, box))
    if device.level == "thread" or (device.level == "block" and piece.kind == "block"):
        return walker.serial(k, box)
    return _fused(walker, k, box)


def _fused(walker: Walker, k: int, box: Box) -> list[Stmt]:
    """Consecutive loops of one kind, as one."""
    ctx, kind = walker.ctx, walker.pieces[k].kind
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
    return grid(ctx, total, one) if device_of(ctx).level == "host" else strided(ctx, total, one)


def power_of_two(wanted: int, least: int, most: int) -> int:
    """The largest power of two up to ``wanted``, kept within bounds that are such powers."""
    return min(most, max(least, 1 << max(1, wanted).bit_length() - 1))


def block_threads(plans: Sequence[StagePlan], gpu: Gpu) -> int:
    """Threads of a block in the kernel of a stage: what its nest says, or what the nests of stages
    placed in it do; else as many as find terms to share.

    Args:
        plans: the stage that has the kernel, and those computed in it.
    """
    for group in (plans[:1], plans[1:]):
        teams = [Team.of(plan, extents_of(plan.stage)) for plan in group]
        stated = [team.total for team in teams if team is not None]
        if stated:
            return min(max(stated), gpu.max_threads)
    shared = [_terms(plan) for plan in plans if plan.cooperative]
    if len(plans) == 1:
        return power_of_two(max(shared, default=1) // 2, gpu.warp, min(256, gpu.max_threads))
    return min(USUAL_THREADS, gpu.max_threads)


def _terms(plan: StagePlan) -> int:
    extents = extents_of(plan.stage)
    return prod(extents[p.axis] for p in plan.pieces if p.reduction and p.kind == "thread")
