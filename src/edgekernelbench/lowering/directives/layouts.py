"""``layout T [k, j] -> [j // 32, k, j % 32]`` lines: index maps, their ranges, their soundness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.core import Expr, Tensor, Var
from edgekernelbench.ir.diagnostics import Diagnostic, Report
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.directives.values import Numbers
from edgekernelbench.lowering.expr.linear import const_value
from edgekernelbench.lowering.expr.ranges import range_of
from edgekernelbench.lowering.expr.rewrite import Names, free_vars
from edgekernelbench.lowering.expr.simplify import simplify
from edgekernelbench.lowering.plan import Layout

MAX_GROWTH = 4
MAX_DIMS = 12
MAX_POINTS = 1 << 22

_OPS: dict[str, core.ArithOp] = {"+": "add", "-": "sub", "*": "mul", "//": "fdiv", "%": "mod"}


@dataclass(slots=True)
class LayoutResolver:
    """Checks layout lines of one memory layer."""

    numbers: Numbers
    names: Names
    report: Report

    def resolve(self, line: surface.LayoutLine, tensor: Tensor) -> Layout | None:
        """The index map of a tensor, None after a diagnostic."""
        if not self._binds(line, tensor):
            return None
        formals = tuple(self.names.var(name) for name in line.axes)
        ranges = {v: (0, n - 1) for v, n in zip(formals, tensor.shape, strict=True)}
        scope = {var.name: var for var in formals}
        index: list[Expr] = []
        for expr in line.target:
            made = self._map(expr, scope)
            if made is None:
                return None
            index.append(simplify(made, ranges))
        return self._checked(line, tensor, formals, index, ranges)

    def _binds(self, line: surface.LayoutLine, tensor: Tensor) -> bool:
        rank = len(tensor.shape)
        if len(line.axes) != rank:
            message = f"`{tensor.name}` has {rank} dimensions, the layout names {len(line.axes)}"
            help = [f"its shape is [{', '.join(map(str, tensor.shape))}]"]
            self.report.error(rules.LAYOUT_AXES, message, line.span, help)
            return False
        if len(set(line.axes)) != rank:
            self.report.error(rules.LAYOUT_AXES, "a name stands for two dimensions", line.span)
            return False
        if not 1 <= len(line.target) <= MAX_DIMS:
            message = f"a layout with {len(line.target)} dimensions"
            self.report.error(rules.LAYOUT_MAP, message, line.span, [f"1 to {MAX_DIMS}"])
            return False
        return True

    # ---------------------------------------------------------- the map
    def _map(self, expr: surface.Expr, scope: Mapping[str, Var]) -> Expr | None:
        match expr:
            case surface.Name(id=name) if name in scope:
                return core.VarRef(scope[name])
            case surface.Binary(op=op) if op in _OPS and _mentions(expr, scope):
                return self._operation(expr, scope)
            case _ if not _mentions(expr, scope):
                value = self.numbers.evaluate(expr)
                if isinstance(value, Diagnostic):
                    self.report.add(value)
                    return None
                return core.Const(value, DType.S32)
            case _:
                return self._unusable(expr, scope)

    def _operation(self, expr: surface.Binary, scope: Mapping[str, Var]) -> Expr | None:
        left, right = self._map(expr.left, scope), self._map(expr.right, scope)
        if left is None or right is None:
            return None
        number = const_value(right)
        if expr.op in ("//", "%") and (number is None or number < 1):
            return self._unusable(expr, scope, "divide by a number from 1")
        if expr.op == "*" and number is None and const_value(left) is None:
            return self._unusable(expr, scope, "multiply an axis by a number only")
        return core.Binary(_OPS[expr.op], left, right, DType.S32)

    def _unusable(self, expr: surface.Expr, scope: Mapping[str, Var], help: str = "") -> None:
        names = ", ".join(scope)
        ways = [help] if help else [f"for example `{next(iter(scope), 'k')} // 32`; axes: {names}"]
        self.report.error(rules.LAYOUT_MAP, "this is no index of a layout", expr.span, ways)

    # ---------------------------------------------------------- soundness
    def _checked(
        self,
        line: surface.LayoutLine,
        tensor: Tensor,
        formals: tuple[Var, ...],
        index: list[Expr],
        ranges: Mapping[Var, tuple[int, int]],
    ) -> Layout | None:
        shape: list[int] = []
        for expr, written in zip(index, line.target, strict=True):
            low, high = range_of(expr, ranges)
            if low < 0:
                message = f"this index runs from {low}"
                self.report.error(rules.LAYOUT_MAP, message, written.span, ["start at 0"])
                return None
            shape.append(high + 1)
        if np.prod(shape, dtype=object) > MAX_GROWTH * max(tensor.size, 256):
            message = f"the layout takes {np.prod(shape, dtype=object)} elements for {tensor.size}"
            help = ["use tiles that fit the extents better"]
            self.report.error(rules.LAYOUT_SIZE, message, line.span, help)
            return None
        try:
            clash = find_clash(formals, index, tensor.shape)
        except TooManyPoints:
            message = "the layout mixes axes of a tensor that is too large to check"
            help = ["give each axis indices of its own, such as `k // 32` and `k % 32`"]
            self.report.error(rules.NOT_INJECTIVE, message, line.span, help)
            return None
        if clash is not None:
            names = ", ".join(line.axes)
            places = " and ".join(f"[{', '.join(map(str, point))}]" for point in clash)
            message = f"the elements [{names}] = {places} get the same place"
            help = [f"mention every axis: where `{line.axes[0]} // 32` stands, `% 32` must too"]
            self.report.error(rules.NOT_INJECTIVE, message, line.span, help)
            return None
        return Layout(formals, tuple(index), tuple(shape))


def _mentions(expr: surface.Expr, scope: Mapping[str, Var]) -> bool:
    match expr:
        case surface.Name(id=name):
            return name in scope
        case surface.Unary(arg=arg):
            return _mentions(arg, scope)
        case surface.Binary(left=left, right=right):
            return _mentions(left, scope) or _mentions(right, scope)
        case surface.Call(args=args) | surface.Index(args=args):
            return any(_mentions(a, scope) for a in args)
        case _:
            return False


def find_clash(
    formals: tuple[Var, ...], index: Sequence[Expr], shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Two elements that an index map sends to one place, None when it is injective.

    Axes that share no index are checked apart, each group by enumeration.

    Raises:
        TooManyPoints: a group has more points than can be enumerated.
    """
    for group in _groups(formals, index):
        axes = [k for k, var in enumerate(formals) if var in group]
        extents = [shape[k] for k in axes]
        count = int(np.prod(extents, dtype=object))
        if count > MAX_POINTS:
            raise TooManyPoints
        grid = {formals[k]: g for k, g in zip(axes, np.indices(extents, sparse=True), strict=True)}
        ranges = {formals[k]: (0, shape[k] - 1) for k in axes}
        flat: np.ndarray = np.zeros((), dtype=np.int64)
        for expr in index:
            if free_vars(expr) & group:
                flat = flat * (range_of(expr, ranges)[1] + 1) + _evaluate(expr, grid)
        flat = np.broadcast_to(flat, extents).ravel()
        counts = np.bincount(flat)
        if counts.max(initial=0) > 1:
            first, second = np.flatnonzero(flat == int(counts.argmax()))[:2]
            a, b = (np.unravel_index(at, extents) for at in (first, second))
            return _complete(a, axes, len(shape)), _complete(b, axes, len(shape))
    return None


