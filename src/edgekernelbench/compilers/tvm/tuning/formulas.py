"""Expressions of the core program as the compiler's own, for its own lowering and search.

Unlike `compilers.tvm.expressions` this writes what an importer would: transcendental functions and
conversions are the compiler's, every value is one formula. An integer may be computed wider than
the program says, which changes no value that does not overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import tirx

from edgekernelbench.compilers.tvm import scalars
from edgekernelbench.compilers.tvm.lift.refusal import Refused
from edgekernelbench.compilers.tvm.scalars import TExpr, dtype_name, tvm_dtype
from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType

_MAX_NODES = 4000
"""Nodes of a formula written out as a tree; the compiler's passes take it for one."""

_FUNCTIONS: dict[str, Callable[..., TExpr]] = {
    "abs": tirx.abs, "floor": tirx.floor, "ceil": tirx.ceil, "trunc": tirx.trunc,
    "rne": tirx.nearbyint, "sqrt": tirx.sqrt, "rsqrt": tirx.rsqrt, "exp": tirx.exp,
    "exp2": tirx.exp2, "log": tirx.log, "log2": tirx.log2, "sin": tirx.sin, "cos": tirx.cos,
    "tan": tirx.tan, "tanh": tirx.tanh, "erf": tirx.erf, "atan": tirx.atan, "atan2": tirx.atan2,
    "popcount": tirx.popcount,
}  # fmt: skip
_PLAIN: dict[str, Callable[[TExpr, TExpr], TExpr]] = {
    "add": tirx.Add, "sub": tirx.Sub, "mul": tirx.Mul, "min": tirx.Min, "max": tirx.Max,
    "and": tirx.And, "or": tirx.Or,
}  # fmt: skip
_BITWISE: dict[str, Callable[[TExpr, TExpr], TExpr]] = {
    "bitand": tirx.bitwise_and, "bitor": tirx.bitwise_or, "bitxor": tirx.bitwise_xor,
}  # fmt: skip


class Formulas:
    """Writes expressions of one stage.

    Args:
        tensors: what loads read, by name of the core tensor; each is indexed like a TE tensor.
        variables: axes and lets, by uid.
    """

    def __init__(self, tensors: Mapping[str, Any], variables: dict[int, TExpr]) -> None:
        self._tensors = tensors
        self._variables = variables
        self._sizes: dict[int, int] = {}

    def value(self, expr: core.Expr, dtype: DType | None = None) -> TExpr:
        """The formula, in its own dtype or converted to ``dtype`` as a store does.

        Raises:
            Refused: it has a part that is not translated, or is too long when written out.
        """
        made = self._exact(self._node(expr), expr.dtype)
        return made if dtype is None else _cast(made, expr.dtype, dtype)

    @staticmethod
    def _exact(value: TExpr, dtype: DType) -> TExpr:
        wanted = tvm_dtype(dtype)
        return value if dtype_name(value) == wanted else tirx.Cast(wanted, value)

    def _node(self, expr: core.Expr) -> TExpr:
        self._count(expr)
        match expr:
            case core.Const(value=value, dtype=dtype):
                return scalars.const(value, dtype)
            case core.VarRef(var=var):
                return self._variables[var.uid]
            case core.Load(tensor=tensor, indices=indices):
                return self._load(tensor, indices)
            case core.Unary(op=op, arg=arg, dtype=dtype):
                return self._unary(op, arg, dtype)
            case core.Binary():
                return self._binary(expr)
            case core.Call():
                return self._call(expr)
            case core.Select(cond=cond, then=then, other=other):
                branches = self.value(then), self.value(other)
                return tirx.if_then_else(self.value(cond), *branches)
            case core.Cast(arg=arg, dtype=dtype):
                return self.value(arg, dtype)
            case core.Block(lets=lets, result=result):
                for var, value in lets:
                    self._variables[var.uid] = self.value(value)
                    self._sizes[var.uid] = _size(value, self._sizes)
                return self._node(result)
        raise Refused(f"a formula with {type(expr).__name__}")

    def _count(self, expr: core.Expr) -> None:
        if isinstance(expr, core.Block) and _size(expr, self._sizes) > _MAX_NODES:
            raise Refused("a formula that is too long without names for its parts")

    def _load(self, tensor: core.Tensor, indices: Sequence[core.Expr]) -> TExpr:
        made = self._tensors[tensor.name](*(_wide(self._node(index)) for index in indices))
        widened = tensor.dtype.widened
        return made if widened is tensor.dtype else tirx.Cast(tvm_dtype(widened), made)

    def _unary(self, op: str, arg: core.Expr, dtype: DType) -> TExpr:
        value = self._node(arg)
        if op == "not" or (op == "inv" and dtype is DType.BOOL):
            return scalars.negate(value)
        if op == "inv":
            return tirx.bitwise_not(value)
        if dtype is DType.U32:
            return scalars.wrap_u32("sub", scalars.const(0, dtype), value)
        return tirx.Mul(value, _like(value, -1))

    def _binary(self, node: core.Binary) -> TExpr:
        a, b = _common(self._node(node.left), self._node(node.right))
        if node.op in core.COMPARE_OPS:
            return scalars.compare(node.op, a, b, node.left.dtype)
        if node.dtype is DType.U32 and node.op in ("add", "sub", "mul"):
            return scalars.wrap_u32(node.op, a, b)
        if node.op in _PLAIN:
            return _PLAIN[node.op](a, b)
        match node.op:
            case "div":
                return scalars.divide(a, b)
            case "fdiv":
                return tirx.floor(tirx.Div(a, b)) if node.dtype.is_float else tirx.FloorDiv(a, b)
            case "mod" if node.dtype.is_float:
                return tirx.Sub(a, tirx.Mul(tirx.floor(tirx.Div(a, b)), b))
            case "mod":
                return tirx.FloorMod(a, b)
            case "pow":
                return tirx.pow(a, b)
            case "shl" | "shr":
                a, b = self._exact(a, node.dtype), self._exact(b, node.dtype)
                return scalars.shift(node.op, a, b, node.dtype)
        return self._bitwise(node, a, b)

    def _bitwise(self, node: core.Binary, a: TExpr, b: TExpr) -> TExpr:
        if node.dtype is not DType.BOOL:
            return _BITWISE[node.op](self._exact(a, node.dtype), self._exact(b, node.dtype))
        if node.op == "bitxor":
            return tirx.NE(scalars.as_int(a), scalars.as_int(b))
        return tirx.And(a, b) if node.op == "bitand" else tirx.Or(a, b)

    def _call(self, node: core.Call) -> TExpr:
        args = [self.value(arg) for arg in node.args]
        if node.args[0].dtype is DType.F16:
            args = [tirx.Cast("float32", arg) for arg in args]
        if node.fn == "sign":
            zero, one, less = (_like(args[0], value) for value in (0, 1, -1))
            below = tirx.Select(tirx.LT(args[0], zero), less, zero)
            made = tirx.Select(tirx.GT(args[0], zero), one, below)
        else:
            made = _FUNCTIONS[node.fn](*args)
        return self._exact(made, node.dtype)


