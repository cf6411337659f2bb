"""Expressions of the loop program in TIR.

Nodes that are used more than once, and every chain deeper than a bound, are kept in *slots*: local
buffers of one element, or of one element a lane inside a vectorised loop, which LLVM turns into
registers. TVM's own lets are no use: its analyzer substitutes them into one another, in passes and
in the code generator, which takes exponential time for a chain like ``t1 = t0*t0; t2 = t1*t1``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import tvm_ffi
from tvm import tirx
from tvm.ir.expr import TensorLoad

from edgekernelbench.compilers.contraction import becomes_integer
from edgekernelbench.compilers.tvm import scalars
from edgekernelbench.compilers.tvm.dialect import LLVM, Dialect
from edgekernelbench.compilers.tvm.negations import without_negations
from edgekernelbench.compilers.tvm.scalars import TExpr, tvm_dtype
from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType

_MAX_DEPTH = 40
# What TVM's simplifier proves things about, each time from the ground up: it takes time exponential
# in their depth.
_PROVED = {"and", "or", "fdiv", "mod", "min", "max", *core.COMPARE_OPS}
_PROVED_DEPTH = 6
_LEAVES = (tirx.Var, tirx.IntImm, tirx.FloatImm)
_INT32_MAX = (1 << 31) - 1


class Scope:
    """What names mean at one place of a function: buffers by name, variables by uid; functions
    by the code generator's dialect."""

    def __init__(self, dialect: Dialect = LLVM) -> None:
        self.dialect = dialect
        self.buffers: dict[str, tirx.Buffer] = {}
        self.variables: dict[int, TExpr] = {}
        self._slots = 0

    def indices(self, tensor: core.Tensor, values: Iterable[TExpr]) -> list[TExpr]:
        """Index expressions of one access, in int64 where int32 cannot address the buffer.

        A tensor of shape () is stored with one dimension.
        """
        name = "int64" if tensor.size > _INT32_MAX else "int32"
        out = [v if scalars.dtype_name(v) == name else tirx.Cast(name, v) for v in values]
        return out or [tirx.IntImm(name, 0)]

    def slot_name(self) -> str:
        self._slots += 1
        return f"t{self._slots}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where statements are being appended.

    Attributes:
        out: statements of the block so far.
        allocations: where allocations go: a list that ends up before any vectorised loop.
        lane: loop variable and extent of the enclosing vectorised loop.
    """

    out: list[tirx.Stmt]
    allocations: list[tirx.Stmt]
    lane: tuple[TExpr, int] | None = None


class ExpressionEmitter:
    """Translates expressions at one place.

    Args:
        scope: names at this place.
        place: receives the statements that the value needs.
        fenced: keep every float product apart from the addition that uses it.
    """

    def __init__(self, scope: Scope, place: Place, fenced: bool = False) -> None:
        self._scope = scope
        self._place = place
        self._fenced = fenced

    def bind(self, value: TExpr) -> TExpr:
        """The value as something that is cheap to repeat within the statement."""
        if isinstance(value, _LEAVES):
            return value
        if isinstance(value, TensorLoad) and all(isinstance(i, _LEAVES) for i in value.indices):
            return value
        return self.keep(value)

    def keep(self, value: TExpr) -> TExpr:
        """The value in a slot of its own, safe from later stores."""
        dtype = scalars.dtype_name(value)
        lane, lanes = self._place.lane or (tirx.IntImm("int32", 0), 1)
        stored = "uint8" if dtype == "bool" else dtype
        slot = tirx.decl_buffer((lanes,), stored, self._scope.slot_name(), scope="local")
        self._place.allocations.append(tirx.AllocBuffer(slot))
        if dtype == "bool":
            value = tirx.Cast("uint8", scalars.as_int(value))
        self._place.out.append(tirx.BufferStore(slot, value, [lane]))
        loaded = tirx.BufferLoad(slot, [lane])
        return tirx.NE(loaded, tirx.IntImm("uint8", 0)) if dtype == "bool" else loaded

    def index(self, value: TExpr) -> TExpr:
        """An index that TVM cannot misread: its simplifier, which only looks at indices, takes
        u32 arithmetic for arithmetic that does not wrap, and drops clamps that it then thinks idle.
        """
        return self.keep(value) if _wraps(value) else value

    def emit(self, expr: core.Expr, unfenced: core.Binary | None = None) -> TExpr:
        """TIR of ``expr``. Products right under ``unfenced`` may be contracted in any case."""
        expr = without_negations(expr)
        order = core.unique_nodes(expr)
        uses = Counter(id(child) for node in order for child in core.children(node))
        fences = self._fences(order, unfenced)
        values: dict[int, TExpr] = {}
        depths: dict[int, int] = {}
        for node in order:
            below = core.children(node)
            value = self._node(node, [values[id(child)] for child in below])
            if id(node) in fences:
                value = self._scope.dialect.fence(value)
            own = _PROVED_DEPTH if _is_proved(node) else 1
            depth = own + max((depths[id(child)] for child in below), default=0)
            if below and (uses[id(node)] > 1 or depth > _MAX_DEPTH):
                value, depth = self.bind(value), 1
            values[id(node)] = value
            depths[id(node)] = depth
        return values[id(expr)]

    def _fences(self, order: list[core.Expr], unfenced: core.Binary | None) -> set[int]:
        """Ids of the float products in ``order`` that keep their own rounding."""
        if self._fenced:
            roots: Iterable[list[core.Expr]] = (order,)
        else:
            roots = (core.unique_nodes(n.arg) for n in order if becomes_integer(n))
        free = set() if unfenced is None else {id(unfenced.left), id(unfenced.right)}
        return {
            id(node)
            for nodes in roots
            for node in nodes
            if isinstance(node, core.Binary)
            and node.op == "mul"
            and node.dtype.is_float
            and id(node) not in free
        }

    # -------------------------------------------------------------- nodes
    def _node(self, node: core.Expr, args: list[TExpr]) -> TExpr:
        match node:
            case core.Const(value=value, dtype=dtype):
                return scalars.const(value, dtype)
            case core.VarRef(var=var):
                return self._scope.variables[var.uid]
            case core.Load(tensor=tensor):
                return self._load(tensor, args)
            case core.Unary(op=op, dtype=dtype):
                return self._unary(op, args[0], dtype)
            case core.Binary():
                return self._binary(node, args[0], args[1])
            case core.Call(fn=fn, dtype=dtype):
                return self._scope.dialect.call(fn, args, node.args[0].dtype, dtype, self.bind)
            case core.Select():
                return tirx.Select(*args)
            case core.Cast(arg=arg, dtype=dtype):
                return self.cast(args[0], arg.dtype, dtype)
            case _:
                raise TypeError(f"{type(node).__name__} in a loop program")

    def _load(self, tensor: core.Tensor, indices: list[TExpr]) -> TExpr:
        indices = [self.index(value) for value in indices]
        value = tirx.BufferLoad(
            self._scope.buffers[tensor.name], self._scope.indices(tensor, indices)
        )
        if tensor.dtype is DType.BOOL:
            return tirx.NE(value, tirx.IntImm("uint8", 0))
        widened = tensor.dtype.widened
        return value if widened is tensor.dtype else tirx.Cast(tvm_dtype(widened), value)

    def _unary(self, op: str, arg: TExpr, dtype: DType) -> TExpr:
        match op:
            case "not":
                return scalars.negate(arg)
            case "inv":
                return scalars.negate(arg) if dtype is DType.BOOL else tirx.bitwise_not(arg)
            case _ if dtype is DType.U32:
                return scalars.wrap_u32("sub", scalars.const(0, dtype), arg)
            case _:
                return tirx.Mul(arg, scalars.const(-1, dtype))

    def _binary(self, node: core.Binary, a: TExpr, b: TExpr) -> TExpr:
        dtype = node.dtype
        if node.op in core.COMPARE_OPS:
            return scalars.compare(node.op, a, b, node.left.dtype)
        if dtype is DType.U32 and node.op in ("add", "sub", "mul"):
            return scalars.wrap_u32(node.op, a, b)
        match node.op:
            case "add":
                return tirx.Add(a, b)
            case "sub":
                return tirx.Sub(a, b)
            case "mul":
                return tirx.Mul(a, b)
            case "div":
                return scalars.divide(a, b)
            case "fdiv":
                return self._floor_divide(a, b, dtype)
            case "mod":
                return self._floor_modulo(a, b, dtype)
            case "pow":
                return self._scope.dialect.power(a, b, node.right, dtype, self.bind)
            case "min":
                return scalars.minimum(self._cheap(a), self._cheap(b))
            case "max":
                return scalars.maximum(self._cheap(a), self._cheap(b))
            case "shl" | "shr":
                return scalars.shift(node.op, a, b, dtype)
            case "and":
                return tirx.And(a, b)
            case "or":
                return tirx.Or(a, b)
            case _:
                return self._bitwise(node.op, a, b, dtype)

    def _cheap(self, value: TExpr) -> TExpr:
        """A float as a variable; integers stay expressions, which TVM simplifies as indices."""
        return self.bind(value) if scalars.is_float(value) else value

    @staticmethod
    def _bitwise(op: str, a: TExpr, b: TExpr, dtype: DType) -> TExpr:
        if dtype is DType.BOOL:
            match op:
                case "bitand":
                    return tirx.And(a, b)
                case "bitor":
                    return tirx.Or(a, b)
                case _:
                    return tirx.NE(scalars.as_int(a), scalars.as_int(b))
        match op:
            case "bitand":
                return tirx.bitwise_and(a, b)
            case "bitor":
                return tirx.bitwise_or(a, b)
            case _:
                return tirx.bitwise_xor(a, b)

    def _floor_divide(self, a: TExpr, b: TExpr, dtype: DType) -> TExpr:
        if dtype.is_float:
            return tirx.floor(scalars.divide(a, b))
        if _may_fall(a):
            a = self._repeatable(a)
            return tirx.truncdiv(tirx.Sub(a, _modulo_by_remainder(a, b)), b)
        return tirx.FloorDiv(a, b)

    def _floor_modulo(self, a: TExpr, b: TExpr, dtype: DType) -> TExpr:
        if dtype.is_float:
            a, b = self.bind(a), self.bind(b)
            return tirx.Sub(a, tirx.Mul(tirx.floor(scalars.divide(a, b)), b))
        if _may_fall(a):
            return _modulo_by_remainder(self._repeatable(a), b)
        return tirx.FloorMod(a, b)

    def _repeatable(self, dividend: TExpr) -> TExpr:
        """A dividend for use in several places: without a variable, a chain of divisions would
        grow by a factor with each of them."""
        return self.bind(dividend) if _divides(dividend) else dividend

    def cast(self, value: TExpr, source: DType, dtype: DType) -> TExpr:
        """The conversion of `core.Cast`."""
        if source is dtype:
            return value
        if dtype is DType.F16 and _widens_f16(value):
            return value.value
        if dtype is DType.BOOL:
            return scalars.to_bool(value, source)
        if source is DType.BOOL:
            return tirx.Cast(tvm_dtype(dtype), scalars.as_int(value))
        if source.is_float and dtype.is_int:
            if source is DType.F16:
                value, source = tirx.Cast("float32", value), DType.F32
            return scalars.float_to_int(self.bind(value), source, dtype, self.bind)
        out = tirx.Cast(tvm_dtype(dtype), value)
        return self.keep(out) if _may_change(source, dtype) else out

    def stored(self, value: TExpr, source: DType, tensor: core.Tensor) -> TExpr:
        """``value`` as an element of ``tensor``: rounded to f16, wrapped to small integers."""
        if tensor.dtype is DType.BOOL:
            flag = self.cast(value, source, DType.BOOL)
            return tirx.Cast("uint8", scalars.as_int(flag))
        if isinstance(value, tirx.Cast) and scalars.dtype_name(value.value) == tvm_dtype(
            tensor.dtype
        ):
            return value.value  # what was loaded, and widened since
        if _may_change(source, tensor.dtype):  # in memory in a moment: no slot is needed
            return tirx.Cast(tvm_dtype(tensor.dtype), value)
        return self.cast(value, source, tensor.dtype)


def _widens_f16(value: TExpr) -> bool:
    """Whether ``value`` is an f16 load that was widened: a cast back gives what was loaded."""
    return isinstance(value, tirx.Cast) and scalars.dtype_name(value.value) == "float16"


def _may_change(source: DType, dtype: DType) -> bool:
    """Whether a conversion between integers wraps some values.

    TVM takes such a cast for one that its argument fits: ``s32(s8(x))`` for not negative where
    ``x`` is not, so that floor divisions lose their correction, and clamps of an index vanish. A
    value read from a slot it knows nothing about.
    """
    if not (source.is_int and dtype.is_int):
        return False
    (low, high), (least, most) = source.int_range, dtype.int_range
    return low < least or high > most


def _may_fall(value: TExpr) -> bool:
    """Whether some variable may count negatively in an index expression.

    TVM's simplifier turns ``(4 - i) // 3`` into ``i // -3 + 1`` and ``(4 - i) % 3`` into
    ``i % -3 * -1``, which are other numbers. Remainders that truncate it leaves alone.
    """
    found = [False]

    def look(node: tirx.Sub | tirx.Mul) -> None:
        if isinstance(node, tirx.Sub):
            found[0] = found[0] or not isinstance(node.b, tirx.IntImm)
        else:
            factors = (node.a, node.b)
            found[0] = found[0] or any(isinstance(f, tirx.IntImm) and f.value < 0 for f in factors)

    tvm_ffi.structural_walk(value, ((tirx.Sub, tirx.Mul), look))
    return found[0]


def _is_proved(node: core.Expr) -> bool:
    match node:
        case core.Binary(op=op, dtype=dtype):
            return op in _PROVED and not dtype.is_float
        case core.Select():
            return True
    return False


def _wraps(value: TExpr) -> bool:
    """Whether u32 values take part in an index."""
    found = [False]

    def look(node: tirx.Cast) -> None:
        found[0] = found[0] or "uint32" in (
            scalars.dtype_name(node),
            scalars.dtype_name(node.value),
        )

    tvm_ffi.structural_walk(value, (tirx.Cast, look))
    return found[0] or scalars.dtype_name(value) == "uint32"


def _divides(value: TExpr) -> bool:
    """Whether a remainder that truncates takes part in an integer value."""
    found: list[tirx.Mod] = []
    tvm_ffi.structural_walk(value, (tirx.Mod, found.append))
    return bool(found)


def _modulo_by_remainder(a: TExpr, b: TExpr) -> TExpr:
    """``a % b`` that floors, for positive ``b``, from remainders that truncate."""
    remainder = tirx.truncmod(a, b)
    zero = tirx.IntImm(scalars.dtype_name(b), 0)
    return tirx.Add(remainder, tirx.Select(tirx.LT(remainder, zero), b, zero))
