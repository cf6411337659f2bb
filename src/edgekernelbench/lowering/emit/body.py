"""Emission of a whole function: stages and loops in a legal order, buffers, parameters."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Loop, Node, Stage, Tensor, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.buffers import BufferPlan
from edgekernelbench.lowering.emit.context import Context, Storage, allocations, seq
from edgekernelbench.lowering.emit.stage import Emitter
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.expr.linear import int_const
from edgekernelbench.lowering.expr.rewrite import loads
from edgekernelbench.lowering.nest import Alloc, LetValue, LoopKind, Stmt


class Circular(ValueError):
    """The placements leave no order in which the stages can run. ``stages``: those in the way."""

    def __init__(self, stages: tuple[str, ...]) -> None:
        super().__init__("circular placement")
        self.stages = stages


def body_order(nodes: tuple[Node, ...], tree: Tree) -> list[Node]:
    """Nodes of one body in an order that computes everything before its use.

    A placed stage runs with the stage it is placed in. Ties follow the program.

    Raises:
        Circular: there is no such order.
    """
    units: list[tuple[Node, list[str]]] = []
    for node in nodes:
        if isinstance(node, Loop):
            units.append((node, [stage.name for _, stage in core.stages((node,))]))
        elif node.name not in tree.attach:
            units.append((node, tree.members(node.name)))
    owner = {name: k for k, (_, names) in enumerate(units) for name in names}
    waits = [_waits(names, k, owner, tree) for k, (_, names) in enumerate(units)]
    done: set[int] = set()
    out: list[Node] = []
    while len(done) < len(units):
        ready = next((k for k, w in enumerate(waits) if k not in done and w <= done), None)
        if ready is None:
            raise Circular(tuple(units[k][1][0] for k in range(len(units)) if k not in done))
        done.add(ready)
        out.append(units[ready][0])
    return out


def _waits(names: list[str], unit: int, owner: dict[str, int], tree: Tree) -> set[int]:
    """Units that must run before this one: they define what it reads, earlier in the text."""
    graph = tree.graph
    out: set[int] = set()
    for name in names:
        place = graph.places[name]
        for load in loads(place.stage.expr):
            source = load.tensor.name
            earlier = source in owner and graph.places[source].rank < place.rank
            if earlier and owner[source] != unit:
                out.add(owner[source])
    return out


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
        body = self.nodes(nodes)
        return seq([*out, *allocations(self.ctx.frames[0], "global"), *body])

    def _allocate(self, owner: Var | None) -> list[Stmt]:
        """Buffers of whole stages that live inside the loop ``owner`` (None: the function)."""
        out: list[Stmt] = []
        shared: dict[int, Tensor] = {}
        for name, plan in self.buffers.items():
            if plan.owner != owner:
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
        self.ctx.ranges[loop.var] = (loop.lo, loop.hi - 1)
        if loop.var in self.ctx.plan.parallel_loops:
            with self.ctx.frame() as mine:
                own = self._allocate(loop.var)
                body = self.nodes(loop.body)
                body = [*own, *allocations(mine, "global"), *body]
            return [self._counted(loop, count, "parallel", body)]
        return [
            self._counted(
                loop, count, "serial", [*self._allocate(loop.var), *self.nodes(loop.body)]
            )
        ]

    def _counted(self, loop: Loop, count: int, kind: LoopKind, body: list[Stmt]) -> Stmt:
        """A loop from 0; the index itself is bound inside where it runs otherwise."""
        if loop.lo == 0 and not loop.reverse:
            return self.ctx.loop(loop.var, count, kind, body)
        var = self.ctx.loop_var(f"{loop.var.name}_", 0, count - 1)
        first = int_const(loop.hi - 1 if loop.reverse else loop.lo)
        index = core.Binary("sub" if loop.reverse else "add", first, core.VarRef(var), DType.S32)
        return self.ctx.loop(var, count, kind, [LetValue(loop.var, index), *body])