def _like(value: TExpr, number: int) -> TExpr:
    name = dtype_name(value)
    return tirx.FloatImm(name, number) if name.startswith("float") else tirx.IntImm(name, number)


def _common(a: TExpr, b: TExpr) -> tuple[TExpr, TExpr]:
    """Both in int64 where one of two integers is: axes are."""
    names = dtype_name(a), dtype_name(b)
    if names[0] == names[1] or "int64" not in names:
        return a, b
    return _wide(a), _wide(b)


def _wide(value: TExpr) -> TExpr:
    if isinstance(value, tirx.IntImm):
        return tirx.IntImm("int64", value.value)
    return value if dtype_name(value) == "int64" else tirx.Cast("int64", value)


def _cast(value: TExpr, source: DType, dtype: DType) -> TExpr:
    """The conversion of `core.Cast`, of values that are no NaN."""
    if source is dtype:
        return value
    if dtype is DType.BOOL:
        return scalars.to_bool(value, source)
    if source is DType.BOOL:
        return tirx.Cast(tvm_dtype(dtype), scalars.as_int(value))
    if source.is_float and dtype.is_int and dtype.bits < 32:
        low, high = dtype.int_range
        value = tirx.Max(tirx.Min(value, _like(value, high)), _like(value, low))
    elif source.is_float and dtype.is_int:
        return scalars.float_to_int(value, source, dtype, lambda x: x)
    return tirx.Cast(tvm_dtype(dtype), value)


def _size(expr: core.Expr, sizes: Mapping[int, int]) -> int:
    """Nodes when every let is written out wherever it is used."""
    known = dict(sizes)
    return _tree(expr, known)


def _tree(expr: core.Expr, known: dict[int, int]) -> int:
    match expr:
        case core.VarRef(var=var):
            return known.get(var.uid, 1)
        case core.Block(lets=lets, result=result):
            for var, value in lets:
                known[var.uid] = _tree(value, known)
            return _tree(result, known)
    total = 1
    for child in core.children(expr):
        total += _tree(child, known)
        if total > _MAX_NODES:
            break
    return total
