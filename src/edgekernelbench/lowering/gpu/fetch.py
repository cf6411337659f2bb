"""Copies into shared memory: by all threads of a block, neighbours beside neighbours.

Neighbouring threads take neighbours of the tensor as it is stored. Where alignment shows it, a
thread moves 16 bytes at once. That holds for a copy that lies across the tensor, too, although its
stores then often hit one bank: patches that are a few elements wide in both, as in transpositions,
took up to 1.3 times as long in products on an H200.

A copy that is fetched ahead goes through registers: its loads start before the work on the tile
that is there, and what they bring is stored behind that work, into the other half of the buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.boxes import Box
from edgekernelbench.lowering.emit.context import Context, Storage
from edgekernelbench.lowering.emit.slots import flat_index
from edgekernelbench.lowering.expr.linear import divisible, int_const, linear
from edgekernelbench.lowering.expr.rewrite import free_vars, loads, substitute
from edgekernelbench.lowering.gpu.device import device_of, strided, under
from edgekernelbench.lowering.gpu.side_by_side import VECTOR_BYTES
from edgekernelbench.lowering.nest import Stmt, Store
from edgekernelbench.lowering.plan import StagePlan, own_axes

MOST_APART = 8
"""Lanes whose places in the copy are apart: CUDA has no vector of more places."""


def is_spread(plan: StagePlan) -> bool:
    """Whether any threads take the elements of a stage in turn, as rules say for a copy."""
    return plan.reduce is None and all(piece.kind == "parallel" for piece in plan.pieces)


@dataclass(frozen=True, slots=True)
class _Digit:
    """A part of an element's number: how many steps it counts along an axis, and how wide."""

    axis: Var
    size: int
    step: int = 1


