"""Where a statement runs on a GPU, and the kernels that the host launches.

``host``: between kernels. ``block``: in a kernel, where all threads of a block come by with the
same values of all variables but their own number; barriers may stand here. ``thread``: in what one
thread does by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.expr.linear import int_const
from edgekernelbench.lowering.gpu.barriers import place_barriers
from edgekernelbench.lowering.gpu.side_by_side import stored_side_by_side
from edgekernelbench.lowering.nest import Alloc, For, If, LetValue, Region, Seq, Stmt
from edgekernelbench.lowering.plan import Piece
from edgekernelbench.targets.model import Gpu

if TYPE_CHECKING:
    from edgekernelbench.lowering.emit.context import Context

Level = Literal["host", "block", "thread"]

MAX_UNROLLED_TURNS = 16

Body = Callable[[Expr], list[Stmt]]
"""Statements for an iteration by number."""


@dataclass(slots=True)
class Device:
    """The state of the emission for a GPU.

    Attributes:
        thread: number of the thread within its block, in a kernel.
        threads: how many threads a block of this kernel has.
        shared: shared buffers of this kernel, by role, dtype and shape.
        tiles: shared buffers for parts of stages, by stage and dtype. Copies of one loop body
            (full tiles, the remainder) take turns in one as large as the largest needs.
        turn: in a region whose threads take several iterations in turn, the number of this one.
        digits: in a region of a team, the iteration of each of its loops that this thread has,
            and how many there are.
    """

    gpu: Gpu
    level: Level = "host"
    thread: Var | None = None
    threads: int = 1
    shared: dict[tuple[str, DType, tuple[int, ...]], Tensor] = field(default_factory=dict)
    tiles: dict[tuple[str, DType], Tensor] = field(default_factory=dict)
    turn: Expr = field(default_factory=lambda: int_const(0))
    digits: dict[Piece, tuple[Expr, int]] = field(default_factory=dict)

    @property
    def thread_index(self) -> Expr:
        assert self.thread is not None
        return core.VarRef(self.thread)

    @contextmanager
    def at(self, level: Level) -> Iterator[None]:
        """Within the block statements run at a level further inside."""
        before, self.level = self.level, level
        try:
            yield
        finally:
            self.level = before

    def scratch(self, ctx: Context, role: str, dtype: DType, shape: tuple[int, ...]) -> Tensor:
        """A shared buffer of this kernel, the same one whenever it is asked for in the same way."""
        key = (role, dtype, shape)
        if key not in self.shared:
            self.shared[key] = ctx.buffer(role, dtype, shape)
        return self.shared[key]

    def tile(self, ctx: Context, name: str, dtype: DType, elements: int) -> Tensor:
        """A shared buffer for a part of a stage, one-dimensional."""
        known = self.tiles.get((name, dtype))
        if known is None:
            known = ctx.buffer(name, dtype, (elements,))
        tensor = Tensor(known.name, dtype, (elements,), "stage")
        if elements >= known.size:
            self.tiles[name, dtype] = tensor
        return tensor

    def allocations(self) -> list[Tensor]:
        """All shared buffers of this kernel."""
        return [*self.shared.values(), *self.tiles.values()]


def device_of(ctx: Context) -> Device:
    assert ctx.device is not None
    return ctx.device


def kernel(
    ctx: Context, blocks: int, threads: int, level: Level, make: Callable[[Expr, Expr], list[Stmt]]
) -> list[Stmt]:
    """A kernel whose body ``make`` writes, given the numbers of block and thread."""
    device = device_of(ctx)
    assert device.level == "host", "kernels do not launch kernels"
    block = ctx.loop_var("block", 0, blocks - 1)
    device.thread, device.threads = ctx.loop_var("thread", 0, threads - 1), threads
    device.shared, device.tiles = {}, {}
    with device.at(level):
        body = make(core.VarRef(block), device.thread_index)
    shared: list[Stmt] = [Alloc(tensor, "shared") for tensor in device.allocations()]
    thread, device.thread = device.thread, None
    if not body:
        return []
    if level == "block":
        body = place_barriers(body, thread)
    body = stored_side_by_side(ctx, body)
    check_shared(ctx)
    inner = ctx.loop(thread, threads, "thread", [*shared, *body])
    return [ctx.loop(block, blocks, "block", [inner])]


def grid(ctx: Context, total: int, make: Body) -> list[Stmt]:
    """A kernel with one thread for each of ``total`` iterations."""
    threads = grid_threads(device_of(ctx).gpu, total)

    def body(block: Expr, thread: Expr) -> list[Stmt]:
        return _guarded(ctx, _index(block, threads, thread), blocks * threads, total, make)

    blocks = -(-total // threads)
    return kernel(ctx, blocks, threads, "thread", body)


def strided(ctx: Context, total: int, make: Body, unrolled: bool = False) -> list[Stmt]:
    """``total`` iterations spread over the threads of the block: neighbours go to neighbours.

    Args:
        unrolled: the turns of a thread, where they are few, are written out.
    """
    device = device_of(ctx)
    rounds, threads = -(-total // device.threads), device.threads
    if total == 0:
        return []
    with device.at("thread"):
        if rounds == 1:
            return region(ctx, _guarded(ctx, device.thread_index, threads, total, make))
        turn = ctx.loop_var("turn", 0, rounds - 1)
        index = _index(core.VarRef(turn), threads, device.thread_index)
        device.turn = core.VarRef(turn)
        body = _guarded(ctx, index, rounds * threads, total, make)
        device.turn = int_const(0)
    kind = "unroll" if unrolled and rounds <= MAX_UNROLLED_TURNS else "serial"
    return region(ctx, [ctx.loop(turn, rounds, kind, body)] if body else [])


def under(test: Expr, statement: Stmt, ahead: frozenset[str]) -> Stmt:
    """A region where a test that is the same for all threads holds."""
    assert isinstance(statement, Region)
    return Region((If(test, Seq(statement.body)),), statement.stage, ahead)


def region(ctx: Context, body: list[Stmt]) -> list[Stmt]:
    """What threads do side by side, as one statement."""
    return [Region(tuple(body), ctx.stages[-1] if ctx.stages else "")] if body else []


def one_thread(ctx: Context, make: Callable[[], list[Stmt]]) -> list[Stmt]:
    """What nothing spreads: done by a single thread."""
    device = device_of(ctx)
    if device.level == "host":
        return kernel(ctx, 1, 1, "thread", lambda block, thread: make())
    with device.at("thread"):
        body = make()
    return region(ctx, [first_thread(ctx, body)] if body else [])


def first_thread(ctx: Context, body: list[Stmt]) -> Stmt:
    zero = core.Binary("eq", device_of(ctx).thread_index, int_const(0), DType.BOOL)
    return If(zero, Seq(tuple(body)))


def check_shared(ctx: Context) -> None:
    """Refuses a kernel whose shared buffers do not fit a block."""
    device = device_of(ctx)
    sizes = {tensor.name: tensor.bytes for tensor in device.allocations()}
    total, most = sum(sizes.values()), device.gpu.shared_bytes
    if total <= most:
        return
    terms = " + ".join(f"{size} (`{name}`)" for name, size in sizes.items())
    stage = ctx.stages[0] if ctx.stages else ""
    message = f"a block of `{stage}` would share {terms} = {total} bytes; the target has {most}"
    help = "use smaller steps around what is placed and cached, or place and cache less"
    ctx.refuse(rules.SHARED_BYTES, stage, message, help)


def grid_threads(gpu: Gpu, total: int) -> int:
    """Threads of a block when each iteration has one: few where there are few, so that all
    multiprocessors get some."""
    most = min(256, gpu.max_threads)
    while most > gpu.warp and total < most * gpu.units:
        most //= 2
    return min(most, max(1, total))


def _index(block: Expr, threads: int, thread: Expr) -> Expr:
    first = core.Binary("mul", block, int_const(threads), DType.S32)
    return core.Binary("add", first, thread, DType.S32)


def _guarded(ctx: Context, index: Expr, reach: int, total: int, make: Body) -> list[Stmt]:
    """The body where ``index``, of 0..reach-1, is below ``total``."""
    simple = ctx.simple(index)
    before: list[Stmt] = []
    if not isinstance(simple, core.Const | core.VarRef):
        var = ctx.loop_var("n", 0, reach - 1)
        before.append(LetValue(var, simple))
        simple = core.VarRef(var)
    if reach == total:
        return [*before, *made] if (made := make(simple)) else []
    with ctx.below(simple, total):
        body = make(simple)
    test = core.Binary("lt", simple, int_const(total), DType.BOOL)
    return [*before, If(test, Seq(tuple(body)))] if body else []


def loops_of(kind: str, body: Stmt) -> Iterator[For]:
    """The loops of a kind in a statement, outermost ones first."""
    match body:
        case For():
            if body.kind == kind:
                yield body
            yield from loops_of(kind, body.body)
        case Seq():
            for inner in body.body:
                yield from loops_of(kind, inner)
        case If():
            yield from loops_of(kind, body.then)
            if body.other is not None:
                yield from loops_of(kind, body.other)
        case _:
            return
