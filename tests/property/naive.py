"""A second interpreter: one element at a time, in plain Python, as literal as `ir.core` states it.

Slow and independent of `ir.interpret`: no arrays of lanes, no views, no matrix products.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType

Scalar = Any


class Naive:
    def __init__(self, program: core.Program, inputs: dict[str, np.ndarray], declared: bool):
        self.declared = declared
        self.program = program
        self.env: dict[int, Scalar] = {}
        self.store: dict[str, dict[tuple[int, ...], Scalar]] = {}
        for tensor in program.inputs:
            self.store[tensor.name] = dict(np.ndenumerate(inputs[tensor.name]))
        for table in program.tables:
            self.store[table.tensor.name] = {
                at: self.typed(value, table.tensor.dtype)
                for at, value in zip(_box(table.tensor.shape), table.values, strict=True)
            }

    def run(self) -> dict[str, np.ndarray]:
        for node in self.program.body:
            self.node(node)
        out = {}
        for tensor in self.program.outputs:
            array = np.empty(tensor.shape, self.numpy(tensor.dtype))
            for at in _box(tensor.shape):
                array[at] = self.store[tensor.name][at]
            out[tensor.name] = array
        return out

    def numpy(self, dtype: DType) -> np.dtype:
        return dtype.numpy if self.declared or not dtype.is_float else np.dtype(np.float64)

    def typed(self, value: Scalar, dtype: DType) -> Scalar:
        """``value`` in a dtype: floats round, integers wrap."""
        if dtype.is_float:
            return self.numpy(dtype).type(value)
        if dtype is DType.BOOL:
            return bool(value)
        low, _ = dtype.int_range
        return (int(value) - low) % (1 << dtype.bits) + low

    # ------------------------------------------------------------ statements
    def node(self, node: core.Node) -> None:
        if isinstance(node, core.Loop):
            values = range(node.lo, node.hi)
            for at in reversed(values) if node.reverse else values:
                self.env[node.var.uid] = at
                for inner in node.body:
                    self.node(inner)
            return
        target = self.store.setdefault(node.tensor.name, {})
        for point in _box(tuple(axis.extent for axis in node.axes)):
            for axis, at in zip(node.axes, point, strict=True):
                self.env[axis.var.uid] = at
            index = tuple(self.env[var.uid] for var in node.lhs)
            target[index] = self.typed(self.value(node.expr), node.tensor.dtype)

    # ------------------------------------------------------------ expressions
    def value(self, e: core.Expr) -> Scalar:
        match e:
            case core.Const():
                return self.typed(e.value, e.dtype)
            case core.VarRef():
                return self.env[e.var.uid]
            case core.Load():
                at = tuple(int(self.value(index)) for index in e.indices)
                assert all(0 <= i < n for i, n in zip(at, e.tensor.shape, strict=True)), e
                return self.typed(self.store[e.tensor.name][at], e.dtype)
            case core.Cast():
                return self.cast(self.value(e.arg), e.arg.dtype, e.dtype)
            case core.Select():
                return self.value(e.then) if self.value(e.cond) else self.value(e.other)
            case core.Unary(op="not"):
                return not self.value(e.arg)
            case core.Unary(op="inv"):
                return self.typed(~self.value(e.arg), e.dtype)
            case core.Unary(op="neg"):
                return self.typed(-self.value(e.arg), e.dtype)
            case core.Binary():
                return self.binary(e)
            case core.Call():
                return self.call(e)
            case core.Block():
                for var, bound in e.lets:
                    self.env[var.uid] = self.value(bound)
                return self.value(e.result)
            case core.Reduce():
                return self.reduce(e)
        raise AssertionError(e)

    def cast(self, x: Scalar, source: DType, target: DType) -> Scalar:
        if target is DType.BOOL:
            return x != 0
        if source.is_float and not target.is_float:
            low, high = target.int_range
            return 0 if math.isnan(x) else low if x <= low else high if x >= high else int(x)
        return self.typed(x, target)

    def binary(self, e: core.Binary) -> Scalar:
        a = self.value(e.left)
        if e.op in ("and", "or"):
            return (
                bool(a and self.value(e.right)) if e.op == "and" else bool(a or self.value(e.right))
            )
        b = self.value(e.right)
        width = e.left.dtype.bits - 1
        operations = {
            "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "div": lambda: a / b,
            "fdiv": lambda: a // b, "mod": lambda: a % b, "pow": lambda: a**b,
            "min": lambda: min(a, b), "max": lambda: max(a, b),
            "shl": lambda: a << (b & width), "shr": lambda: a >> (b & width),
            "bitand": lambda: a & b, "bitor": lambda: a | b, "bitxor": lambda: a ^ b,
            "eq": lambda: a == b, "ne": lambda: a != b, "lt": lambda: a < b, "le": lambda: a <= b,
            "gt": lambda: a > b, "ge": lambda: a >= b,
        }  # fmt: skip
        return self.typed(operations[e.op](), e.dtype)

    def call(self, e: core.Call) -> Scalar:
        args = [self.value(arg) for arg in e.args]
        x = float(args[0]) if e.args[0].dtype.is_float else args[0]
        functions = {
            "abs": lambda: abs(x), "sign": lambda: (x > 0) - (x < 0),
            "floor": lambda: math.floor(x),
            "ceil": lambda: math.ceil(x), "trunc": lambda: math.trunc(x), "rne": lambda: round(x),
            "sqrt": lambda: math.sqrt(x), "rsqrt": lambda: 1 / math.sqrt(x),
            "exp": lambda: math.exp(x), "exp2": lambda: 2.0**x, "log": lambda: math.log(x),
            "log2": lambda: math.log2(x), "sin": lambda: math.sin(x), "cos": lambda: math.cos(x),
            "tan": lambda: math.tan(x), "tanh": lambda: math.tanh(x), "erf": lambda: math.erf(x),
            "atan": lambda: math.atan(x), "atan2": lambda: math.atan2(x, args[1]),
            "fma": lambda: fused(e.dtype, *args) if self.declared else args[0] * args[1] + args[2],
            "nofma": lambda: x, "fast_exp": lambda: math.exp(x),
            "fast_tanh": lambda: math.tanh(x), "fast_erf": lambda: math.erf(x),
            "popcount": lambda: bin(x & ((1 << e.args[0].dtype.bits) - 1)).count("1"),
        }  # fmt: skip
        return self.typed(functions[e.fn](), e.dtype)

    # ------------------------------------------------------------ reductions
    def reduce(self, e: core.Reduce) -> Scalar:
        if e.op in ("argmax", "argmin"):
            best: tuple[Scalar, int] | None = None
            for value, at in self.elements(e):
                if best is None or (value > best[0] if e.op == "argmax" else value < best[0]):
                    best = value, at
            return -1 if best is None else best[1]
        steps = {
            "sum": lambda a, b: a + b, "prod": lambda a, b: a * b, "max": max, "min": min,
            "any": lambda a, b: a or b, "all": lambda a, b: a and b,
        }  # fmt: skip
        total = self.typed(core.identity(e.op, e.body.dtype), e.dtype)
        for value, _ in self.elements(e):
            total = self.typed(steps[e.op](total, value), e.dtype)
        return total

    def elements(self, e: core.Reduce) -> Iterator[tuple[Scalar, int]]:
        """Values of the body where it counts, each with its flat position."""
        for position in self.points(e.axes, 0):
            if e.where is None or self.value(e.where):
                yield self.value(e.body), position

    def points(self, axes: tuple[core.ReduceAxis, ...], flat: int) -> Iterator[int]:
        if not axes:
            yield flat
            return
        axis = axes[0]
        for at in range(self.value(axis.lo), self.value(axis.hi)):
            self.env[axis.var.uid] = at
            yield from self.points(axes[1:], flat * axis.extent + at)


def fused(dtype: DType, a: Scalar, b: Scalar, c: Scalar) -> float:
    """``a * b + c`` of finite values rounded once to a float dtype, from the exact value."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    guess = dtype.numpy.type(float(exact))
    near = [np.nextafter(guess, dtype.numpy.type(s * np.inf)) for s in (-1, 1)]
    finite = [v for v in (guess, *near) if np.isfinite(v)]
    error = {float(v): abs(Fraction(float(v)) - exact) for v in finite}
    best = [v for v in finite if error[float(v)] == min(error.values())]
    even = [v for v in best if not int(v.view(f"u{v.itemsize}")) & 1]
    return float((even if len(best) > 1 else best)[0])


def _box(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(extent) for extent in shape))


def run_naive(
    program: core.Program, inputs: dict[str, np.ndarray], declared: bool = False
) -> dict[str, np.ndarray]:
    with np.errstate(all="ignore"):
        return Naive(program, inputs, declared).run()