@dataclass(slots=True)
class Fetch:
    """The copy of a box of a tensor.

    Attributes:
        inner: the axis along which neighbours are neighbours in the tensor.
        lanes: elements along it that a thread moves at once.
        digits: what the number of a move says about where, the fastest last.
    """

    ctx: Context
    plan: StagePlan
    box: Box
    inner: Var | None
    lanes: int = 1
    digits: tuple[_Digit, ...] = ()

    @classmethod
    def of(cls, ctx: Context, plan: StagePlan, box: Box) -> Fetch:
        """The copy by the threads of a block, to where the stage is stored now."""
        axes = list(own_axes(plan.stage))
        fetch = cls(ctx, plan, box, axes[-1] if axes else None)
        fetch.inner = next((v for v in reversed(axes) if fetch._runs_along(v)), fetch.inner)
        fetch.lanes = VECTOR_BYTES // plan.stage.tensor.dtype.bytes
        if fetch.inner is not None and fetch._strides(fetch._copied(), fetch.inner) != 1:
            fetch.lanes = min(fetch.lanes, MOST_APART)
        if fetch.lanes < 2 or not fetch._aligned():
            fetch.lanes = 1
        fetch.digits = fetch._ordered()
        return fetch

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
        def one(number: Expr) -> list[Stmt]:
            names = [digit.axis.name for digit in self.digits]
            sizes = [digit.size for digit in self.digits]
            lets, indices = self.ctx.unfused(number, names, sizes)
            lane = self.ctx.loop_var("lane", 0, self.lanes - 1)
            point: dict[Var, Expr] = {axis: self.box[axis].base for axis in self._axes}
            for digit, index in zip(self.digits, indices, strict=True):
                moved = core.Binary("mul", index, int_const(digit.step), DType.S32)
                point[digit.axis] = core.Binary("add", point[digit.axis], moved, DType.S32)
            if self.inner is not None:
                here = core.Binary("add", point[self.inner], core.VarRef(lane), DType.S32)
                point[self.inner] = here
            at = {axis: self.ctx.simple(value) for axis, value in point.items()}
            body = leaf(_At(at, core.VarRef(lane)))
            if self.lanes > 1:
                body = [self.ctx.loop(lane, self.lanes, "vectorize", body)]
            return [*lets, *body]

        return strided(self.ctx, self.count, one, unrolled=True)

    def _ordered(self) -> tuple[_Digit, ...]:
        """The inner axis last."""
        digits = [_Digit(v, self.box[v].extent) for v in self._axes if v != self.inner]
        if self.inner is not None:
            extent = self.box[self.inner].extent
            digits.append(_Digit(self.inner, extent // self.lanes, self.lanes))
        return tuple(digits)

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
    def _copied(self) -> core.Load:
        stage = self.plan.stage
        return core.Load(stage.tensor, tuple(core.VarRef(v) for v in stage.lhs))

    def _runs_along(self, axis: Var) -> bool:
        """Whether elements of the box that differ by one along an axis are neighbours in what is
        read."""
        if self.box[axis].extent == 1 or self.plan.value is None:
            return False
        reads = loads(self.plan.value)
        return bool(reads) and all(self._strides(load, axis) == 1 for load in reads)

    def _aligned(self) -> bool:
        """Whether lanes that begin at a multiple of their number lie side by side and aligned, in
        the tensor and, unless they are apart there, in the copy."""
        value = self.plan.value
        if not isinstance(value, core.Load):
            return False
        if self.inner is None or self.box[self.inner].extent % self.lanes:
            return False
        if value.tensor.dtype is not self.plan.stage.tensor.dtype:
            return False
        if self._strides(value, self.inner) != 1:
            return False
        beside = self._strides(self._copied(), self.inner) == 1
        return self._starts_aligned(value) and (not beside or self._starts_aligned(self._copied()))

    def _address(self, load: core.Load) -> Expr:
        buffer, indices = self.ctx.address(load.tensor, load.indices)
        return self.ctx.simple(flat_index(indices, buffer.shape))

    def _strides(self, load: core.Load, axis: Var) -> int:
        """The distance of neighbours along an axis; 0 where it is not constant, too."""
        form = linear(self._address(load))
        hidden = any(axis in free_vars(atom) for atom in form.terms if atom != core.VarRef(axis))
        return 0 if hidden else form.terms.get(core.VarRef(axis), 0)

    def _starts_aligned(self, load: core.Load) -> bool:
        assert self.inner is not None
        first = substitute(self._address(load), {self.inner: self.box[self.inner].base})
        return divisible(self.ctx.simple(first), self.lanes)


@dataclass(frozen=True, slots=True)
class _At:
    """One element of a copy, and the lane that it is."""

    point: dict[Var, Expr]
    lane: Expr


@dataclass(slots=True)
class Doubled:
    """Copies that are fetched one iteration of a loop ahead.

    Boxes and places are found once, for any iteration, and those of a certain one follow from them:
    how large a box comes out depends on what is known of the iteration, and all must be alike.

    Attributes:
        plans: of the copies.
        turn: the number of an iteration.
        boxes: the parts of the copies that an iteration needs, by ``turn``.
        homes: where they lie in it.
    """

    ctx: Context
    plans: list[StagePlan]
    turn: Var
    boxes: Mapping[str, Box]
    homes: Mapping[str, Storage]

    def first(self) -> list[Stmt]:
        """Fetches what the first iteration needs, in front of the loop."""
        first = int_const(0)
        with self.ctx.stored(self._storages(first)):
            return [s for fetch in self._fetches(first) for s in fetch.copy()]

    def around(self, last: int, make: Callable[[], list[Stmt]]) -> list[Stmt]:
        """An iteration, its work made by ``make``; what the next one needs comes in meanwhile."""
        here = core.VarRef(self.turn)
        following = core.Binary("add", here, int_const(1), DType.S32)
        out: list[Stmt] = []
        with self.ctx.below(here, last):
            with self.ctx.stored(self._storages(following)):
                fetches = self._fetches(following)
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

    def _fetches(self, number: Expr) -> list[Fetch]:
        return [Fetch.of(self.ctx, plan, self._box(plan, number)) for plan in self.plans]

    def _box(self, plan: StagePlan, number: Expr) -> Box:
        box = self.boxes[plan.stage.name]
        return {v: replace(span, base=self._turned(span.base, number)) for v, span in box.items()}

    def _storages(self, number: Expr) -> dict[str, Storage]:
        return {
            name: replace(home, index=tuple(self._turned(index, number) for index in home.index))
            for name, home in self.homes.items()
        }

    def _turned(self, expr: Expr, number: Expr) -> Expr:
        return self.ctx.simple(substitute(expr, {self.turn: number}))
