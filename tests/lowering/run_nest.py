"""An executor of loop programs that trusts nothing: the oracle of the lowering tests.

It checks every access against the buffer's shape, that no element is used before it is written,
that parallel iterations do not write the same element or read what another one writes, that
vectorised loops have independent lanes and hold nothing but stores and lets, that integer divisors
are positive, and that no signed overflow is used. What the branch of a condition reads that is not
taken must be in bounds, and counts for no more: it may be uninitialised.

Programs are turned into Python closures first; elements are Python ints, bools and NumPy floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest


class NestError(AssertionError):
    """The loop program breaks its contract."""


def _absorb(*_: Any) -> Any:
    return UNSET


class _Unset:
    """The value of an uninitialised element, and of whatever is computed from it."""

    __array_ufunc__ = None
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _absorb
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _absorb
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _absorb
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __neg__ = __invert__ = _absorb
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise NestError("a decision on an uninitialised value")

    def __index__(self) -> int:
        raise NestError("an uninitialised index")

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Any = _Unset()

Value = Callable[[], Any]
Action = Callable[[], None]


class Buffer:
    """Elements of one allocation. ``owner``: how many regions were open when it was made."""

    __slots__ = ("owner", "values", "writable")

    def __init__(self, values: list[Any], owner: int, writable: bool) -> None:
        self.values = values
        self.owner = owner
        self.writable = writable


class Region:
    """A parallel or vectorised loop that is running."""

    __slots__ = ("iteration", "read", "what", "written")

    def __init__(self, what: str) -> None:
        self.what = what
        self.iteration = 0
        self.written: dict[tuple[int, int], int] = {}
        self.read: dict[tuple[int, int], int] = {}


_SEVERAL = -2


def run_module(
    module: nest.Module,
    inputs: Mapping[str, np.ndarray],
    outputs: set[str],
    make: type[_Machine] | None = None,
):
    """Packs, then runs ``main``; returns the outputs."""
    arrays: dict[str, list[Any]] = {name: _elements(array) for name, array in inputs.items()}
    if module.prepack is not None:
        packed = {tensor.name for tensor in module.packed}
        arrays.update(execute(module.prepack, arrays, packed, make))
    found = execute(module.main, arrays, outputs, make)
    out = {}
    for tensor in module.main.params:
        if tensor.name in outputs:
            values = found[tensor.name][: tensor.size]
            if any(v is UNSET for v in values):
                raise NestError(f"{tensor.name}: not every element is written")
            out[tensor.name] = np.array(values, tensor.dtype.numpy).reshape(tensor.shape)
    return out


def _elements(array: np.ndarray) -> list[Any]:
    flat = np.asarray(array).reshape(-1)
    return list(flat) if flat.dtype.kind == "f" else flat.tolist()


def execute(
    function: nest.Function,
    arrays: Mapping[str, list[Any]],
    written: set[str],
    make: type[_Machine] | None = None,
):
    """Runs a function; padding of packed buffers may stay uninitialised."""
    machine = (make or _Machine)()
    for tensor in function.params:
        writable = tensor.name in written
        values = [UNSET] * max(1, tensor.size) if writable else arrays[tensor.name]
        machine.buffers[tensor.name] = Buffer(values, 0, writable)
        machine.shapes[tensor.name] = tensor
    with np.errstate(all="ignore"):
        machine.statement(function.body)()
    return {name: machine.buffers[name].values for name in written}


class _Machine:
    def __init__(self) -> None:
        self.buffers: dict[str, Buffer] = {}
        self.shapes: dict[str, Tensor] = {}
        self.vars: dict[int, Any] = {}
        self.regions: list[Region] = []
        self.speculative = 0
        self.parallel = False
        self.alive: list[Buffer] = []  # so that ids stay unique

    # ------------------------------------------------------------ statements
    def statement(self, statement: nest.Stmt) -> Action:
        match statement:
            case nest.Seq(body=body):
                return self._sequence([self.statement(inner) for inner in body])
            case nest.For():
                return self._loop(statement)
            case nest.Store():
                return self._store(statement)
            case nest.LetValue(var=var, value=value):
                compute, env, uid = self.expr(value), self.vars, var.uid

                def let() -> None:
                    env[uid] = compute()

                return let
            case nest.If(cond=cond, then=then, other=other):
                test, yes = self.expr(cond), self.statement(then)
                no = self.statement(other) if other is not None else lambda: None
                return lambda: yes() if test() else no()
            case nest.Alloc(tensor=tensor):
                return self._alloc(tensor)
            case nest.Dot():
                return self._dot(statement)
            case nest.Prefetch(tensor=tensor, indices=indices):
                return self._prefetch(tensor, indices)

    def _prefetch(self, tensor: Tensor, indices: tuple[Expr, ...]) -> Action:
        """Reads nothing, but its indices are in bounds."""
        where = [self.expr(index) for index in indices]

        def fetch() -> None:
            point = [int(index()) for index in where]
            if any(not 0 <= p < n for p, n in zip(point, tensor.shape, strict=True)):
                raise NestError(f"prefetch of {tensor.name}{point} outside {tensor.shape}")

        return fetch

    @staticmethod
    def _sequence(actions: list[Action]) -> Action:
        if len(actions) == 1:
            return actions[0]

        def run() -> None:
            for action in actions:
                action()

        return run

    def _alloc(self, tensor: Tensor) -> Action:
        if tensor.name in self.shapes:
            raise NestError(f"two buffers are called {tensor.name}")
        self.shapes[tensor.name] = tensor
        size = max(1, tensor.size)

        def alloc() -> None:
            buffer = Buffer([UNSET] * size, len(self.regions), True)
            self.buffers[tensor.name] = buffer
            if self.regions:
                self.alive.append(buffer)

        return alloc

    def _loop(self, loop: nest.For) -> Action:
        kind, uid, env = loop.kind, loop.var.uid, self.vars
        if kind != "serial" and not isinstance(loop.extent, core.Const):
            raise NestError(f"{kind} loop {loop.var.name} without a constant extent")
        if kind == "vectorize":
            _check_lanes(loop.body)
        low, extent, body = self.expr(loop.lo), self.expr(loop.extent), self.statement(loop.body)

        def plain() -> None:
            first = int(low())
            for k in range(first, first + int(extent())):
                env[uid] = k
                body()

        def guarded() -> None:
            if kind == "parallel" and self.parallel:
                raise NestError("nested parallel loops")
            outer, self.parallel = self.parallel, self.parallel or kind == "parallel"
            region = Region("parallel iterations" if kind == "parallel" else "lanes")
            self.regions.append(region)
            first = int(low())
            for k in range(first, first + int(extent())):
                region.iteration = k
                env[uid] = k
                body()
            self.regions.pop()
            self.parallel = outer

        return guarded if kind in ("parallel", "vectorize") else plain

    def _store(self, store: nest.Store) -> Action:
        self._same(store.tensor)
        flat, value = self._flat(store.tensor, store.indices), self.expr(store.value)
        buffers, name = self.buffers, store.tensor.name
        convert = _conversion(store.value.dtype, store.tensor.dtype)
        # A cache may copy what is not there yet, and an accumulator may have lanes too many: what
        # is read of them later is there.
        spare = ".cache" in name or ".acc" in name

        def run() -> None:
            buffer, at, new = buffers[name], flat(), value()
            if new is UNSET and not spare:
                raise NestError(f"{name}: an uninitialised value is stored")
            if not buffer.writable:
                raise NestError(f"{name} is an input and is written")
            if self.regions:
                self._note_write(buffer, at, name)
            buffer.values[at] = UNSET if new is UNSET else convert(new)

        return run

    def _dot(self, dot: nest.Dot) -> Action:
        """Every byte is checked against the whole buffer; those that do not count may be unset."""
        if dot.instruction.lanes not in (0, dot.lanes) or not 1 <= dot.count <= 4:
            raise NestError(f"{dot.instruction.name} with {dot.lanes} lanes")
        if not dot.instruction.takes(dot.a.dtype, dot.b.dtype):
            raise NestError(f"{dot.instruction.name} of {dot.a.dtype} and {dot.b.dtype}")
        if dot.tensor.dtype is not DType.S32 or (dot.count < 4 and dot.a.moving and dot.b.moving):
            raise NestError("a dot product that no back end can carry out")
        self._same(dot.tensor)
        first, buffers, name = self._flat(dot.tensor, dot.indices), self.buffers, dot.tensor.name
        sides, fit = [self._quads(q) for q in (dot.a, dot.b)], _fit(DType.S32)

        def run() -> None:
            start, buffer = first(), buffers[name]
            for lane in range(dot.lanes):
                a, b = (side(lane) for side in sides)
                total = buffer.values[start + lane]
                for x, y in list(zip(a, b, strict=True))[: dot.count]:
                    total = fit(total + x * y)
                if self.regions:
                    self._note_write(buffer, start + lane, name)
                buffer.values[start + lane] = total

        return run

    def _quads(self, quads: nest.Quads) -> Callable[[int], list[Any]]:
        self._same(quads.tensor)
        first, name = self._flat(quads.tensor, quads.indices), quads.tensor.name
        buffers = self.buffers
        low, high = quads.dtype.int_range

        def read(lane: int) -> list[Any]:
            start = first() + (4 * lane if quads.moving else 0)
            values = buffers[name].values[start : start + 4]
            if quads.moving and len(values) < 4:
                raise NestError(f"{name}: a vector runs beyond the buffer")
            out = []
            for k, value in enumerate([*values, *[UNSET] * (4 - len(values))]):
                if self.regions and k < len(values) and buffers[name].writable:
                    self._note_read(buffers[name], start + k, name)
                biased = value + quads.bias
                if biased is not UNSET and not low <= biased <= high:
                    raise NestError(f"{name}: {value} with {quads.bias} is no {quads.dtype.value}")
                out.append(biased)
            return out

        return read

    def _note_write(self, buffer: Buffer, at: int, name: str) -> None:
        key = (id(buffer), at)
        for region in self.regions[buffer.owner :]:
            here = region.iteration
            if region.written.get(key, here) != here or region.read.get(key, here) != here:
                raise NestError(f"{region.what} race on {name}[{at}]")
            region.written[key] = here

    def _note_read(self, buffer: Buffer, at: int, name: str) -> None:
        key = (id(buffer), at)
        for region in self.regions[buffer.owner :]:
            here = region.iteration
            if region.written.get(key, here) != here:
                raise NestError(f"{region.what} race on {name}[{at}]")
            if region.read.setdefault(key, here) != here:
                region.read[key] = _SEVERAL

    # ------------------------------------------------------------ accesses
    def _same(self, tensor: Tensor) -> None:
        known = self.shapes.get(tensor.name)
        if known is None or (known.shape, known.dtype) != (tensor.shape, tensor.dtype):
            raise NestError(f"{tensor.name} is used as another buffer, or before its allocation")

    def _flat(self, tensor: Tensor, indices: tuple[Expr, ...]) -> Callable[[], int]:
        if len(indices) != len(tensor.shape):
            raise NestError(f"{tensor.name}: {len(indices)} indices for {tensor.shape}")
        parts = [(self.expr(i), n) for i, n in zip(indices, tensor.shape, strict=True)]
        name, shape = tensor.name, tensor.shape

        def flat() -> int:
            out = 0
            for value, extent in parts:
                index = value()
                if not 0 <= index < extent:
                    raise NestError(f"{name}: index {index} outside {shape}")
                out = out * extent + index
            return int(out)

        return flat

    def _load(self, load: core.Load) -> Value:
        self._same(load.tensor)
        flat, buffers, name = self._flat(load.tensor, load.indices), self.buffers, load.tensor.name
        dtype = load.tensor.dtype.widened
        make = dtype.numpy.type if dtype.is_float else None

        def run() -> Any:
            buffer, at = buffers[name], flat()
            if self.regions and buffer.writable and not self.speculative:
                self._note_read(buffer, at, name)
            value = buffer.values[at]
            return value if make is None or value is UNSET else make(value)

        return run

    # ------------------------------------------------------------ expressions
    def expr(self, expr: Expr) -> Value:
        match expr:
            case core.Const(value=value, dtype=dtype):
                constant = dtype.numpy.type(value) if dtype.is_float else value
                return lambda: constant
            case core.VarRef(var=var):
                env, uid = self.vars, var.uid
                return lambda: env[uid]
            case core.Load():
                return self._load(expr)
            case core.Select():
                return self._select(expr)
            case core.Binary(op="and" | "or" as op, left=left, right=right):
                return _junction(self.expr(left), self.expr(right), op == "or")
            case core.Binary(left=left, right=right):
                return _binary(expr, self.expr(left), self.expr(right))
            case core.Unary(arg=arg):
                return _unary(expr, self.expr(arg))
            case core.Cast(arg=arg, dtype=dtype):
                convert, inner = _cast(arg.dtype, dtype), self.expr(arg)
                return lambda: UNSET if (v := inner()) is UNSET else convert(v)
            case core.Call(fn=fn, args=args, dtype=dtype):
                apply, inner_args = _call(fn, dtype), [self.expr(a) for a in args]

                def call() -> Any:
                    values = [a() for a in inner_args]
                    return UNSET if any(v is UNSET for v in values) else apply(*values)

                return call
            case _:
                raise NestError(f"{type(expr).__name__} in a loop program")

    def _select(self, expr: core.Select) -> Value:
        cond, then, other = self.expr(expr.cond), self.expr(expr.then), self.expr(expr.other)

        def run() -> Any:
            test = cond()
            if test is UNSET:
                return UNSET
            taken, idle = (then, other) if test else (other, then)
            self.speculative += 1
            idle()
            self.speculative -= 1
            return taken()

        return run


def _check_lanes(statement: nest.Stmt) -> None:
    match statement:
        case nest.Seq(body=body):
            for inner in body:
                _check_lanes(inner)
        case nest.Store() | nest.LetValue():
            pass
        case _:
            raise NestError(f"{type(statement).__name__} inside a vectorised loop")


# ---------------------------------------------------------------- scalar semantics
def _junction(left: Value, right: Value, decisive: bool) -> Value:
    def run() -> Any:
        a, b = left(), right()
        if a is UNSET or b is UNSET:
            known = b if a is UNSET else a
            return known if known is not UNSET and bool(known) == decisive else UNSET
        return bool(a or b) if decisive else bool(a and b)

    return run


def _conversion(source: DType, target: DType) -> Callable[[Any], Any]:
    """What a store does to a value: rounds floats; integers must be in range already."""
    if source.is_float and target.is_float:
        return target.numpy.type
    if source is not target and source is not target.widened:
        raise NestError(f"{source.value} stored into {target.value}")
    if target is DType.BOOL:
        return bool
    low, high = target.int_range

    def convert(value: Any) -> int:
        if not low <= value <= high:
            raise NestError(f"{value} stored into {target.value}")
        return value

    return convert


def _cast(source: DType, target: DType) -> Callable[[Any], Any]:
    if target is DType.BOOL:
        return lambda v: bool(v != 0)
    if target.is_float:
        return target.numpy.type
    low, high = target.int_range
    if source.is_float:
        return lambda v: 0 if math.isnan(v) else int(min(max(float(v), low), high))
    span = high - low + 1
    return lambda v: (int(v) - low) % span + low


def _fit(dtype: DType) -> Callable[[Any], Any]:
    """The result of integer arithmetic: u32 wraps, signed overflow must not be used."""
    low, high = dtype.int_range
    if dtype is DType.U32:
        return lambda v: UNSET if v is UNSET else v & 0xFFFFFFFF
    return lambda v: v if v is not UNSET and low <= v <= high else UNSET


_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def _binary(expr: core.Binary, left: Value, right: Value) -> Value:
    op, dtype = expr.op, expr.dtype
    if op in core.COMPARE_OPS:
        compare = _PLAIN[op]
        return lambda: UNSET if (v := compare(left(), right())) is UNSET else bool(v)
    if op in ("add", "sub", "mul"):
        plain = _PLAIN[op]
        if dtype.is_float:
            return lambda: plain(left(), right())
        fit = _fit(dtype)
        return lambda: fit(plain(left(), right()))
    strict = _strict(op, dtype)

    def run() -> Any:
        a, b = left(), right()
        return UNSET if a is UNSET or b is UNSET else strict(a, b)

    return run


def _strict(op: str, dtype: DType) -> Callable[[Any, Any], Any]:
    match op:
        case "div":
            return lambda a, b: np.true_divide(a, b)
        case "fdiv" | "mod":
            return lambda a, b: _divided(op, dtype, a, b)
        case "min":
            return np.minimum if dtype.is_float else min
        case "max":
            return np.maximum if dtype.is_float else max
        case "pow":
            make = dtype.numpy.type
            return lambda a, b: np.power(make(a), make(b)).item() if dtype.is_int else a**b
        case "bitand" | "bitor" | "bitxor" if dtype is DType.BOOL:
            table = {"bitand": bool.__and__, "bitor": bool.__or__, "bitxor": bool.__xor__}
            return table[op]
        case "bitand":
            return lambda a, b: a & b
        case "bitor":
            return lambda a, b: a | b
        case "bitxor":
            return lambda a, b: a ^ b
        case "shl" | "shr":
            wrap, bits = _cast(DType.S64, dtype), dtype.bits
            if op == "shl":
                return lambda a, b: wrap(a << (b % bits))
            return lambda a, b: wrap(a >> (b % bits))
    raise NestError(f"operator {op}")


def _divided(op: str, dtype: DType, a: Any, b: Any) -> Any:
    if not dtype.is_float and b <= 0:
        raise NestError(f"a divisor of {b}")
    return a // b if op == "fdiv" else a % b


def _unary(expr: core.Unary, arg: Value) -> Value:
    dtype = expr.dtype
    match expr.op:
        case "neg" if dtype.is_float:
            return lambda: -arg()
        case "neg":
            fit = _fit(dtype)
            return lambda: fit(-arg())
        case "inv" if dtype is not DType.BOOL:
            wrap = _cast(DType.S64, dtype)
            return lambda: UNSET if (v := arg()) is UNSET else wrap(~v)
        case _:
            return lambda: UNSET if (v := arg()) is UNSET else not v


def _call(fn: str, dtype: DType) -> Callable[..., Any]:
    if not dtype.is_float:
        bits = dtype.bits
        table: dict[str, Callable[..., Any]] = {
            "abs": abs,
            "sign": lambda v: (v > 0) - (v < 0),
            "popcount": lambda v: bin(int(v) & ((1 << bits) - 1)).count("1"),
        }
        return table[fn]
    if fn in ("erf", "fast_erf"):
        from scipy.special import erf

        return lambda v: dtype.numpy.type(erf(v))
    if fn == "rsqrt":
        return lambda v: 1 / np.sqrt(v)
    if fn == "nofma":
        return lambda v: v
    if fn == "fma":
        from tests.property.naive import fused

        return lambda a, b, c: dtype.numpy.type(fused(dtype, a, b, c))
    names = {"rne": "rint", "atan": "arctan", "atan2": "arctan2"}
    fn = fn.removeprefix("fast_")
    return getattr(np, names.get(fn, fn))
