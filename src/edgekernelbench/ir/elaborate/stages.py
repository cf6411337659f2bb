"""Stages: left sides, values, and the scope that a body's names live in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.elaborate import calls, coerce, rules
from edgekernelbench.ir.elaborate.context import MAX_STAGES, Context
from edgekernelbench.ir.elaborate.exprs import extent
from edgekernelbench.ir.elaborate.header import fits
from edgekernelbench.ir.elaborate.names import nearest
from edgekernelbench.ir.elaborate.values import (
    POISON,
    Index,
    Number,
    Pending,
    Poison,
    Scalar,
    Scope,
    View,
)


@dataclass(slots=True)
class Body:
    """A compute layer or a template's body while its statements are elaborated.

    Attributes:
        scope: where the stages of this body are named, also those inside loops.
        prefix: what full names start with: "" in the kernel, "a." in a template bound to ``a``.
        targets: local names with another full name than prefix + name: a template's results.
        outputs: declared tensors that stages of this body may define, by local name.
    """

    scope: Scope
    prefix: str = ""
    targets: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, core.Tensor] = field(default_factory=dict)
    defined: dict[str, Span] = field(default_factory=dict)

    @property
    def is_kernel(self) -> bool:
        """The compute layer itself, not a template."""
        return not self.prefix

    def full_name(self, name: str) -> str:
        return self.targets.get(name, self.prefix + name)


@dataclass(frozen=True, slots=True)
class _Left:
    lhs: tuple[core.Var, ...]
    axes: tuple[core.Axis, ...]
    shape: tuple[int, ...]
    lows: tuple[int, ...]
    scope: Scope


def stage(
    cx: Context,
    body: Body,
    scope: Scope,
    stmt: surface.StageStmt,
    pick: Callable[[Scope], Scalar | Poison] | None = None,
) -> list[core.Node]:
    """One stage; an empty list when it has an error, its name then silences what reads it.

    Args:
        pick: elaborates the value where that is not the whole of ``stmt.value``.
    """
    name = stmt.targets[0]
    full = body.full_name(name)
    if not claim(cx, body, name, stmt.name_span):
        return []
    _count(cx, stmt)
    declared = body.outputs.get(name)
    left = _left_side(cx, scope, stmt, declared)
    inner = left.scope if left is not None else _loose_scope(scope, stmt)
    cx.defining.append(full)
    value = calls.scalar(cx, inner, stmt.value) if pick is None else pick(inner)
    cx.defining.pop()
    dtype = _dtype(cx, stmt, declared, value)
    shape_fits = left is not None and _fits_declared(cx, stmt, declared, left)
    stored = None
    if value is not POISON and dtype is not None:
        found = coerce.store(cx, value, dtype, stmt.value, f"`{name}`")
        stored = None if found is POISON else found
    if left is None or dtype is None or not shape_fits:
        _fail(cx, body, name)
        return []
    tensor = declared or core.Tensor(full, dtype, left.shape, "stage")
    if declared is None and not fits(cx, tensor, stmt.name_span):
        _fail(cx, body, name)
        return []
    return _published(cx, body, stmt, left, tensor, stored)


def _published(
    cx: Context,
    body: Body,
    stmt: surface.StageStmt,
    left: _Left,
    tensor: core.Tensor,
    stored: core.Expr | None,
) -> list[core.Node]:
    """The stage, known by its name from here on; nothing but the name without a value."""
    name = stmt.targets[0]
    full = body.full_name(name)
    publish(cx, body, name, View(tensor, left.lows))
    cx.extents[full] = _extent_texts(stmt, tensor)
    if stored is None:
        cx.failed.add(full)
        return []
    made = core.Stage(full, tensor, left.lhs, left.axes, stored, stmt.span)
    if not cx.inferring:
        learn(cx, [made])
    return [made]


def _extent_texts(stmt: surface.StageStmt, tensor: core.Tensor) -> tuple[str, ...]:
    """Extents as written, for suggestions."""
    out = []
    for axis, size in zip(stmt.axes or (), tensor.shape, strict=True):
        out.append(str(size) if axis.extent is None else coerce.show(axis.extent))
    return tuple(out)


def claim(cx: Context, body: Body, name: str, span: Span) -> bool:
    """Reserves a stage's name in its body; False, reported, when it is taken."""
    first = body.defined.get(name)
    found = body.scope.names.get(name)
    free = found is None or isinstance(found, Pending)
    if first is None and free and not (body.is_kernel and is_size(body.scope, name)):
        body.defined[name] = span
        return True
    if first is not None:
        cx.error(
            rules.DEFINED_TWICE,
            f"`{name}` is defined a second time",
            span,
            ["define each tensor in one stage, with `a if cond else b` for its parts",
             "or give this stage another name"],
        )  # fmt: skip
    else:
        kind = "an input or table" if isinstance(found, View) else "a size or `let`"
        cx.error(rules.DEFINED_TWICE, f"`{name}` is already {kind}", span, ["use another name"])
    return False


