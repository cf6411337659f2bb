"""Emission of the tile that a warp computes on tensor cores.

Each step along the reduction axis brings the fragments of both factors into registers, then every
row of fragments meets every column. Fragments come from shared memory four matrices of eight rows
at once where rows (or, to be transposed, columns) lie side by side and aligned, else value by
value from anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.emit.boxes import Box, Span
from edgekernelbench.lowering.emit.context import Context
from edgekernelbench.lowering.emit.slots import flat_index
from edgekernelbench.lowering.emit.walk import at, plus
from edgekernelbench.lowering.expr.linear import divisible, int_const, linear, to_expr
from edgekernelbench.lowering.expr.rewrite import free_vars, substitute
from edgekernelbench.lowering.gpu.device import device_of
from edgekernelbench.lowering.gpu.fragments import ROWS, Factors, axes_of, factors
from edgekernelbench.lowering.nest import LetValue, Matrices, Mma, Packed, Stmt
from edgekernelbench.lowering.plan import StagePlan

REGISTERS = 4
"""Of 32 bits, that a thread has of a fragment."""

MAX_UNROLLED_STEPS = 8

Target = Callable[[Box, Expr | None], tuple[Tensor, tuple[Expr, ...]]]


def on_tensor_cores(ctx: Context, plan: StagePlan) -> bool:
    """Whether the target computes the fragments of a nest at once."""
    return plan.first_fragment < len(plan.pieces) and ctx.target.backend == "cuda"


@dataclass(frozen=True, slots=True)
class Lane:
    """A thread in its warp: ``4 row + pair``, and ``16 high + 8 low + line``."""

    row: Expr
    pair: Expr
    line: Expr
    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class Side:
    """One factor: its axis, and which bit of a register's number says in which half of eight
    rows, and in which half of the reduction values, it lies."""

    load: core.Load
    axis: Var
    row_bit: int

    @property
    def chunk(self) -> int:
        """Values in 16 bytes: half of the reduction values of a fragment."""
        return 16 // self.load.tensor.dtype.bytes


@dataclass(slots=True)
class TensorCores:
    """The innermost statements of a nest that ends in fragments, in a region of its team.

    Attributes:
        target: where a result is kept.
    """

    ctx: Context
    plan: StagePlan
    target: Target

    def emit(self, box: Box) -> list[Stmt]:
        row, column, depth = axes_of(self.plan.pieces)
        found = self._factors(row, column)
        if not self._fits(box, {row: ROWS, column: ROWS, depth: found.depth}):
            return []
        out: list[Stmt] = []
        lane = self._lane(out)
        steps = box[depth].extent // found.depth
        left, right = Side(found.left, row, 0), Side(found.right, column, 1)
        registers = [self._registers(side, box, out) for side in (left, right)]
        step = self.ctx.loop_var("step", 0, steps - 1)
        number: Expr = core.VarRef(step) if steps > 1 else int_const(0)
        body: list[Stmt] = []
        base = plus(box[depth].base, number, found.depth) if steps > 1 else box[depth].base
        here = {**box, depth: Span(self.ctx.simple(base), found.depth)}
        for side, kept in zip((left, right), registers, strict=True):
            for tile in range(box[side.axis].extent // ROWS):
                body += self._load(side, kept, tile, here, lane)
        body += self._products(here, registers, row, column)
        if steps == 1:
            return [*out, *body]
        kind = "unroll" if steps <= MAX_UNROLLED_STEPS else "serial"
        return [*out, self.ctx.loop(step, steps, kind, body)]

    def _factors(self, row: Var, column: Var) -> Factors:
        assert self.plan.reduce is not None
        found = factors(self.plan.reduce, row, column)
        assert found is not None
        return found

    def _fits(self, box: Box, units: Mapping[Var, int]) -> bool:
        """Whether a box holds whole fragments. Of a stage that is placed it is known here only."""
        for axis, unit in units.items():
            if box[axis].extent % unit or box[axis].limit is not None:
                name = self.plan.stage.name
                message = f"`mma` of `{name}` is left {box[axis].extent} of `{axis.name}`"
                help = f"place it where whole multiples of {unit} of `{axis.name}` are due"
                self.ctx.refuse(rules.MMA_TILE, name, message, help)
                return False
        return True

    def _registers(self, side: Side, box: Box, out: list[Stmt]) -> Tensor:
        count = REGISTERS * (box[side.axis].extent // ROWS)
        return self.ctx.private(f"{side.load.tensor.name}.part", DType.U32, (count,), out)

    def _lane(self, out: list[Stmt]) -> Lane:
        """The thread's numbers, bound to names in ``out``."""
        digits = device_of(self.ctx).digits
        own = [p for p in self.plan.pieces if p.fragment and p.kind == "thread"]
        row, pair = (digits[piece][0] for piece in own)
        half = core.Binary("fdiv", row, int_const(4), DType.S32)
        low = core.Binary("mod", row, int_const(4), DType.S32)
        low = core.Binary("fdiv", low, int_const(2), DType.S32)
        line = core.Binary("mod", row, int_const(2), DType.S32)
        line = plus(pair, line, 4)
        named = (("line", line, 8), ("low", low, 2), ("high", half, 2))
        values = [self._bound(name, value, count, out) for name, value, count in named]
        return Lane(row, pair, *values)

    def _bound(self, name: str, value: Expr, count: int, out: list[Stmt]) -> Expr:
        var = self.ctx.loop_var(name, 0, count - 1)
        out.append(LetValue(var, self.ctx.simple(value)))
        return core.VarRef(var)

    # ---------------------------------------------------------- fragments
    def _load(self, side: Side, kept: Tensor, tile: int, box: Box, lane: Lane) -> list[Stmt]:
        """Fragment number ``tile`` of a factor."""
        run = _Run(self.ctx, side, box, tile, self._depth)
        found = run.runs()
        if found is None:
            return self._packed(run, kept, tile, lane)
        low, high = lane.low, lane.high
        eight, chunk = (low, high) if side.row_bit == 0 else (high, low)
        if found == "rows":
            row, value = plus(lane.line, eight, 8), self._times(chunk, side.chunk)
        else:
            row, value = self._times(eight, 8), plus(lane.line, chunk, 8)
        source = run.element(row, value)
        return [Matrices(kept, REGISTERS * tile, source, found == "columns")]

    def _packed(self, run: _Run, kept: Tensor, tile: int, lane: Lane) -> list[Stmt]:
        """The same value by value."""
        out: list[Stmt] = []
        width = 4 // run.side.load.tensor.dtype.bytes
        for register in range(REGISTERS):
            bits = register & 1, register >> 1
            eight, chunk = bits if run.side.row_bit == 0 else bits[::-1]
            row = _shifted(lane.row, 8 * eight)
            first = _shifted(self._times(lane.pair, width), run.side.chunk * chunk)
            elements = [run.value(row, _shifted(first, k), out) for k in range(width)]
            out.append(Packed(kept, REGISTERS * tile + register, tuple(elements)))
        return out

    @property
    def _depth(self) -> Var:
        return axes_of(self.plan.pieces)[2]

    def _times(self, value: Expr, factor: int) -> Expr:
        return self.ctx.simple(core.Binary("mul", value, int_const(factor), DType.S32))

    # ---------------------------------------------------------- products
    def _products(self, box: Box, registers: list[Tensor], row: Var, column: Var) -> list[Stmt]:
        out: list[Stmt] = []
        left, right = registers
        for i in range(box[row].extent // ROWS):
            for j in range(box[column].extent // 8):
                places = [
                    self._place(box, {row: ROWS * i + 8 * a, column: 8 * j + b})
                    for a in range(2)
                    for b in range(2)
                ]
                tensor = places[0][0]
                indices = tuple(where for _, where in places)
                out.append(Mma(tensor, indices, left, REGISTERS * i, right, 2 * j, self._kinds))
        return out

    def _place(self, box: Box, offsets: Mapping[Var, int]) -> tuple[Tensor, tuple[Expr, ...]]:
        """Where the thread keeps a result; which thread it is makes no difference to that."""
        point = {axis: Span(at(box[axis], offset), 1) for axis, offset in offsets.items()}
        tensor, where = self.target({**box, **point}, None)
        return tensor, tuple(self.ctx.simple(index) for index in where)

    @property
    def _kinds(self) -> tuple[DType, DType]:
        row, column, _ = axes_of(self.plan.pieces)
        found = self._factors(row, column)
        return found.left.tensor.dtype, found.right.tensor.dtype


def _shifted(value: Expr, offset: int) -> Expr:
    return to_expr(linear(value).shifted(offset), value.dtype)


@dataclass(slots=True)
class _Run:
    """The addresses of one fragment."""

    ctx: Context
    side: Side
    box: Box
    tile: int
    depth: Var

    def runs(self) -> Literal["rows", "columns"] | None:
        """Where 16 aligned bytes lie side by side in shared memory: in ``rows`` (along the
        reduction axis) or in ``columns``; None where they lie in neither."""
        chunk = self.side.chunk
        row = self.ctx.loop_var("row", 0, ROWS - 1)
        value = self.ctx.loop_var("value", 0, 2 * chunk - 1)
        element = self.element(core.VarRef(row), core.VarRef(value))
        if element.tensor.name not in {t.name for t in device_of(self.ctx).allocations()}:
            return None
        place = flat_index(element.indices, element.tensor.shape)
        form = linear(self.ctx.simple(place))
        hidden = (atom for atom in form.terms if not isinstance(atom, core.VarRef))
        first = substitute(place, {row: int_const(0), value: int_const(0)})
        jumps = any({row, value} & free_vars(atom) for atom in hidden)
        if jumps or not divisible(self.ctx.simple(first), chunk):
            return None
        along_rows, along_values = (form.terms.get(core.VarRef(v), 0) for v in (row, value))
        if along_values == 1 and along_rows % chunk == 0:
            return "rows"
        turned = self.side.load.tensor.dtype is DType.F16
        return "columns" if turned and along_rows == 1 and along_values % chunk == 0 else None

    def _values(self, row: Expr, value: Expr) -> dict[Var, Expr]:
        values = {axis: span.base for axis, span in self.box.items()}
        values[self.side.axis] = plus(at(self.box[self.side.axis], ROWS * self.tile), row)
        values[self.depth] = plus(self.box[self.depth].base, value)
        return values

    def element(self, row: Expr, value: Expr) -> core.Load:
        """Where a value of the fragment is stored."""
        values = self._values(row, value)
        load = self.side.load
        indices = tuple(self.ctx.simple(substitute(index, values)) for index in load.indices)
        return self.ctx.load(load.tensor, indices)

    def value(self, row: Expr, value: Expr, out: list[Stmt]) -> core.Load:
        """The same anywhere; what its address depends on is computed in ``out``."""
        lets, found = self.ctx.value(self.side.load, self._values(row, value))
        out += lets
        assert isinstance(found, core.Load)
        return found