class TooManyPoints(ValueError):
    """An index map mixes axes of a large tensor: whether it is injective is not worked out."""


def _groups(formals: tuple[Var, ...], index: Sequence[Expr]) -> list[set[Var]]:
    """Axes connected by the indices that mention them together."""
    groups: list[set[Var]] = [{var} for var in formals]
    for expr in index:
        used = free_vars(expr)
        touching = [g for g in groups if g & used]
        if len(touching) > 1:
            groups = [g for g in groups if g not in touching] + [set().union(*touching)]
    return groups


def _evaluate(expr: Expr, grid: Mapping[Var, np.ndarray]) -> np.ndarray:
    """Values of an index, along the dimensions of the grid that it depends on only."""
    match expr:
        case core.Const(value=value):
            return np.full((), int(value), dtype=np.int64)
        case core.VarRef(var=var):
            return grid[var]
        case core.Unary(op="neg", arg=arg):
            return -_evaluate(arg, grid)
        case core.Binary(op=op, left=left, right=right):
            a, b = _evaluate(left, grid), _evaluate(right, grid)
            match op:
                case "add":
                    return a + b
                case "sub":
                    return a - b
                case "mul":
                    return a * b
                case "fdiv":
                    return a // b
                case "mod":
                    return a % b
    raise TypeError(f"{type(expr).__name__} in a layout")


def _complete(point: Sequence[Any], axes: list[int], rank: int) -> tuple[int, ...]:
    out = [0] * rank
    for value, axis in zip(point, axes, strict=True):
        out[axis] = int(value)
    return tuple(out)