def is_size(scope: Scope, name: str) -> bool:
    """A size of the header: a number from outside of the compute layer."""
    outside = scope.parent
    return outside is not None and isinstance(outside.find(name), Number)


def publish(cx: Context, body: Body, name: str, view: View) -> None:
    """Makes a stage readable."""
    body.scope.names[name] = view
    full = body.full_name(name)
    cx.declared[full] = view
    if any(view.lows):
        cx.lows[view.tensor.name] = view.lows


def _fail(cx: Context, body: Body, name: str) -> None:
    body.scope.names[name] = POISON
    cx.failed.add(body.full_name(name))


def _count(cx: Context, stmt: surface.StageStmt) -> None:
    cx.stage_count += 1
    if cx.stage_count > MAX_STAGES:
        cx.stop(f"the kernel expands to more than {MAX_STAGES:,} stages", stmt.name_span)


def learn(cx: Context, nodes: list[core.Node]) -> None:
    """Remembers which values integer stages can hold."""
    for _, made in core.stages(tuple(nodes)):
        if not made.tensor.dtype.is_float:
            cx.ranges.bind_tensor(made.tensor, cx.ranges.of(made.expr))


def _dtype(
    cx: Context,
    stmt: surface.StageStmt,
    declared: core.Tensor | None,
    value: Number | core.Expr | object,
) -> DType | None:
    """The dtype stored, from the declaration or else from the value."""
    if declared is not None:
        if stmt.dtype is not None and stmt.dtype is not declared.dtype:
            cx.error(
                rules.OUTPUT_SHAPE,
                f"`{declared.name}` is declared {declared.dtype.value}, not {stmt.dtype.value}",
                stmt.name_span,
            )
        return declared.dtype
    if stmt.dtype is not None:
        return stmt.dtype
    if isinstance(value, Number):
        return coerce.natural(value)
    return None if value is POISON else value.dtype  # type: ignore[union-attr]


def _fits_declared(
    cx: Context, stmt: surface.StageStmt, declared: core.Tensor | None, left: _Left
) -> bool:
    if declared is None or declared.shape == left.shape:
        return True
    name = _label(stmt.targets[0], declared)
    shape = coerce.shape_text(declared.shape)
    help = []
    if not left.shape and stmt.targets[0] == declared.name:
        help = [f"`{declared.name}[{coerce.letters(len(declared.shape))}] = ...`"]
    cx.error(
        rules.OUTPUT_SHAPE,
        f"{name} is declared {shape}, but defined with shape {coerce.shape_text(left.shape)}",
        stmt.name_span,
        help,
    )
    return False


def _label(name: str, declared: core.Tensor) -> str:
    """A stage as messages name it; a template's result with the output it is bound to."""
    return (
        f"`{name}`"
        if name == declared.name
        else f"`{name}`, bound to the output `{declared.name}`,"
    )


# ---------------------------------------------------------------- left side
def _left_side(
    cx: Context, scope: Scope, stmt: surface.StageStmt, declared: core.Tensor | None
) -> _Left | None:
    inner = Scope(scope)
    lhs: list[core.Var] = []
    axes: list[core.Axis] = []
    dims: list[tuple[int, int]] = []
    broken = False
    if declared is None:
        _missing_extents(cx, scope, stmt)
    for position, axis in enumerate(stmt.axes or ()):
        taken = scope.find(axis.name)
        loop = taken if isinstance(taken, Index) and taken.loop is not None else None
        if any(axis.name == var.name for var in lhs):
            cx.error(
                rules.LEFT_SIDE, f"axis `{axis.name}` stands twice on the left side", axis.span
            )
            broken = True
        elif loop is not None and axis.extent is None:
            assert loop.loop is not None
            lhs.append(loop.ref.var)
            dims.append((loop.loop.lo, loop.loop.hi))
        else:
            size = _axis_extent(cx, scope, stmt, axis, declared, position)
            if loop is not None:
                _loop_with_extent(cx, axis)
            broken |= size is None or loop is not None
            var = cx.fresh(axis.name)
            cx.ranges.bind(var, 0, (size or 1) - 1)
            inner.names[axis.name] = Index(core.VarRef(var, axis.span))
            lhs.append(var)
            if size is not None:
                axes.append(core.Axis(var, size, axis.span))
                dims.append((0, size))
    if broken:
        return None
    return _Left(
        tuple(lhs), tuple(axes), tuple(hi for _, hi in dims), tuple(lo for lo, _ in dims), inner
    )


