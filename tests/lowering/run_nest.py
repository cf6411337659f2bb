"""A slow executor of loop programs that trusts nothing: the oracle of the lowering tests.

It checks every access against the buffer's shape, that no element is used before it is written
(a value read under a condition that does not hold may be uninitialised, as long as it is not
selected), that parallel iterations do not write the same element or read what another one writes,
that vectorised loops have independent lanes and no inner statements but stores and lets, and that
every integer divisor is positive.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest


class NestError(AssertionError):
    """The loop program breaks its contract."""


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET: Any = _Unset()


@dataclass
class Region:
    """What one parallel or vector iteration has touched: (buffer id, element) sets."""

    iteration: int = 0
    written: dict[tuple[int, int], int] = field(default_factory=dict)
    read: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    private: set[int] = field(default_factory=set)
    lanes: bool = False


class Buffer:
    __slots__ = ("shape", "tensor", "values", "writable")

    def __init__(self, tensor: Tensor, values: list[Any] | None = None, writable: bool = True):
        self.tensor = tensor
        self.values = [UNSET] * max(1, tensor.size) if values is None else values
        self.writable = writable

    def flat(self, indices: tuple[int, ...]) -> int:
        if len(indices) != len(self.tensor.shape):
            raise NestError(f"{self.tensor.name}: {len(indices)} indices for {self.tensor.shape}")
        out = 0
        for index, extent in zip(indices, self.tensor.shape, strict=True):
            if not 0 <= index < extent:
                raise NestError(f"{self.tensor.name}{list(indices)} outside {self.tensor.shape}")
            out = out * extent + index
        return out


def run_function(function: nest.Function, arrays: Mapping[str, np.ndarray], outputs: set[str]):
    """Runs a function; ``outputs`` name the parameters that it writes. Returns their arrays."""
    machine = Machine()
    for tensor in function.params:
        if tensor.name in outputs:
            machine.buffers[tensor.name] = Buffer(tensor)
        else:
            array = np.asarray(arrays[tensor.name])
            if array.shape != tensor.shape:
                raise NestError(f"{tensor.name}: {array.shape} for {tensor.shape}")
            values = list(array.reshape(-1)) or [UNSET]
            machine.buffers[tensor.name] = Buffer(tensor, values, writable=False)
    machine.block(function.body)
    out = {}
    for name in outputs:
        buffer = machine.buffers[name]
        if any(v is UNSET for v in buffer.values[: buffer.tensor.size]):
            raise NestError(f"{name}: not every element is written")
        flat = np.array(buffer.values[: buffer.tensor.size], buffer.tensor.dtype.numpy)
        out[name] = flat.reshape(buffer.tensor.shape)
    return out


def run_module(module: nest.Module, inputs: Mapping[str, np.ndarray], outputs: set[str]):
    """Packs, then runs ``main``."""
    arrays = dict(inputs)
    if module.prepack is not None:
        names = {tensor.name for tensor in module.packed}
        packed = run_prepack(module.prepack, arrays, names)
        arrays.update(packed)
    return run_function(module.main, arrays, outputs)


def run_prepack(function: nest.Function, arrays: Mapping[str, np.ndarray], names: set[str]):
    """Packed buffers may have padding that nobody writes or reads: it is filled with poison."""
    machine = Machine()
    for tensor in function.params:
        if tensor.name in names:
            machine.buffers[tensor.name] = Buffer(tensor)
        else:
            values = list(np.asarray(arrays[tensor.name]).reshape(-1))
            machine.buffers[tensor.name] = Buffer(tensor, values, writable=False)
    machine.block(function.body)
    out = {}
    for name in names:
        buffer = machine.buffers[name]
        data = np.empty(buffer.tensor.size, dtype=object)
        data[:] = buffer.values[: buffer.tensor.size]
        out[name] = data.reshape(buffer.tensor.shape)
    return out


class Machine:
    def __init__(self) -> None:
        self.buffers: dict[str, Buffer] = {}
        self.vars: dict[core.Var, Any] = {}
        self.regions: list[Region] = []
        self.parallel = False
        self.speculative = False

    # ------------------------------------------------------------ statements
    def block(self, statement: nest.Stmt) -> None:
        match statement:
            case nest.Seq(body=body):
                shadowed: list[tuple[str, Buffer | None]] = []
                for inner in body:
                    if isinstance(inner, nest.Alloc):
                        shadowed.append((inner.tensor.name, self.buffers.get(inner.tensor.name)))
                        self._alloc(inner)
                    else:
                        self.block(inner)
                for name, old in reversed(shadowed):
                    if old is None:
                        del self.buffers[name]
                    else:
                        self.buffers[name] = old
            case nest.For():
                self._loop(statement)
            case nest.Store():
                self._store(statement)
            case nest.LetValue(var=var, value=value):
                self.vars[var] = self.eval(value)
            case nest.If(cond=cond, then=then, other=other):
                test = self.eval(cond)
                if test is UNSET:
                    raise NestError("a branch on an uninitialised value")
                if test:
                    self.block(then)
                elif other is not None:
                    self.block(other)
            case nest.Alloc():
                self._alloc(statement)

    def _alloc(self, alloc: nest.Alloc) -> None:
        buffer = Buffer(alloc.tensor)
        self.buffers[alloc.tensor.name] = buffer
        for region in self.regions:
            region.private.add(id(buffer))
        self._alive = [*getattr(self, "_alive", []), buffer]  # ids must stay unique

    def _loop(self, loop: nest.For) -> None:
        lo, extent = self.eval(loop.lo), self.eval(loop.extent)
        if loop.kind != "serial" and not isinstance(loop.extent, core.Const):
            raise NestError(f"{loop.kind} loop {loop.var.name} without a constant extent")
        if loop.kind == "parallel":
            if self.parallel:
                raise NestError("nested parallel loops")
            self.parallel = True
        if loop.kind == "vectorize":
            _check_lanes(loop.body)
        region = None
        if loop.kind in ("parallel", "vectorize"):
            region = Region(lanes=loop.kind == "vectorize")
            self.regions.append(region)
        for k in range(int(lo), int(lo) + int(extent)):
            if region is not None:
                region.iteration = k
            self.vars[loop.var] = k
            self.block(loop.body)
        if region is not None:
            self.regions.pop()
        if loop.kind == "parallel":
            self.parallel = False

    def _store(self, store: nest.Store) -> None:
        buffer = self.buffers[store.tensor.name]
        if buffer.tensor != store.tensor:
            raise NestError(f"{store.tensor.name}: stored as another buffer")
        if not buffer.writable:
            raise NestError(f"{store.tensor.name} is an input and is written")
        flat = buffer.flat(tuple(int(self.eval(i)) for i in store.indices))
        value = self.eval(store.value)
        if value is UNSET:
            raise NestError(f"{store.tensor.name}: an uninitialised value is stored")
        key = (id(buffer), flat)
        for region in self.regions:
            if key[0] in region.private:
                continue
            other = region.written.get(key, region.iteration)
            readers = region.read.get(key, set()) - {region.iteration}
            if other != region.iteration or readers:
                what = "lanes" if region.lanes else "parallel iterations"
                raise NestError(f"{what} race on {store.tensor.name}[{flat}]")
            region.written[key] = region.iteration
        buffer.values[flat] = _stored(value, store.value.dtype, buffer.tensor.dtype)

    # ------------------------------------------------------------ expressions
    def eval(self, expr: Expr) -> Any:
        match expr:
            case core.Const(value=value, dtype=dtype):
                return _typed(value, dtype)
            case core.VarRef(var=var):
                return self.vars[var]
            case core.Load(tensor=tensor, indices=indices):
                return self._load(tensor, tuple(self.eval(i) for i in indices))
            case core.Select():
                return self._select(expr)
            case core.Binary(op="and" | "or" as op, left=left, right=right):
                a, b = self.eval(left), self.eval(right)
                decisive = op == "or"
                if a is UNSET or b is UNSET:
                    known = b if a is UNSET else a
                    return known if known is not UNSET and bool(known) == decisive else UNSET
                return bool(a or b) if decisive else bool(a and b)
            case core.Reduce() | core.Block():
                raise NestError(f"{type(expr).__name__} in a loop program")
        args = [self.eval(child) for child in core.children(expr)]
        if any(a is UNSET for a in args):
            return UNSET
        with np.errstate(all="ignore"):
            return _apply(expr, args)

    def _select(self, expr: core.Select) -> Any:
        """Both branches must be in bounds; what the other one reads is not used."""
        test = self.eval(expr.cond)
        if test is UNSET:
            return UNSET
        taken, other = (expr.then, expr.other) if test else (expr.other, expr.then)
        before, self.speculative = self.speculative, True
        self.eval(other)
        self.speculative = before
        return self.eval(taken)

    def _load(self, tensor: Tensor, indices: tuple[Any, ...]) -> Any:
        if any(i is UNSET for i in indices):
            raise NestError(f"{tensor.name}: an uninitialised index")
        buffer = self.buffers[tensor.name]
        if buffer.tensor != tensor:
            raise NestError(f"{tensor.name}: read as another buffer")
        flat = buffer.flat(tuple(int(i) for i in indices))
        key = (id(buffer), flat)
        for region in self.regions:
            if key[0] in region.private or not buffer.writable or self.speculative:
                continue
            if region.written.get(key, region.iteration) != region.iteration:
                what = "lanes" if region.lanes else "parallel iterations"
                raise NestError(f"{what} race on {tensor.name}[{flat}]")
            region.read.setdefault(key, set()).add(region.iteration)
        value = buffer.values[flat]
        if value is UNSET:
            return UNSET
        return _typed(value, tensor.dtype.widened)


def _check_lanes(statement: nest.Stmt) -> None:
    match statement:
        case nest.Seq(body=body):
            for inner in body:
                _check_lanes(inner)
        case nest.Store() | nest.LetValue():
            pass
        case _:
            raise NestError(f"{type(statement).__name__} inside a vectorised loop")


def _typed(value: Any, dtype: DType) -> Any:
    if dtype is DType.BOOL:
        return bool(value)
    if dtype in (DType.S32, DType.S64):
        return int(value)
    if dtype is DType.U32:
        return int(value) & 0xFFFFFFFF
    return dtype.numpy.type(value)


def _stored(value: Any, source: DType, target: DType) -> Any:
    if source is target or source is target.widened or (source.is_float and target.is_float):
        if target.is_float or target is DType.BOOL:
            return target.numpy.type(value)
        low, high = target.int_range
        if not low <= int(value) <= high:
            raise NestError(f"{value} stored into {target.value}")
        return target.numpy.type(value)
    raise NestError(f"{source.value} stored into {target.value}")


def _apply(expr: Expr, args: list[Any]) -> Any:
    match expr:
        case core.Unary(op="neg"):
            return _typed(-args[0], expr.dtype)
        case core.Unary(op="not"):
            return not args[0]
        case core.Unary(op="inv"):
            return (not args[0]) if expr.dtype is DType.BOOL else _typed(~args[0], expr.dtype)
        case core.Cast():
            return _cast(args[0], expr.arg.dtype, expr.dtype)
        case core.Call():
            return _call(expr.fn, args, expr.dtype)
        case core.Binary():
            return _binary(expr, args[0], args[1])
    raise NestError(f"cannot evaluate {type(expr).__name__}")


def _cast(value: Any, source: DType, target: DType) -> Any:
    if target is DType.BOOL:
        return bool(value != 0)
    if target.is_float:
        return target.numpy.type(value)
    low, high = target.int_range
    if source.is_float:
        if math.isnan(value):
            return _typed(0, target)
        return _typed(int(min(max(float(value), low), high)), target)
    return _typed((int(value) - low) % (high - low + 1) + low, target)


def _binary(expr: core.Binary, a: Any, b: Any) -> Any:
    op, dtype = expr.op, expr.dtype
    match op:
        case "eq":
            return bool(a == b)
        case "ne":
            return bool(a != b)
        case "lt":
            return bool(a < b)
        case "le":
            return bool(a <= b)
        case "gt":
            return bool(a > b)
        case "ge":
            return bool(a >= b)
        case "fdiv" | "mod":
            if not dtype.is_float and b <= 0:
                raise NestError(f"a divisor of {b}")
            return _typed(a // b if op == "fdiv" else a % b, dtype)
        case "min" | "max":
            if dtype.is_float:
                return (np.minimum if op == "min" else np.maximum)(a, b)
            return min(a, b) if op == "min" else max(a, b)
        case "shl" | "shr":
            amount = int(b) % dtype.bits
            out = int(a) << amount if op == "shl" else int(a) >> amount
            return _wrap(out, dtype)
        case "bitand" | "bitor" | "bitxor":
            x, y = (bool(a), bool(b)) if dtype is DType.BOOL else (int(a), int(b))
            out = x & y if op == "bitand" else x | y if op == "bitor" else x ^ y
            return bool(out) if dtype is DType.BOOL else _wrap(int(out), dtype)
    plain = {"add": a + b, "sub": a - b, "mul": a * b} if dtype is not DType.BOOL else {}
    if op in plain:
        return _wrap(plain[op], dtype) if dtype is DType.U32 else _checked(plain[op], dtype)
    if op == "div":
        return dtype.numpy.type(np.true_divide(a, b))
    if op == "pow":
        return _typed(np.power(dtype.numpy.type(a), dtype.numpy.type(b)), dtype)
    raise NestError(f"operator {op}")


def _wrap(value: int, dtype: DType) -> int:
    low, high = dtype.int_range
    return (value - low) % (high - low + 1) + low


def _checked(value: Any, dtype: DType) -> Any:
    """Signed overflow is undefined: it yields a value that must not be used."""
    if dtype.is_float:
        return dtype.numpy.type(value)
    low, high = dtype.int_range
    return value if low <= value <= high else UNSET


def _call(fn: str, args: list[Any], dtype: DType) -> Any:
    from scipy.special import erf

    if not dtype.is_float:
        match fn:
            case "abs":
                return abs(args[0])
            case "sign":
                return (args[0] > 0) - (args[0] < 0)
            case "popcount":
                return bin(int(args[0]) & ((1 << dtype.bits) - 1)).count("1")
    table = {
        "abs": np.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
        "rne": np.rint, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "exp": np.exp,
        "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos,
        "tan": np.tan, "tanh": np.tanh, "erf": erf, "atan": np.arctan, "atan2": np.arctan2,
    }  # fmt: skip
    return dtype.numpy.type(table[fn](*args))
