"""What every part of the emission shares: storage of tensors, ranges, fresh names, workspace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor, Var
from edgekernelbench.ir.diagnostics import Rule
from edgekernelbench.ir.diagnostics import Span as TextSpan
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.expr.linear import int_const
from edgekernelbench.lowering.expr.ranges import range_of
from edgekernelbench.lowering.expr.rewrite import (
    Names,
    flatten,
    free_vars,
    map_children,
    substitute,
)
from edgekernelbench.lowering.expr.simplify import simplify
from edgekernelbench.lowering.gpu.device import Device
from edgekernelbench.lowering.nest import Alloc, For, LetValue, LoopKind, Seq, Stmt, Store
from edgekernelbench.lowering.plan import Plan
from edgekernelbench.targets.model import Target

MAX_LOCAL_BYTES = 4 * 1024
MAX_LEAVES = 4096


Frame = dict[tuple[str, str, DType, tuple[int, ...]], Tensor]
"""Workspace of a function or of a parallel body, by role, name, dtype and shape."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Where elements of a tensor live: ``buffer[index]``, with ``index`` over ``formals``."""

    buffer: Tensor
    formals: tuple[Var, ...]
    index: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a placed stage cannot be computed where it is placed."""

    rule: Rule
    stage: str
    message: str
    help: str
    span: TextSpan | None = None


@dataclass(slots=True)
class Context:
    """State of the emission of one function. ``storages`` maps tensor names to storage.

    Attributes:
        ranges: of every loop variable and let emitted so far (they are unique).
        frames: workspace of the function and of the parallel bodies around this point.
        taken: how often each buffer name was asked for.
        problems: placements that turn out not to work; what is emitted then is of no use.
        stages: the stages being emitted, from outside in.
        leaves: innermost bodies emitted so far.
        derived: loop indices that are no loops here, but follow from others. They are replaced
            after simplification, which knows their ranges.
        device: where on a GPU statements run at this point, None on a CPU.
    """

    plan: Plan
    target: Target
    names: Names
    storages: dict[str, Storage] = field(default_factory=dict)
    ranges: dict[Var, tuple[int, int]] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=lambda: [{}])
    taken: dict[str, int] = field(default_factory=dict)
    problems: dict[tuple[str, Rule], Problem] = field(default_factory=dict)
    stages: list[str] = field(default_factory=list)
    leaves: int = 0
    derived: dict[Var, Expr] = field(default_factory=dict)
    device: Device | None = None

    # ---------------------------------------------------------- expressions
    def simple(self, expr: Expr) -> Expr:
        out = simplify(expr, self.ranges)
        if not self.derived or not free_vars(out) & self.derived.keys():
            return out
        return simplify(substitute(out, self.derived), self.ranges)

    def value(self, expr: Expr, values: Mapping[Var, Expr]) -> tuple[list[Stmt], Expr]:
        """The expression at a point of the loop nest.

        Args:
            expr: over axes and loop indices of the program.
            values: what the axes are here.

        Returns:
            scalar bindings that it needs, and the value; loads address buffers.
        """
        placed = self.simple(substitute(expr, values))
        lets, flat = flatten(self.addressed(placed), self.names)
        out: list[Stmt] = []
        for var, value in lets:
            if not value.dtype.is_float:
                self.ranges[var] = range_of(value, self.ranges)
            out.append(LetValue(var, value))
        return out, flat

    def addressed(self, expr: Expr) -> Expr:
        """The expression with its loads, outermost first, at their buffers."""
        if isinstance(expr, core.Load):
            return self.load(expr.tensor, expr.indices)
        return map_children(expr, self.addressed)

    def address(self, tensor: Tensor, indices: tuple[Expr, ...]) -> tuple[Tensor, tuple[Expr, ...]]:
        """Where an element is stored.

        Indices, and those of a tile's first element, may read tensors themselves. Equal reads
        cancel first; those that remain are at their buffers in the result.
        """
        storage = self.storages.get(tensor.name)
        if storage is not None:
            values = dict(zip(storage.formals, indices, strict=True))
            indices = tuple(substitute(index, values) for index in storage.index)
            tensor = storage.buffer
        return tensor, tuple(self.addressed(self.simple(index)) for index in indices)

    def load(self, tensor: Tensor, indices: tuple[Expr, ...]) -> core.Load:
        return core.Load(*self.address(tensor, indices))

    def store(self, tensor: Tensor, indices: tuple[Expr, ...], value: Expr) -> Store:
        buffer, where = self.address(tensor, indices)
        return Store(buffer, where, value)

    def refuse(
        self, rule: Rule, stage: str, message: str, help: str, span: TextSpan | None = None
    ) -> None:
        """Reports a stage at ``span``, or at the line that decides where it runs."""
        self.problems.setdefault((stage, rule), Problem(rule, stage, message, help, span))

    def range_of(self, expr: Expr) -> tuple[int, int]:
        """Lowest and highest value of an integer expression over buffers and loop variables."""
        return range_of(expr, self.ranges)

    def spend(self) -> bool:
        """Counts one innermost body; False when there are too many already."""
        self.leaves += 1
        if self.leaves <= MAX_LEAVES:
            return True
        name = self.stages[0] if self.stages else ""
        message = f"the loops of `{name}` need too many copies of their body"
        self.refuse(rules.COPIES, name, message, "use steps that divide what they cut")
        return False

    # ---------------------------------------------------------- loops
    def loop_var(self, name: str, low: int, high: int) -> Var:
        """A fresh variable that runs over low..high (inclusive)."""
        var = self.names.var(name)
        self.ranges[var] = (low, high)
        return var

    @contextmanager
    def below(self, index: Expr, bound: int) -> Iterator[None]:
        """Within the block ``index < bound`` holds: what stands under that condition."""
        if not isinstance(index, core.VarRef) or bound <= 0:
            yield
            return
        low, high = self.ranges[index.var]
        self.ranges[index.var] = (low, min(high, bound - 1))
        try:
            yield
        finally:
            self.ranges[index.var] = (low, high)

    def unfused(
        self, fused: Expr, names: Sequence[str], sizes: Sequence[int]
    ) -> tuple[list[Stmt], list[Expr]]:
        """The indices of nested loops of ``sizes`` that run as one, and the lets they need."""
        lets: list[Stmt] = []
        indices: list[Expr] = []
        rest = prod(sizes)
        for q, (name, size) in enumerate(zip(names, sizes, strict=True)):
            rest //= size
            value = core.Binary("fdiv", fused, int_const(rest), DType.S32)
            if q:
                value = core.Binary("mod", value, int_const(size), DType.S32)
            simple = self.simple(value)
            if not isinstance(simple, core.Const | core.VarRef):
                var = self.loop_var(name, 0, size - 1)
                lets.append(LetValue(var, simple))
                simple = core.VarRef(var)
            indices.append(simple)
        return lets, indices

    def loop(self, var: Var, extent: int, kind: LoopKind, body: list[Stmt]) -> For:
        return For(var, int_const(0), int_const(extent), kind, Seq(tuple(body)))

    @contextmanager
    def frame(self) -> Iterator[Frame]:
        """A parallel body: workspace asked for inside belongs to its iterations."""
        mine: Frame = {}
        self.frames.append(mine)
        try:
            yield mine
        finally:
            self.frames.pop()

    def buffer(self, name: str, dtype: DType, shape: tuple[int, ...]) -> Tensor:
        """A new buffer; its name is made unique within the function."""
        count = self.taken.get(name, 0)
        self.taken[name] = count + 1
        return Tensor(f"{name}~{count}" if count else name, dtype, shape, "stage")

    def tile(
        self, role: str, name: str, dtype: DType, shape: tuple[int, ...], out: list[Stmt]
    ) -> Tensor:
        """A buffer for a part of a stage: on the stack where it is small (appended to ``out``).

        Large ones last for the innermost frame. Copies of one loop body (full tiles, the
        remainder) share them: they never run at once.
        """
        if dtype.bytes * prod(shape) <= MAX_LOCAL_BYTES:
            tensor = self.buffer(name, dtype, shape)
            out.append(Alloc(tensor, "local"))
            return tensor
        return self.workspace(role, name, dtype, shape)

    def private(self, name: str, dtype: DType, shape: tuple[int, ...], out: list[Stmt]) -> Tensor:
        """A buffer of each thread of a block, appended to ``out``; meant for registers."""
        if dtype.bytes * prod(shape) > MAX_LOCAL_BYTES:
            self._too_private(dtype.bytes * prod(shape))
        tensor = self.buffer(name, dtype, shape)
        out.append(Alloc(tensor, "local"))
        return tensor

    def _too_private(self, taken: int) -> None:
        stage = self.stages[-1] if self.stages else ""
        message = f"each thread would keep {taken} bytes of `{stage}`"
        help = "unroll fewer loops, or move loops outside the reduction"
        self.refuse(rules.THREAD_TILE, stage, message, help)

    def workspace(self, role: str, name: str, dtype: DType, shape: tuple[int, ...]) -> Tensor:
        """A buffer of the innermost frame; outside parallel bodies all threads share it.

        Inside a kernel there is none to be had: it is refused there.
        """
        if self.device is not None and self.device.level != "host":
            self._too_private(dtype.bytes * prod(shape))
        key = (role, name, dtype, shape)
        if key not in self.frames[-1]:
            self.frames[-1][key] = self.buffer(name, dtype, shape)
        return self.frames[-1][key]

    @contextmanager
    def stored(self, storages: Mapping[str, Storage]) -> Iterator[None]:
        """Within the block, some tensors live elsewhere."""
        saved = dict(self.storages)
        self.storages.update(storages)
        try:
            yield
        finally:
            self.storages.clear()
            self.storages.update(saved)


def reload(tensor: Tensor, where: tuple[Expr, ...]) -> Expr:
    """An element of an accumulator in its own dtype: a load of f16 widens."""
    value = core.Load(tensor, where)
    return value if value.dtype is tensor.dtype else core.Cast(value, tensor.dtype)


def allocations(frame: Frame) -> list[Stmt]:
    """Allocates the workspace that a frame collected."""
    return [Alloc(tensor, "global") for tensor in frame.values()]


def seq(body: list[Stmt]) -> Stmt:
    """The statements as one; nested sequences without allocations or lets are merged."""
    flat: list[Stmt] = []
    for statement in body:
        if type(statement) is Seq and not any(
            isinstance(s, Alloc | LetValue) for s in statement.body
        ):
            flat.extend(statement.body)
        else:
            flat.append(statement)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))
