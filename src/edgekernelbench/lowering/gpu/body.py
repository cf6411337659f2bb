"""Emission of a whole function for a GPU: kernels, and the loops of the host around them."""

from __future__ import annotations

from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Loop, Node, Stage, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.body import BodyEmitter
from edgekernelbench.lowering.emit.context import Storage, seq
from edgekernelbench.lowering.emit.order import body_order
from edgekernelbench.lowering.emit.slots import flat_index
from edgekernelbench.lowering.expr.linear import int_const
from edgekernelbench.lowering.gpu.device import device_of, grid, kernel, strided
from edgekernelbench.lowering.gpu.modes import chain, count_of, results, widest
from edgekernelbench.lowering.gpu.spread import power_of_two
from edgekernelbench.lowering.gpu.team import Team
from edgekernelbench.lowering.nest import LetValue, Stmt
from edgekernelbench.lowering.plan import extents_of


class DeviceBody(BodyEmitter):
    """Emits the nodes of a program."""

    def parts(self, nodes: tuple[Node, ...]) -> list[Stmt]:
        """What is a nest on a CPU is any number of kernels here."""
        return self.nodes(nodes)

    def nodes(self, nodes: tuple[Node, ...]) -> list[Stmt]:
        out: list[Stmt] = []
        for node in body_order(nodes, self.tree):
            if isinstance(node, Stage):
                out.append(seq(self.stages.root(node.name)))
            else:
                out += self._loop(node)
        return out

    def _loop(self, loop: Loop) -> list[Stmt]:
        loops, mode = chain(loop), self.ctx.plan.modes[loop.var]
        total = prod(count_of(one) for one in loops)
        if total == 0:
            return []
        for one in loops:
            self.ctx.ranges[one.var] = (one.lo, one.hi - 1)
        if mode == "block":
            threads = self._threads(loop.body, device_of(self.ctx).gpu.sure_threads)
            return kernel(self.ctx, 1, threads, "block", lambda *_: self._counted_here(loop))
        if mode == "blocks":
            threads = self._threads(loops[-1].body, 256)
            return kernel(self.ctx, total, threads, "block", lambda n, _: self._one(loops, n))
        if mode == "threads":
            spread = grid if device_of(self.ctx).level == "host" else strided
            return spread(self.ctx, total, lambda n: self._one(loops, n))
        return self._counted_here(loop)

    def _counted_here(self, loop: Loop) -> list[Stmt]:
        body = [*self._allocate(loop.var), *self.nodes(loop.body)]
        return [self._counted(loop, count_of(loop), "serial", body)]

    def _allocate(self, owner: Var | None) -> list[Stmt]:
        """What a block shares is allocated with its kernel."""
        for name, plan in self.buffers.items():
            if plan.owner == owner and plan.scope == "shared":
                buffer = device_of(self.ctx).tile(self.ctx, name, plan.dtype, plan.elements)
                index = (flat_index(plan.index, plan.shape),)
                self.ctx.storages[name] = Storage(buffer, plan.formals, index)
        return super()._allocate(owner)

    def _one(self, loops: list[Loop], number: Expr) -> list[Stmt]:
        """One iteration of independent loops that run as one."""
        sizes = [count_of(one) for one in loops]
        lets, indices = self.ctx.unfused(number, [one.var.name for one in loops], sizes)
        for one, index in zip(loops, indices, strict=True):
            value = core.Binary("add", index, int_const(one.lo), DType.S32)
            lets.append(LetValue(one.var, self.ctx.simple(value)))
        own = [statement for one in loops for statement in self._allocate(one.var)]
        return [*own, *lets, *self.nodes(loops[-1].body)]

    def _threads(self, body: tuple[Node, ...], most: int) -> int:
        """Threads that find something to do in a body."""
        gpu = device_of(self.ctx).gpu
        plans = [self.ctx.plan.stages[stage.name] for _, stage in core.stages(body)]
        teams = [Team.of(plan, extents_of(plan.stage)) for plan in plans]
        stated = [team.total for team in teams if team is not None]
        if stated:
            return min(max(stated), gpu.max_threads)
        wanted = max(results(body), widest(body) // gpu.warp)
        return power_of_two(2 * wanted - 1, gpu.warp, min(most, gpu.max_threads))
