"""Emission of a whole function: stages and loops in a legal order, buffers, parameters."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Loop, Node, Stage, Tensor, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.buffers import BufferPlan
from edgekernelbench.lowering.emit.context import Context, Storage, allocations, seq
from edgekernelbench.lowering.emit.order import body_order
from edgekernelbench.lowering.emit.skew import Grid, lives_in_lanes
from edgekernelbench.lowering.emit.stage import Emitter
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.emit.waves import WaveEmitter
from edgekernelbench.lowering.expr.linear import int_const
from edgekernelbench.lowering.nest import Alloc, LetValue, LoopKind, Part, Stmt
from edgekernelbench.lowering.plan import Wave


class BodyEmitter:
    """Emits the nodes of a program."""

    def __init__(self, ctx: Context, tree: Tree, buffers: dict[str, BufferPlan]) -> None:
        self.ctx = ctx
        self.tree = tree
        self.buffers = buffers
        self.stages = Emitter(ctx, tree)

    def run(self, nodes: tuple[Node, ...]) -> Stmt:
        """The body of the function, workspace included."""
        out = self._allocate(None)
        body = self.parts(nodes)
        return seq([*out, *allocations(self.ctx.frames[0]), *body])

    def _allocate(self, owner: Var | None) -> list[Stmt]:
        """Buffers of whole stages that live inside the loop ``owner`` (None: the function)."""
        out: list[Stmt] = []
        shared: dict[int, Tensor] = {}
        for name, plan in self.buffers.items():
            if plan.owner != owner or plan.scope == "shared":
                continue
            if plan.slot is not None and plan.slot in shared:
                buffer = shared[plan.slot]
            else:
                buffer = self.ctx.buffer(plan.name, plan.dtype, plan.shape)
                out.append(Alloc(buffer, plan.scope))
                if plan.slot is not None:
                    shared[plan.slot] = buffer
            self.ctx.storages[name] = Storage(buffer, plan.formals, plan.index)
        return out

    def parts(self, nodes: tuple[Node, ...]) -> list[Stmt]:
        """The nests of the function, each with the stages that it computes."""
        out: list[Stmt] = []
        for node in body_order(nodes, self.tree):
            if isinstance(node, Stage):
                body = self.stages.root(node.name)
                inside = (name for name in self.tree.members(node.name) if name != node.name)
                stages, loop = (node.name, *inside), ""
            else:
                body = self._loop(node)
                stages = tuple(stage.name for _, stage in core.stages((node,)))
                loop = node.var.name
            if body:
                out.append(Part(tuple(body), stages, loop))
        return out

    def nodes(self, nodes: tuple[Node, ...]) -> list[Stmt]:
        out: list[Stmt] = []
        for node in body_order(nodes, self.tree):
            if isinstance(node, Stage):
                out.append(seq(self.stages.root(node.name)))
            else:
                out += self._loop(node)
        return out

    def _loop(self, loop: Loop) -> list[Stmt]:
        count = loop.hi - loop.lo
        if count <= 0:
            return []
        if loop.var in self.ctx.plan.waves:
            return self._wave(loop, self.ctx.plan.waves[loop.var])
        self.ctx.ranges[loop.var] = (loop.lo, loop.hi - 1)
        if loop.var in self.ctx.plan.parallel_loops:
            with self.ctx.frame() as mine:
                own = self._allocate(loop.var)
                body = self.nodes(loop.body)
                body = [*own, *allocations(mine), *body]
            return [self._counted(loop, count, "parallel", body)]
        return [
            self._counted(
                loop, count, "serial", [*self._allocate(loop.var), *self.nodes(loop.body)]
            )
        ]

    def _wave(self, outer: Loop, wave: Wave) -> list[Stmt]:
        """Two loops by diagonals."""
        (inner,) = outer.body
        assert isinstance(inner, Loop)
        plan, names = self.ctx.plan, [stage.name for _, stage in core.stages(inner.body)]
        grid = Grid(wave, outer, inner)
        exprs = [e for n in names if grid.is_single_valued for e in plan.stages[n].exprs]
        temporaries = [plan.graph.stage(n) for n in names if lives_in_lanes(plan, n)]

        def body() -> list[Stmt]:
            return self.nodes(inner.body)

        def own() -> list[Stmt]:
            return self._allocate(outer.var)

        emitter = WaveEmitter(self.ctx, grid, body, own, tuple(exprs), tuple(temporaries))
        return emitter.emit()

    def _counted(self, loop: Loop, count: int, kind: LoopKind, body: list[Stmt]) -> Stmt:
        """A loop from 0; the index itself is bound inside where it runs otherwise."""
        if loop.lo == 0 and not loop.reverse:
            return self.ctx.loop(loop.var, count, kind, body)
        var = self.ctx.loop_var(f"{loop.var.name}_", 0, count - 1)
        first = int_const(loop.hi - 1 if loop.reverse else loop.lo)
        index = core.Binary("sub" if loop.reverse else "add", first, core.VarRef(var), DType.S32)
        return self.ctx.loop(var, count, kind, [LetValue(loop.var, index), *body])
