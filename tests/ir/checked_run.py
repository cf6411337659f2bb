"""Runs a core program element by element and checks what verification promises.

Written apart from the interpreter, for tiny shapes: no vectorising, no clamping of indices, every
read looked at. Reductions are computed for the whole box of the axes around them, conditions or
not, as a lowering that hoists them would.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType


class Unsafe(AssertionError):
    """The program did what verification excludes."""


@dataclass
class Machine:
    """``memory`` holds the elements written so far, by tensor and index."""

    memory: dict[str, dict[tuple[int, ...], int | float]] = field(default_factory=dict)
    variables: dict[int, int | float] = field(default_factory=dict)
    reads: int = 0

    def run(self, program: core.Program, inputs: dict[str, dict]) -> None:
        self.memory = {name: dict(values) for name, values in inputs.items()}
        for table in program.tables:
            box = itertools.product(*map(range, table.tensor.shape))
            self.memory[table.tensor.name] = dict(zip(box, table.values, strict=True))
        self.nodes(program.body)
        for output in program.outputs:
            written = self.memory.get(output.name, {})
            if len(written) != output.size:
                raise Unsafe(f"{output.name}: {len(written)} of {output.size} elements written")

    def nodes(self, nodes: tuple[core.Node, ...]) -> None:
        for node in nodes:
            if isinstance(node, core.Stage):
                self.stage(node)
                continue
            order = range(node.lo, node.hi)
            for value in reversed(order) if node.reverse else order:
                forget(self, node)
                self.variables[node.var.uid] = value
                self.nodes(node.body)
            forget(self, node)

    def stage(self, stage: core.Stage) -> None:
        target = self.memory.setdefault(stage.tensor.name, {})
        if not any(var.uid not in {a.var.uid for a in stage.axes} for var in stage.lhs):
            target.clear()  # transient: written afresh
        done: dict[tuple[int, ...], int | float] = {}
        for point in itertools.product(*(range(a.extent) for a in stage.axes)):
            for axis, value in zip(stage.axes, point, strict=True):
                self.variables[axis.var.uid] = value
            self.hoisted(stage.expr)
            index = tuple(int(self.variables[var.uid]) for var in stage.lhs)
            if index in target or index in done:
                raise Unsafe(f"{stage.name}{list(index)} written twice")
            done[index] = self.value(stage.expr)
        target.update(done)

    def hoisted(self, expr: core.Expr) -> None:
        """Evaluates every reduction for all values of the axes around it."""
        match expr:
            case core.Reduce():
                self.value(expr)
                box = itertools.product(*(range(a.extent) for a in expr.axes))
                for point in box:
                    for axis, value in zip(expr.axes, point, strict=True):
                        self.variables[axis.var.uid] = value
                    for child in core.children(expr):
                        self.hoisted(child)
            case core.Block():
                for var, value in expr.lets:
                    self.hoisted(value)
                    self.variables[var.uid] = _Late(value)  # type: ignore[assignment]
                self.hoisted(expr.result)
            case _:
                for child in core.children(expr):
                    self.hoisted(child)

    # ------------------------------------------------------------ expressions
    def value(self, expr: core.Expr) -> int | float:
        match expr:
            case core.Const():
                return expr.value
            case core.VarRef():
                found = self.variables[expr.var.uid]
                return self.value(found.expr) if isinstance(found, _Late) else found
            case core.Load():
                return self.load(expr)
            case core.Select():
                return self.value(expr.then if self.value(expr.cond) else expr.other)
            case core.Block():
                for var, value in expr.lets:
                    self.variables[var.uid] = self.value(value)
                return self.value(expr.result)
            case core.Reduce():
                return self.reduce(expr)
            case core.Cast():
                return cast(self.value(expr.arg), expr.dtype)
            case core.Unary():
                arg = self.value(expr.arg)
                if expr.op == "inv":
                    return fit(~int(arg), expr.dtype)
                return fit(-arg if expr.op == "neg" else not arg, expr.dtype)
            case core.Call():
                return call(expr, [self.value(a) for a in expr.args])
            case core.Binary():
                return binary(expr, self.value(expr.left), self.value(expr.right))

    def load(self, load: core.Load) -> int | float:
        self.reads += 1
        index = tuple(self.index(i) for i in load.indices)
        for at, extent in zip(index, load.tensor.shape, strict=True):
            if not 0 <= at < extent:
                raise Unsafe(f"{load.tensor.name}{list(index)} of {load.tensor.shape}")
        try:
            return self.memory[load.tensor.name][index]
        except KeyError:
            raise Unsafe(f"{load.tensor.name}{list(index)} is not written yet") from None

    def index(self, expr: core.Expr) -> int:
        exact = strict_value(self, expr)
        if exact is None:
            raise Unsafe("an index overflows")
        return exact

    def reduce(self, expr: core.Reduce) -> int | float:
        body = expr.body.dtype
        best: int | float = core.identity(expr.op, body)
        position = -1
        for point in self.points(expr.axes):
            if expr.where is not None and not self.value(expr.where):
                continue
            value = self.value(expr.body)
            match expr.op:
                case "sum":
                    best = fit(best + value, body)
                case "prod":
                    best = fit(best * value, body)
                case "max" | "min":
                    best = max(best, value) if expr.op == "max" else min(best, value)
                case "any" | "all":
                    best = (best or value) if expr.op == "any" else (best and value)
                case _:
                    if position < 0 or (value > best if expr.op == "argmax" else value < best):
                        best, position = value, flat(expr.axes, point)
        return position if expr.op in ("argmax", "argmin") else best

    def points(self, axes: tuple[core.ReduceAxis, ...], at: int = 0):
        if at == len(axes):
            yield ()
            return
        axis = axes[at]
        for value in range(int(self.value(axis.lo)), int(self.value(axis.hi))):
            if not 0 <= value < axis.extent:
                raise Unsafe(f"axis {axis.var.name} = {value} outside of 0..{axis.extent - 1}")
            self.variables[axis.var.uid] = value
            for rest in self.points(axes, at + 1):
                self.variables[axis.var.uid] = value
                yield (value, *rest)


@dataclass
class _Late:
    """A let while reductions are computed ahead: evaluated where it is used."""

    expr: core.Expr


def forget(machine: Machine, loop: core.Loop) -> None:
    """Between iterations and after the loop: stages that do not keep them are gone."""
    for _, stage in core.stages(loop.body):
        if loop.var not in stage.lhs:
            machine.memory.pop(stage.tensor.name, None)


def flat(axes: tuple[core.ReduceAxis, ...], point: tuple[int, ...]) -> int:
    out = 0
    for axis, value in zip(axes, point, strict=True):
        out = out * axis.extent + value
    return out


def strict_value(machine: Machine, expr: core.Expr) -> int | None:
    """An index in exact arithmetic; None when signed arithmetic in it overflows its dtype."""
    match expr:
        case core.Binary() if expr.dtype.is_int:
            a, b = strict_value(machine, expr.left), strict_value(machine, expr.right)
            if a is None or b is None:
                return None
            return checked(binary(expr, a, b, exact=True), expr.dtype)
        case core.Unary() if expr.dtype.is_int and expr.op == "neg":
            arg = strict_value(machine, expr.arg)
            return None if arg is None else checked(-arg, expr.dtype)
        case core.Call(fn="abs") if expr.dtype.is_int:
            arg = strict_value(machine, expr.args[0])
            return None if arg is None else checked(abs(arg), expr.dtype)
        case core.Cast() if expr.arg.dtype.is_int:
            arg = strict_value(machine, expr.arg)
            return None if arg is None else int(cast(arg, expr.dtype))
        case core.Select():
            branch = expr.then if machine.value(expr.cond) else expr.other
            return strict_value(machine, branch)
        case core.VarRef():
            found = machine.variables[expr.var.uid]
            if isinstance(found, _Late):
                return strict_value(machine, found.expr)
    return int(machine.value(expr))


def checked(value: int | float, dtype: DType) -> int | None:
    low, high = dtype.int_range
    if low <= value <= high:
        return int(value)
    return None if dtype.is_signed else int(fit(value, dtype))


def fit(value: int | float, dtype: DType) -> int | float:
    if dtype.is_float or dtype is DType.BOOL:
        return value
    low, high = dtype.int_range
    return (int(value) - low) % (high - low + 1) + low


def cast(value: int | float, dtype: DType) -> int | float:
    if dtype.is_float:
        return float(value)
    if dtype is DType.BOOL:
        return value != 0
    if isinstance(value, float):
        low, high = dtype.int_range
        return 0 if math.isnan(value) else int(min(max(value, low), high))
    return fit(value, dtype)


def call(expr: core.Call, args: list[int | float]) -> int | float:
    x = args[0]
    match expr.fn:
        case "abs":
            return fit(abs(x), expr.dtype)
        case "sign":
            return (x > 0) - (x < 0)
        case "popcount":
            return (int(x) & 0xFFFFFFFF).bit_count()
        case "floor" | "ceil" | "trunc" | "rne":
            if not math.isfinite(x):
                return x
            apply = {"floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "rne": round}
            return float(apply[expr.fn](x))
    return 0.5  # any float will do: what matters here are the reads


def binary(expr: core.Binary, a: int | float, b: int | float, exact: bool = False) -> int | float:
    op, dtype = expr.op, expr.dtype
    match op:
        case "and" | "or":
            return (a and b) if op == "and" else (a or b)
        case "eq" | "ne" | "lt" | "le" | "gt" | "ge":
            table = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b}
            return table.get(op, a >= b)
        case "min" | "max":
            return min(a, b) if op == "min" else max(a, b)
        case "add" | "sub" | "mul":
            raw = {"add": a + b, "sub": a - b, "mul": a * b}[op]
        case "div" | "pow":
            return a / b if op == "div" and b else 1.0
        case "fdiv" | "mod":
            if b < 1:
                raise Unsafe(f"divisor {b}")
            raw = a // b if op == "fdiv" else a % b
        case "shl" | "shr":
            amount = int(b) % dtype.bits
            raw = int(a) << amount if op == "shl" else int(a) >> amount
        case _:
            x, y = int(a), int(b)
            raw = {"bitand": x & y, "bitor": x | y}.get(op, x ^ y)
    return raw if exact else fit(raw, dtype)
