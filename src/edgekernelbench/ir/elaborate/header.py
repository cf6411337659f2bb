"""The header: sizes in order, then the tensors in and out."""

from __future__ import annotations

import math
from collections.abc import Mapping

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.elaborate import coerce, rules
from edgekernelbench.ir.elaborate.context import MAX_BYTES, MAX_ELEMENTS, Context
from edgekernelbench.ir.elaborate.exprs import extent, number
from edgekernelbench.ir.elaborate.names import nearest
from edgekernelbench.ir.elaborate.values import POISON, Number, Scope, View


def sizes(
    cx: Context, scope: Scope, items: tuple[surface.Size, ...], given: Mapping[str, int | float]
) -> list[tuple[str, int | float]]:
    """Computes the sizes and binds them in ``scope``; ``given`` replaces those that are numbers."""
    out: list[tuple[str, int | float]] = []
    _check_overrides(cx, items, given)
    for item in items:
        if item.name in scope.names:
            cx.error(rules.DEFINED_TWICE, f"size `{item.name}` is given twice", item.span)
            continue
        if item.name in given and is_given(item.value):
            value: int | float | None = given[item.name]
        else:
            value = number(cx, scope, item.value, f"size `{item.name}`")
        if value is None or (isinstance(value, float) and math.isnan(value)):
            scope.names[item.name] = POISON
            continue
        scope.names[item.name] = Number(value)
        out.append((item.name, value))
    return out


def is_given(value: surface.Expr) -> bool:
    """A size written as a number, not computed from others."""
    while isinstance(value, surface.Unary):
        value = value.arg
    return isinstance(value, surface.Num)


def _check_overrides(
    cx: Context, items: tuple[surface.Size, ...], given: Mapping[str, int | float]
) -> None:
    known = {item.name: item for item in items}
    for name, value in given.items():
        item = known.get(name)
        if item is None:
            cx.error(rules.OVERRIDE, f"there is no size `{name}`", None, nearest(name, known))
        elif not is_given(item.value):
            cx.error(rules.OVERRIDE, f"size `{name}` is computed from others", item.span)
        elif (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            cx.error(rules.OVERRIDE, f"size `{name}` cannot be {value!r}", item.span)
        elif (
            isinstance(value, float)
            and isinstance(item.value, surface.Num)
            and isinstance(item.value.value, int)
        ):
            cx.error(rules.OVERRIDE, f"size `{name}` is an integer, not {value!r}", item.span)


def tensors(
    cx: Context, scope: Scope, params: tuple[surface.Param, ...], kind: core.TensorKind
) -> list[core.Tensor]:
    """The inputs or outputs; inputs are bound in ``scope``, outputs are not readable yet."""
    out: list[core.Tensor] = []
    for param in params:
        if param.name in scope.names or any(t.name == param.name for t in out):
            cx.error(rules.DEFINED_TWICE, f"`{param.name}` is defined twice", param.span)
            continue
        if isinstance(scope.find(param.name), Number):
            text = f"`{param.name}` is also a size"
            cx.error(rules.DEFINED_TWICE, text, param.span, ["rename one of them"])
        tensor = _tensor(cx, scope, param, kind)
        if tensor is None:
            scope.names[param.name] = POISON
            continue
        out.append(tensor)
        cx.extents[param.name] = tuple(coerce.show(d) for d in param.dims)
        if kind == "input":
            scope.names[param.name] = View(tensor, (0,) * len(tensor.shape))
    return out


def _tensor(
    cx: Context, scope: Scope, param: surface.Param, kind: core.TensorKind
) -> core.Tensor | None:
    shape: list[int] = []
    for position, dim in enumerate(param.dims):
        value = extent(cx, scope, dim, f"dimension {position} of `{param.name}`")
        if value is not None:
            shape.append(value)
    if len(shape) != len(param.dims):
        return None
    tensor = core.Tensor(param.name, param.dtype, tuple(shape), kind, param.const)
    return tensor if fits(cx, tensor, param.span) else None


def fits(cx: Context, tensor: core.Tensor, span: surface.Span) -> bool:
    """Books a tensor's bytes against the limits."""
    if tensor.size > MAX_ELEMENTS:
        cx.error(rules.TOO_LARGE, f"`{tensor.name}` would have {tensor.size:,} elements", span)
        return False
    cx.total_bytes += tensor.bytes
    if cx.total_bytes > MAX_BYTES:
        cx.error(
            rules.TOO_LARGE,
            f"with `{tensor.name}` the tensors take {cx.total_bytes / 2**30:.1f} GiB",
            span,
        )
        cx.total_bytes -= tensor.bytes
        return False
    return True
