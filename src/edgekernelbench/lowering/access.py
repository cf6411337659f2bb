"""How a stage reads: which axis runs along which tensor's contiguous dimension, and the work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Stage, Var
from edgekernelbench.lowering.expr.linear import is_index, linear
from edgekernelbench.lowering.expr.rewrite import free_vars
from edgekernelbench.lowering.plan import own_axes, reduce_axes

Stride = Literal["fixed", "contiguous", "strided", "gather"]
"""How the address of a read moves with an axis: not at all, by one element, by more, anyhow."""

TRANSCENDENTAL = frozenset(
    (
        "exp",
        "exp2",
        "log",
        "log2",
        "sin",
        "cos",
        "tan",
        "tanh",
        "erf",
        "atan",
        "atan2",
        "fast_exp",
        "fast_tanh",
        "fast_erf",
    )
)


@dataclass(frozen=True, slots=True)
class Access:
    """One read of a stage's expression, with its stride along each axis."""

    load: core.Load
    strides: Mapping[Var, Stride]


def accesses(stage: Stage) -> tuple[Access, ...]:
    """The reads of a stage, condition and bounds of a reduction included."""
    axes = (*own_axes(stage), *reduce_axes(stage))
    hidden = _let_dependences(stage.expr, set(axes))
    out: list[Access] = []
    for node in core.walk(stage.expr):
        if isinstance(node, core.Load):
            strides: dict[Var, Stride] = {axis: stride(node, axis, hidden) for axis in axes}
            out.append(Access(node, strides))
    return tuple(out)


def _let_dependences(expr: Expr, axes: set[Var]) -> dict[Var, set[Var]]:
    """For each let the axes that its value depends on."""
    lets = {
        var: value
        for node in core.walk(expr)
        if isinstance(node, core.Block)
        for var, value in node.lets
    }
    out: dict[Var, set[Var]] = {}

    def depends(var: Var) -> set[Var]:
        if var not in out:
            out[var] = set()
            for used in free_vars(lets[var]):
                out[var] |= {used} & axes if used not in lets else depends(used)
        return out[var]

    for var in lets:
        depends(var)
    return out


def stride(load: core.Load, axis: Var, hidden: Mapping[Var, set[Var]]) -> Stride:
    """How the address of a load moves when ``axis`` grows by one."""
    result: Stride = "fixed"
    for dim, index in enumerate(load.indices):
        used = free_vars(index)
        if any(axis in hidden.get(var, ()) for var in used):
            return "gather"
        if axis not in used:
            continue
        factor = _factor(index, axis)
        if factor is None or result != "fixed":
            return "gather"
        unit = all(extent == 1 for extent in load.tensor.shape[dim + 1 :])
        result = "contiguous" if unit and factor == 1 else "strided"
    return result


def _factor(index: Expr, axis: Var) -> int | None:
    """The coefficient of an axis in an index; clamps are looked through."""
    match index:
        case core.Binary(op="min" | "max", left=left, right=right):
            inside = [e for e in (left, right) if axis in free_vars(e)]
            return _factor(inside[0], axis) if len(inside) == 1 else None
    if not is_index(index):
        return None
    factor: int | None = None
    for atom, coefficient in linear(index).terms.items():
        if isinstance(atom, core.VarRef) and atom.var == axis:
            factor = coefficient
        elif axis in free_vars(atom):
            clamped = isinstance(atom, core.Binary) and atom.op in ("min", "max")
            inner = _factor(atom, axis) if clamped else None
            if inner is None or factor is not None:
                return None
            factor = inner * coefficient
    return factor


def operations(expr: Expr) -> int:
    """Weighted operations of one evaluation: transcendental functions count ten."""
    count = 0
    for node in core.walk(expr):
        match node:
            case core.Call(fn=fn):
                count += 10 if fn in TRANSCENDENTAL else 1
            case core.Reduce(combiner=combiner) if combiner is not None:
                count += sum(operations(part) for part in combiner.exprs)
            case core.Binary(op="div" | "fdiv" | "mod" | "pow"):
                count += 4
            case core.Binary() | core.Unary() | core.Cast() | core.Select() | core.Load():
                count += 1
            case _:
                pass
    return max(1, count)


def points(stage: Stage) -> int:
    """Iterations of a stage, reduction axes at their full extent."""
    count = 1
    for extent in own_axes(stage).values():
        count *= extent
    for axis in reduce_axes(stage).values():
        count *= axis.extent
    return count


def work(stage: Stage) -> int:
    """Weighted operations of one computation of the whole stage."""
    return points(stage) * operations(stage.expr)
