"""``scatter v`` in a `loops` line: where in the nest elements land along an axis."""

from __future__ import annotations

from edgekernelbench.ir import surface
from edgekernelbench.ir.core import Binary, Expr, Reduce, Select, Stage, Var, walk
from edgekernelbench.ir.diagnostics import Report
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.expr.rewrite import free_vars
from edgekernelbench.lowering.gpu.defaults import lands_atomically
from edgekernelbench.lowering.passes.scatter import scatters
from edgekernelbench.lowering.plan import own_axes, reduce_axes


def resolve_landing(
    stage: Stage, line: surface.LoopsLine, axes: list[Var], placed: bool, report: Report
) -> tuple[Var, int] | None:
    """The axis that elements land along, and the number of loops outside; None without a scatter
    (or after an error).

    Args:
        axes: of the pieces of the line.
        placed: the nest is for a tile inside another stage's loop.
    """
    marks = [k for k, piece in enumerate(line.pieces) if piece.annotation == "scatter"]
    if not marks:
        return None
    at, axis = marks[0], axes[marks[0]]
    piece = line.pieces[at]
    if len(marks) > 1:
        message = f"elements land along `{axis.name}` already"
        report.error(rules.SCATTER, message, line.pieces[marks[1]].span, ["keep one `scatter`"])
    elif axes.count(axis) > 1:
        message = f"`{axis.name}` has loops, and elements land along it"
        help = [f"`scatter {axis.name}` is all that the nest says of `{axis.name}`"]
        report.error(rules.SCATTER, message, piece.span, help)
    elif placed:
        message = f"`{stage.name}` is placed in another stage's loop: a scatter runs on its own"
        help = [f"leave `{stage.name}` unplaced", f"or loop over `{axis.name}`: drop `scatter`"]
        report.error(rules.SCATTER, message, piece.span, help)
    elif axis not in scatters(stage):
        message, help = _no_scatter(stage, axis)
        report.error(rules.SCATTER, message, piece.span, help)
    elif _inside(stage, line, axes, at, report):
        return axis, at
    return None


def _no_scatter(stage: Stage, axis: Var) -> tuple[str, list[str]]:
    """Why nothing lands along an axis, and what to write instead."""
    able = [var.name for var in scatters(stage)]
    if able:
        return f"nothing lands along `{axis.name}`", [f"`scatter {able[0]}`"]
    form = f"`sum[p: L where idx[p] == {axis.name}](...)`"
    reduce = stage.expr
    if not isinstance(reduce, Reduce) or reduce.where is None:
        return f"`{stage.name}` has no condition that says what lands where", [f"state it: {form}"]
    if reduce.op in ("argmax", "argmin", "combine"):
        message = f"elements of `{reduce.label}` cannot land one by one"
        return message, [f"loop over `{axis.name}`: drop `scatter`"]
    if _behind_a_guard(reduce.where, axis):
        message = f"what `{axis.name}` is compared with is read only where another condition holds"
        return message, ["read it with `edge(...)` or `pad(..., -1)`, which is safe everywhere"]
    message = f"the condition of `{stage.name}` does not compare `{axis.name}` with data alone"
    return message, [f"the form is {form}, with an s32", f"or drop `scatter` from `{axis.name}`"]


def _behind_a_guard(where: Expr, axis: Var) -> bool:
    """Whether a comparison with the axis stands in one branch of a choice."""
    return any(
        isinstance(node, Select)
        and any(
            isinstance(part, Binary) and part.op == "eq" and axis in free_vars(part)
            for branch in (node.then, node.other)
            for part in walk(branch)
        )
        for node in walk(where)
    )


def _inside(
    stage: Stage, line: surface.LoopsLine, axes: list[Var], at: int, report: Report
) -> bool:
    """Whether all loops that decide where an element lands run outside, one step at a time."""
    inner, axis = reduce_axes(stage), axes[at]
    deciding = free_vars(scatters(stage)[axis].index) & own_axes(stage).keys() | inner.keys()
    before = len(report.items)
    for k, piece in enumerate(line.pieces):
        name = axes[k].name
        if axes[k] not in deciding:
            if piece.annotation == "vectorize" and k < at:
                message = f"the lanes of `{name}` are outside `scatter {axis.name}`"
                report.error(rules.SCATTER, message, piece.span, ["move it behind `scatter`"])
        elif piece.annotation == "vectorize":
            message = f"elements along `{name}` land one after another: lanes could meet"
            help = [f"drop `vectorize`, or vectorise an axis other than `{name}` and `{axis.name}`"]
            report.error(rules.SCATTER, message, piece.span, help)
        elif k > at:
            message = f"`{name}` says where an element lands, and runs inside `scatter {axis.name}`"
            report.error(rules.SCATTER, message, piece.span, [f"move `{name}` in front of it"])
    return len(report.items) == before


def check_atomic(stage: Stage, line: surface.LoopsLine, depth: int, report: Report) -> None:
    """Refuses a scatter of a GPU whose result would depend on the order in which threads come.

    Args:
        depth: the number of loops outside the point where elements land.
    """
    if not lands_atomically(stage):
        assert isinstance(stage.expr, Reduce)
        kind = f"a {stage.expr.dtype.value} {stage.expr.label}"
        message = f"`{stage.name}` is {kind}: its elements cannot land from many threads at once"
        help = [
            "sums, minima and maxima of s32 and u32 over constant ranges can",
            f"drop the `loops` line: the rules compute `{stage.name}` in an order of its own",
        ]
        report.error(rules.ATOMIC, message, line.span, help)
    for piece in line.pieces[depth + 1 :]:
        if piece.annotation in ("parallel", "block", "thread"):
            message = f"`{piece.annotation} {piece.axis}` behind `scatter`"
            help = [f"move it in front, or write `{piece.axis}` as a plain loop"]
            report.error(rules.ATOMIC, message, piece.span, help)
