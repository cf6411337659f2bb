"""Buffers of stages that are kept whole: shape, owner, and which of them share memory."""

from __future__ import annotations

from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.nest import Scope
from edgekernelbench.lowering.plan import Plan


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """Storage of one stage.

    Attributes:
        owner: the loop whose body it lives in, None for the whole function.
        slot: buffers with one slot number share an allocation.
        formals, index: where an element is stored, over the stage's dimensions.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    formals: tuple[Var, ...]
    index: tuple[Expr, ...]
    owner: Var | None
    scope: Scope
    slot: int | None = None


def plan_buffers(plan: Plan, tree: Tree, given: frozenset[str]) -> dict[str, BufferPlan]:
    """Buffers of the stages without a tile of their own; ``given`` are parameters."""
    out: dict[str, BufferPlan] = {}
    for name, stage_plan in plan.stages.items():
        if tree.homes[name] is not None or name in given:
            continue
        stage = stage_plan.stage
        layout = plan.layouts.get(name)
        formals = layout.formals if layout else stage.lhs
        index = layout.index if layout else tuple(core.VarRef(v) for v in formals)
        shape = layout.shape if layout else stage.tensor.shape
        owner = _owner(plan, name)
        out[name] = BufferPlan(
            name, stage.tensor.dtype, shape, formals, index, owner, "global", None
        )
    return out


def _owner(plan: Plan, name: str) -> Var | None:
    """The innermost parallel loop around a stage whose iterations have their own copy."""
    place = plan.graph.places[name]
    for loop in reversed(place.loops):
        if loop.var in plan.parallel_loops and loop.var not in place.stage.lhs:
            return loop.var
    return None
