"""Plausible inputs for a program that comes without a workload.

What an integer input is drawn from follows from its use: an index covers the dimension it
indexes, a row pointer rises through the range it bounds, a value compared with an axis covers
that axis, a shift amount stays small. Anything else is small and of mixed sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType

Use = Literal["index", "pointer", "shift"]

_SMALL = {DType.S16: 250, DType.U16: 1000, DType.S32: 8, DType.S64: 8}


def random_inputs(program: core.Program, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """One array for each input, of its declared shape and dtype.

    Floats are normal at scales from 1/4 to 4; constant ones with two dimensions or more are
    scaled down by the length of the sums they usually stand in. Programs that need special
    inputs (positive definite matrices, stable filters) may yield NaN on these.
    """
    uses = _uses(program)
    return {tensor.name: _draw(tensor, uses.get(tensor.name, []), rng) for tensor in program.inputs}


def _draw(tensor: core.Tensor, uses: list[tuple[Use, int]], rng: np.random.Generator) -> np.ndarray:
    if tensor.dtype.is_float:
        return _floats(tensor, rng)
    if tensor.dtype is DType.BOOL:
        return rng.integers(0, 2, tensor.shape).astype(np.bool_)
    low, high = _range(tensor.dtype, uses)
    values = np.asarray(rng.integers(low, high, tensor.shape, endpoint=True))
    if any(use == "pointer" for use, _ in uses):
        values = np.sort(values, axis=-1) if tensor.shape else values
    elif not uses:
        values[rng.random(tensor.shape) < 0.1] = 0  # masks, background, padding
    return values.astype(tensor.dtype.numpy)


def _floats(tensor: core.Tensor, rng: np.random.Generator) -> np.ndarray:
    scale = 2.0 ** rng.integers(-2, 2, tensor.shape, endpoint=True)
    if tensor.const and len(tensor.shape) > 1:
        scale = scale / math.sqrt(tensor.size / max(tensor.shape[0], 1))
    return (rng.normal(size=tensor.shape) * scale).astype(tensor.dtype.numpy)


def _range(dtype: DType, uses: list[tuple[Use, int]]) -> tuple[int, int]:
    """Lowest and highest value drawn. The tightest use decides."""
    if uses:
        use, extent = min(uses, key=lambda item: item[1])
        low, high = {"index": (0, extent - 1), "pointer": (0, extent), "shift": (1, extent)}[use]
    elif dtype in _SMALL:
        high = _SMALL[dtype]
        low = -high if dtype.is_signed else 0
    else:
        return dtype.int_range
    return low, max(low, min(high, dtype.int_range[1]))


# ---------------------------------------------------------------- what integer inputs are used for
@dataclass(slots=True)
class _Finder:
    """Collects uses of integer inputs; ``reads`` maps a let to the inputs its value reads."""

    inputs: frozenset[str]
    axes: dict[int, int] = field(default_factory=dict)
    reads: dict[int, frozenset[str]] = field(default_factory=dict)
    found: dict[str, list[tuple[Use, int]]] = field(default_factory=dict)

    def visit(self, expr: core.Expr) -> None:
        nodes = list(core.walk(expr))
        for node in nodes:
            if isinstance(node, core.Block):
                for var, value in node.lets:
                    self.reads[var.uid] = frozenset(self._sources(value))
            elif isinstance(node, core.Reduce):
                self.axes.update((axis.var.uid, axis.extent) for axis in node.axes)
        for node in nodes:
            self._node(node)

    def _node(self, node: core.Expr) -> None:
        match node:
            case core.Load():
                for extent, index in zip(node.tensor.shape, node.indices, strict=True):
                    self._add(index, "index", extent)
            case core.Reduce():
                for axis in node.axes:
                    self._add(axis.lo, "pointer", axis.extent)
                    self._add(axis.hi, "pointer", axis.extent)
            case core.Binary(op="shl" | "shr", left=left, right=right):
                self._add(right, "shift", min(left.dtype.bits // 2, 15))
            case core.Binary(op="eq", left=left, right=right):
                for value, other in ((left, right), (right, left)):
                    if isinstance(other, core.VarRef) and other.var.uid in self.axes:
                        self._add(value, "index", self.axes[other.var.uid])

    def _add(self, expr: core.Expr, use: Use, extent: int) -> None:
        if extent > 0:
            for name in self._sources(expr):
                self.found.setdefault(name, []).append((use, extent))

    def _sources(self, expr: core.Expr) -> Iterator[str]:
        """Integer inputs whose values make up ``expr`` (not those that only index in it)."""
        stack = [expr]
        while stack:
            node = stack.pop()
            match node:
                case core.Load(tensor=tensor):
                    if tensor.name in self.inputs:
                        yield tensor.name
                case core.VarRef(var=var):
                    yield from self.reads.get(var.uid, ())
                case core.Select():
                    stack += [node.then, node.other]
                case _:
                    stack += core.children(node)


def _uses(program: core.Program) -> dict[str, list[tuple[Use, int]]]:
    names = frozenset(t.name for t in program.inputs if t.dtype.is_int)
    finder = _Finder(names)
    for loops, stage in core.stages(program.body):
        finder.axes.update((axis.var.uid, axis.extent) for axis in stage.axes)
        finder.axes.update((loop.var.uid, loop.hi) for loop in loops)
        finder.visit(stage.expr)
    return finder.found
