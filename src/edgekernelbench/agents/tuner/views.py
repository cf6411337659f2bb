"""What the tuner sees of a program: its stages, their axes, and how each operand is read.

Works on the normalised program, whose stage names are those of the schedule layer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.affine import Affine, affine
from edgekernelbench.lowering.dots.product import refusal

_COSTLY = frozenset(("exp", "exp2", "log", "log2", "sin", "cos", "tan", "tanh", "erf", "atan"))


@dataclass(frozen=True, slots=True)
class AxisView:
    """An axis of a stage; ``uid`` names it within index expressions."""

    name: str
    uid: int
    extent: int


@dataclass(frozen=True, slots=True)
class Read:
    """One load of a stage. ``dims`` has the affine form of each index, None where there is none."""

    tensor: core.Tensor
    dims: tuple[Affine | None, ...]

    def strides(self, uid: int) -> tuple[int | None, ...]:
        """Coefficient of a variable in each index; None where the index is not affine."""
        return tuple(None if d is None else dict(d.terms).get(uid, 0) for d in self.dims)

    def lane_form(self, uid: int) -> str:
        """How lanes along a variable read: ``broadcast``, ``contiguous``, ``strided``, ``gather``.

        ``strided``: one index other than the last moves by one, so a layout can make it
        contiguous.
        """
        strides = self.strides(uid)
        if None in strides:
            return "gather"
        moving = [(dim, s) for dim, s in enumerate(strides) if s]
        if not moving:
            return "broadcast"
        if len(moving) > 1 or moving[0][1] != 1:
            return "gather"
        return "contiguous" if moving[0][0] == len(strides) - 1 else "strided"


@dataclass(frozen=True, slots=True)
class StageView:
    """A stage as a scheduling problem.

    Attributes:
        kind: ``reduce`` or ``map``.
        spatial, reduction: axes in order; loop indices around the stage are not among them.
        reads: every load in the expression.
        work: scalar operations of the whole stage over all iterations, roughly.
        loops: names of the enclosing ``seq`` and ``each`` loops.
        serial: all of these are ``seq``, so that a nest inside may use all cores.
        repeats: iterations of these loops together.
        serial: whether all of these are ``seq``, so that a nest inside may use all cores.
        repeats: iterations of these loops together.
        output: writes an output of the kernel, or a history.
        costly: contains a transcendental.
        bytes: a sum of products of bytes, such as `dot4` takes.
    """

    name: str
    kind: str
    spatial: tuple[AxisView, ...]
    reduction: tuple[AxisView, ...]
    reads: tuple[Read, ...]
    work: float
    loops: tuple[str, ...]
    serial: bool
    repeats: int
    output: bool
    costly: bool
    rectangular: bool
    tensor: core.Tensor
    bytes: bool

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal for stages that are likely to want the same nest."""
        forms = tuple(
            (read.tensor.const, *(read.lane_form(a.uid) for a in (*self.spatial, *self.reduction)))
            for read in self.reads
        )
        return (self.kind, len(self.spatial), len(self.reduction), forms)

    def reads_of(self, name: str) -> tuple[Read, ...]:
        return tuple(read for read in self.reads if read.tensor.name == name)


def view_program(program: core.Program) -> tuple[StageView, ...]:
    """The stages of a normalised program, in its order."""
    outputs = {tensor.name for tensor in program.outputs}
    return tuple(
        _view(loops, stage, stage.tensor.name in outputs)
        for loops, stage in core.stages(program.body)
    )


def _view(loops: tuple[core.Loop, ...], stage: core.Stage, output: bool) -> StageView:
    spatial = tuple(AxisView(a.var.name, a.var.uid, a.extent) for a in stage.axes)
    reduce = stage.expr if isinstance(stage.expr, core.Reduce) else None
    axes = () if reduce is None else reduce.axes
    reduction = tuple(AxisView(a.var.name, a.var.uid, a.extent) for a in axes)
    variables = {a.uid: a for a in (*spatial, *reduction)} | {lo.var.uid: lo for lo in loops}
    lets = _affine_lets(stage.expr, variables)
    reads: list[Read] = []
    operations = 0.0
    costly = False
    for node in core.walk(stage.expr):
        match node:
            case core.Load():
                reads.append(
                    Read(node.tensor, tuple(affine(i, variables, lets) for i in node.indices))
                )
            case core.Call():
                operations += 10 if node.fn in _COSTLY else 1
                costly |= node.fn in _COSTLY
            case core.Binary() | core.Select() | core.Unary():
                operations += 1
    points = math.prod(a.extent for a in (*spatial, *reduction))
    repeats = math.prod(max(0, loop.hi - loop.lo) for loop in loops)
    return StageView(
        name=stage.name,
        kind="map" if reduce is None else "reduce",
        spatial=spatial,
        reduction=reduction,
        reads=tuple(reads),
        work=max(1.0, operations) * points * repeats,
        loops=tuple(loop.var.name for loop in loops),
        serial=all(loop.kind == "seq" for loop in loops),
        repeats=repeats,
        output=output or len(stage.lhs) > len(stage.axes),
        costly=costly,
        rectangular=all(a.is_constant for a in axes)
        and (reduce is None or reduce.op not in ("argmax", "argmin", "combine")),
        tensor=stage.tensor,
        bytes=all(a.is_constant for a in axes) and refusal(stage) is None,
    )


def _affine_lets(expr: core.Expr, variables: Mapping[int, object]) -> dict[int, Affine | None]:
    lets: dict[int, Affine | None] = {}
    for node in core.walk(expr):
        if isinstance(node, core.Block):
            for var, value in node.lets:
                lets[var.uid] = affine(value, variables, lets)
    return lets


def readers(views: tuple[StageView, ...], name: str) -> tuple[StageView, ...]:
    """Stages that read a stage."""
    return tuple(v for v in views if any(r.tensor.name == name for r in v.reads))