def _loose_scope(scope: Scope, stmt: surface.StageStmt) -> Scope:
    """After an error on the left side: its axis names silence what is built from them."""
    inner = Scope(scope)
    for axis in stmt.axes or ():
        if not isinstance(scope.find(axis.name), Index):
            inner.names[axis.name] = POISON
    return inner


def _loop_with_extent(cx: Context, axis: surface.LeftAxis) -> None:
    cx.error(
        rules.AXIS_REUSED,
        f"`{axis.name}` is the index of a loop around this stage",
        axis.span,
        [f"write it bare, `{axis.name}`, to keep every iteration", "or rename the axis"],
    )


def _axis_extent(
    cx: Context,
    scope: Scope,
    stmt: surface.StageStmt,
    axis: surface.LeftAxis,
    declared: core.Tensor | None,
    position: int,
) -> int | None:
    name = stmt.targets[0]
    if axis.extent is not None:
        return extent(cx, scope, axis.extent, f"the extent of axis `{axis.name}`")
    axes = stmt.axes or ()
    if declared is not None and position < len(declared.shape) == len(axes):
        return declared.shape[position]
    if declared is not None and position == 0:
        shape, given = coerce.shape_text(declared.shape), coerce.counted(len(axes), "axis", "axes")
        cx.error(
            rules.OUTPUT_SHAPE,
            f"`{name}` is declared {shape}, but has {given} here",
            axis.span,
            [f"`{name}[{coerce.letters(len(declared.shape))}] = ...`"],
        )
    return None


def _missing_extents(cx: Context, scope: Scope, stmt: surface.StageStmt) -> None:
    """One error for all axes of a new stage that have no extent, with the left side fixed."""
    missing = [a for a in stmt.axes or () if a.extent is None and not _is_loop(scope, a.name)]
    if not missing:
        return
    parts = []
    for axis in stmt.axes or ():
        if axis.extent is not None:
            parts.append(f"{axis.name}: {coerce.show(axis.extent)}")
        elif axis in missing:
            size = _used_as_index(cx, scope, stmt.value, axis.name)
            parts.append(f"{axis.name}: {size or 'EXTENT'}")
        else:
            parts.append(axis.name)
    names = " and ".join(f"`{a.name}`" for a in missing)
    have = "axis {} has" if len(missing) == 1 else "axes {} have"
    loops = [n for n in scope.visible() if _is_loop(scope, n)]
    cx.error(
        rules.MISSING_EXTENT,
        f"{have.format(names)} no extent in the new stage `{stmt.targets[0]}`",
        missing[0].span,
        [f"`{stmt.targets[0]}[{', '.join(parts)}] = ...`", *nearest(missing[0].name, loops)],
    )


def _is_loop(scope: Scope, name: str) -> bool:
    found = scope.find(name)
    return isinstance(found, Index) and found.loop is not None


def _used_as_index(cx: Context, scope: Scope, expr: surface.Expr, axis: str) -> str | None:
    """The extent, as text, of a dimension that is read with the bare axis."""
    stack: list[object] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, surface.Index):
            view = scope.find(node.base)
            for position, arg in enumerate(node.args):
                bare = isinstance(arg, surface.Name) and arg.id == axis
                if bare and isinstance(view, View) and position < view.rank:
                    at = position + len(view.prefix)
                    texts = cx.extents.get(view.tensor.name)
                    return texts[at] if texts else str(view.tensor.shape[at])
        if isinstance(node, tuple):
            stack += node
        elif hasattr(node, "__dataclass_fields__"):
            stack += [getattr(node, f) for f in node.__dataclass_fields__]  # type: ignore[attr-defined]
    return None
