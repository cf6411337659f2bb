"""Copies into shared memory: by all threads of a block, neighbours beside neighbours.

Where alignment shows it, a thread moves 16 bytes at once. A copy that is fetched ahead goes
through registers: its loads start before the work on the tile that is there, and what they bring
is stored behind that work, into the other half of the buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.boxes import Box
from edgekernelbench.lowering.emit.context import Context, Storage
from edgekernelbench.lowering.emit.slots import flat_index
from edgekernelbench.lowering.expr.linear import divisible, int_const, linear
from edgekernelbench.lowering.expr.rewrite import substitute
from edgekernelbench.lowering.gpu.device import device_of, strided, under
from edgekernelbench.lowering.gpu.side_by_side import VECTOR_BYTES
from edgekernelbench.lowering.nest import Stmt, Store
from edgekernelbench.lowering.plan import StagePlan, own_axes

TURNED_RUN = 2
"""Vectors along a row that neighbours fetch before the next row, where the copy is turned."""


def is_spread(plan: StagePlan) -> bool:
    """Whether any threads take the elements of a stage in turn, as rules say for a copy."""
    return plan.reduce is None and all(piece.kind == "parallel" for piece in plan.pieces)


@dataclass(slots=True)
class Fetch:
    """The copy of a box of a tensor.

    Attributes:
        lanes: elements that a thread moves at once.
        turned: these lie apart in the copy.
    """

    ctx: Context
    plan: StagePlan
    box: Box
    lanes: int = 1
    turned: bool = False

    @classmethod
    def of(cls, ctx: Context, plan: StagePlan, box: Box) -> Fetch:
        lanes = VECTOR_BYTES // plan.stage.tensor.dtype.bytes
        fetch = cls(ctx, plan, box, lanes)
        if lanes == 1 or not fetch._aligned():
            return cls(ctx, plan, box)
        return replace(fetch, turned=fetch._stride(fetch._copied) != 1)

    @property
    def _copied(self) -> core.Load:
        """An element of the copy, by the axes of its stage."""
        stage = self.plan.stage
        return core.Load(stage.tensor, tuple(core.VarRef(v) for v in stage.lhs))

    @property
    def _axes(self) -> tuple[Var, ...]:
        return tuple(own_axes(self.plan.stage))

    @property
    def count(self) -> int:
        """How many times one of the threads moves something."""
        return prod(self.box[axis].extent for axis in self._axes) // self.lanes

    def copy(self) -> list[Stmt]:
        """From the tensor to its copy."""
        return self._spread(lambda at: self._with(at, lambda value: self._stored(at, value)))

    def load(self, registers: Tensor) -> list[Stmt]:
        """From the tensor to registers, a row for each turn of the thread."""

        def kept(at: _At, value: Expr) -> list[Stmt]:
            return [Store(registers, self._row(at), value)]

        return self._spread(lambda at: self._with(at, lambda value: kept(at, value)))

    def store(self, registers: Tensor) -> list[Stmt]:
        """From registers to the copy."""
        return self._spread(lambda at: self._stored(at, core.Load(registers, self._row(at))))

    def registers(self, out: list[Stmt]) -> Tensor:
        """What each thread keeps of the copy on its way, allocated in ``out``."""
        turns = -(-self.count // device_of(self.ctx).threads)
        name, dtype = f"{self.plan.stage.name}.next", self.plan.stage.tensor.dtype
        return self.ctx.private(name, dtype, (turns * self.lanes,), out)

    # ---------------------------------------------------------- elements
    def _spread(self, leaf: Callable[[_At], list[Stmt]]) -> list[Stmt]:
        sizes = [self.box[axis].extent for axis in self._axes]
        sizes[-1:] = [sizes[-1] // self.lanes] if sizes else []
        names = [axis.name for axis in self._axes]

        def one(number: Expr) -> list[Stmt]:
            lets, indices = self._in_turn(number, names, sizes)
            lane = self.ctx.loop_var("lane", 0, self.lanes - 1)
            point: dict[Var, Expr] = {}
            for axis, index in zip(self._axes, indices, strict=True):
                if axis == self._axes[-1]:
                    index = core.Binary("mul", index, int_const(self.lanes), DType.S32)
                    index = core.Binary("add", index, core.VarRef(lane), DType.S32)
                value = core.Binary("add", self.box[axis].base, index, DType.S32)
                point[axis] = self.ctx.simple(value)
            body = leaf(_At(point, core.VarRef(lane)))
            if self.lanes > 1:
                body = [self.ctx.loop(lane, self.lanes, "vectorize", body)]
            return [*lets, *body]

        return strided(self.ctx, self.count, one, unrolled=True)

    def _in_turn(
        self, number: Expr, names: list[str], sizes: list[int]
    ) -> tuple[list[Stmt], list[Expr]]:
        """What thread by thread is copied, by index.

        Neighbours take neighbours along the last axis. Where these lie apart in the copy, only two
        of them: 32 bytes of memory, and then the next row, which is beside the first in the copy.
        """
        if not self.turned or sizes[-1] % TURNED_RUN or len(sizes) < 2:
            return self.ctx.unfused(number, names, sizes)
        outer, run = sizes[-1] // TURNED_RUN, TURNED_RUN
        lets, indices = self.ctx.unfused(
            number, [names[-1], *names[:-1], names[-1]], [outer, *sizes[:-1], run]
        )
        first = core.Binary("mul", indices[0], int_const(run), DType.S32)
        last = self.ctx.simple(core.Binary("add", first, indices[-1], DType.S32))
        return lets, [*indices[1:-1], last]

    def _with(self, at: _At, use: Callable[[Expr], list[Stmt]]) -> list[Stmt]:
        assert self.plan.value is not None
        lets, value = self.ctx.value(self.plan.value, at.point)
        return [*lets, *use(value)]

    def _stored(self, at: _At, value: Expr) -> list[Stmt]:
        stage = self.plan.stage
        where = tuple(at.point.get(v, core.VarRef(v)) for v in stage.lhs)
        return [self.ctx.store(stage.tensor, where, value)]

    def _row(self, at: _At) -> tuple[Expr, ...]:
        turn = core.Binary("mul", device_of(self.ctx).turn, int_const(self.lanes), DType.S32)
        lane = at.lane if self.lanes > 1 else int_const(0)
        return (self.ctx.simple(core.Binary("add", turn, lane, DType.S32)),)

    # ---------------------------------------------------------- alignment
    def _aligned(self) -> bool:
        """Whether lanes that begin at a multiple of their number lie side by side and aligned, in
        the tensor and, unless they are apart there, in the copy."""
        value = self.plan.value
        axes = self._axes
        if not isinstance(value, core.Load):
            return False
        if not axes or self.box[axes[-1]].extent % self.lanes:
            return False
        if value.tensor.dtype is not self.plan.stage.tensor.dtype:
            return False
        source, there = self._stride(value), self._stride(self._copied)
        return source == 1 and there is not None

    def _stride(self, load: core.Load) -> int | None:
        """The distance of lanes; None where they are side by side, but not aligned."""
        last = self._axes[-1]
        buffer, indices = self.ctx.address(load.tensor, load.indices)
        form = linear(self.ctx.simple(flat_index(indices, buffer.shape)))
        own = core.VarRef(last)
        stride = form.terms.get(own, 0)
        if stride != 1:
            return stride
        rest = substitute(
            self.ctx.simple(flat_index(indices, buffer.shape)), {last: self.box[last].base}
        )
        return 1 if divisible(self.ctx.simple(rest), self.lanes) else None


@dataclass(frozen=True, slots=True)
class _At:
    """One element of a copy, and the lane that it is."""

    point: dict[Var, Expr]
    lane: Expr


@dataclass(slots=True)
class Doubled:
    """Copies that are fetched one iteration of a loop ahead.

    Attributes:
        plans: of the copies.
        boxes: the parts of them that an iteration needs, by its number.
    """

    ctx: Context
    plans: list[StagePlan]
    boxes: Callable[[Expr], dict[str, Box]]
    home: Callable[[str, Box, Expr], Storage]

    def first(self) -> list[Stmt]:
        """Fetches what the first iteration needs, in front of the loop."""
        return self._copies(int_const(0))

    def around(self, turn: Var, last: int, make: Callable[[], list[Stmt]]) -> list[Stmt]:
        """An iteration, its work made by ``make``; what the next one needs comes in meanwhile."""
        here = core.VarRef(turn)
        following = core.Binary("add", here, int_const(1), DType.S32)
        out: list[Stmt] = []
        with self.ctx.below(here, last):
            boxes = self.boxes(self.ctx.simple(following))
            fetches = [Fetch.of(self.ctx, p, boxes[p.stage.name]) for p in self.plans]
            kept = [fetch.registers(out) for fetch in fetches]
            loads = [s for f, r in zip(fetches, kept, strict=True) for s in f.load(r)]
        more = core.Binary("lt", here, int_const(last), DType.BOOL)
        out += [under(more, region, frozenset()) for region in loads]
        with self.ctx.stored(self._storages(here)):
            out += make()
        ahead = frozenset(p.stage.name for p in self.plans)
        with self.ctx.below(here, last), self.ctx.stored(self._storages(following)):
            stores = [s for f, r in zip(fetches, kept, strict=True) for s in f.store(r)]
        return out + [under(more, region, ahead) for region in stores]

    def _copies(self, number: Expr) -> list[Stmt]:
        boxes = self.boxes(number)
        with self.ctx.stored(self._storages(number)):
            fetches = [Fetch.of(self.ctx, p, boxes[p.stage.name]) for p in self.plans]
            return [s for fetch in fetches for s in fetch.copy()]

    def _storages(self, number: Expr) -> dict[str, Storage]:
        number = self.ctx.simple(number)
        half = core.Binary("mod", number, int_const(2), DType.S32)
        boxes = self.boxes(number)
        names = [plan.stage.name for plan in self.plans]
        return {name: self.home(name, boxes[name], half) for name in names}
