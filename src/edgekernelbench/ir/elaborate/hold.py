"""Arguments of macros are computed once: `Lets` collects the bindings around an expression."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.elaborate import build, ops
from edgekernelbench.ir.elaborate.context import Context
from edgekernelbench.ir.elaborate.values import POISON, Number, Poison, Scalar, View


class Lets:
    """Bindings of one block, in order."""

    def __init__(self) -> None:
        self.items: list[tuple[core.Var, core.Expr]] = []

    def hold(self, cx: Context, name: str, value: Scalar | Poison) -> Scalar | Poison:
        """``value`` itself where it may be written twice, else a variable bound to it."""
        if value is POISON or isinstance(value, Number) or build.is_cheap(value):
            return value
        return self.bind(cx, name, value)

    def hold_slice(self, cx: Context, name: str, view: View) -> View:
        """A slice whose indices may be written twice."""
        prefix = []
        for index in view.prefix:
            cheap = build.is_cheap(index)
            prefix.append(index if cheap else self.bind(cx, name, index))
        return View(view.tensor, view.lows, tuple(prefix))

    def bind(self, cx: Context, name: str, value: core.Expr) -> core.Expr:
        if isinstance(value, core.Const | core.VarRef):
            return value
        var = ops.bind(cx, name, value)
        self.items.append((var, value))
        return core.VarRef(var, value.span)

    def wrap(self, result: Scalar | Poison, span: Span) -> Scalar | Poison:
        if result is POISON or isinstance(result, Number) or not self.items:
            return result
        used = {n.var.uid for n in core.walk(result) if isinstance(n, core.VarRef)}
        if not any(var.uid in used for var, _ in self.items):
            return result
        kept = needed(tuple(self.items), used)
        if len(kept) == 1 and isinstance(result, core.VarRef) and _is_component(kept[0][1]):
            return kept[0][1]  # a component taken out of its tuple
        return core.Block(kept, result, span)


def needed(
    lets: tuple[tuple[core.Var, core.Expr], ...], used: set[int]
) -> tuple[tuple[core.Var, core.Expr], ...]:
    """The lets without components of tuples that nothing uses: each is a reduction of its own."""
    kept: list[tuple[core.Var, core.Expr]] = []
    for var, value in reversed(lets):
        if var.uid in used or not _is_component(value):
            kept.append((var, value))
            used |= {n.var.uid for n in core.walk(value) if isinstance(n, core.VarRef)}
    return tuple(reversed(kept))


def _is_component(value: core.Expr) -> bool:
    return isinstance(value, core.Reduce) and value.combiner is not None
