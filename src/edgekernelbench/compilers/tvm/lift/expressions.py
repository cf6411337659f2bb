"""TIR expressions as core expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from edgekernelbench.compilers.tvm.lift.arithmetic import Arithmetic, literal
from edgekernelbench.compilers.tvm.lift.refusal import Refused, unsayable
from edgekernelbench.compilers.tvm.lift.sources import Builder, Constant, Source, dtype_of
from edgekernelbench.ir import core
from edgekernelbench.ir.core import Const, Expr
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.ranges import range_of

TExpr = Any  # tvm's expression classes share no useful static type

_ARITHMETIC: dict[str, core.ArithOp] = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "FloorDiv": "fdiv", "FloorMod": "mod",
    "Min": "min", "Max": "max", "And": "and", "Or": "or", "BitwiseAnd": "bitand",
    "BitwiseOr": "bitor", "BitwiseXor": "bitxor", "LShift": "shl", "RShift": "shr",
}  # fmt: skip
_COMPARISONS: dict[str, core.CompareOp] = {
    "EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge",
}  # fmt: skip
_BITS: dict[str, core.ArithOp] = {
    "bitwise_and": "bitand", "bitwise_or": "bitor", "bitwise_xor": "bitxor",
    "shift_left": "shl", "shift_right": "shr",
}  # fmt: skip
_INTRINSICS = {
    "exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "sqrt": "sqrt", "rsqrt": "rsqrt",
    "sin": "sin", "cos": "cos", "tan": "tan", "tanh": "tanh", "erf": "erf", "atan": "atan",
    "atan2": "atan2", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rne",
    "nearbyint": "rne", "fabs": "abs",
}  # fmt: skip


class Expressions:
    """Converts the expressions of one loop function.

    Args:
        builder: takes up tables.
        buffers: what each buffer of the function stands for, by its variable.
    """

    def __init__(self, builder: Builder, buffers: Mapping[TExpr, Source]) -> None:
        self.builder = builder
        self.buffers = buffers
        self.variables: dict[TExpr, Expr] = {}
        self.arithmetic = Arithmetic()

    def convert(self, expr: TExpr) -> Expr:
        """The expression with its value widened as loads are; see `arithmetic`.

        Raises:
            Refused: the core has no such operation.
        """
        kind, math = type(expr).__name__, self.arithmetic
        if kind in _ARITHMETIC:
            a, b = self.convert(expr.a), self.convert(expr.b)
            return math.binary(_ARITHMETIC[kind], a, b, _dtype(expr))
        if kind in _COMPARISONS:
            return math.compare(_COMPARISONS[kind], self.convert(expr.a), self.convert(expr.b))
        match kind:
            case "IntImm" | "FloatImm":
                return literal(expr.value, _dtype(expr))
            case "Var":
                if expr not in self.variables:
                    raise Refused(f"a variable of unknown value, {expr}")
                return self.variables[expr]
            case "BufferLoad" | "TensorLoad":
                return self._load(expr)
            case "Div" | "Mod":
                return self._divide(kind, expr)
            case "Cast":
                return math.cast(self.convert(expr.value), _dtype(expr))
            case "Not":
                return core.Unary("not", math.truth(self.convert(expr.a)), DType.BOOL)
            case "BitwiseNot":
                value = self.convert(expr.a)
                return core.Unary("inv", value, value.dtype)
            case "Select":
                parts = (expr.condition, expr.true_value, expr.false_value)
                cond, then, other = (self.convert(part) for part in parts)
                return math.select(cond, then, other)
            case "Let":
                return self.let(expr.var, expr.value, lambda: self.convert(expr.body))
            case "Call":
                return self._call(expr)
        raise unsayable(kind)

    def let(self, var: TExpr, value: TExpr, body: Callable[[], Expr]) -> Expr:
        """``body()`` with ``var`` bound to ``value``."""
        bound = self.convert(value)
        mine = self.builder.var(str(var.name), bound.dtype)
        if not bound.dtype.is_float:
            self.arithmetic.ranges[mine] = range_of(bound, self.arithmetic.ranges)
        self.variables[var] = core.VarRef(mine)
        return core.Block(((mine, bound),), body())

    def _load(self, expr: TExpr) -> Expr:
        source = self.buffers.get(expr.source)
        if source is None:
            raise Refused(f"a read of {expr.source}, which is not defined")
        if isinstance(source, Constant):
            flat = source.array.reshape(-1)
            if flat.size == 1 or (flat.size and (flat == flat[0]).all()):
                return literal(flat[0].item(), _dtype(expr))
            source = self.builder.table(source)
        return core.Load(source, tuple(self.convert(i) for i in expr.indices))

    def _divide(self, kind: str, expr: TExpr) -> Expr:
        a, b = self.convert(expr.a), self.convert(expr.b)
        if _dtype(expr).is_float:
            if kind == "Mod":
                raise Refused("the remainder of floats")
            return self.arithmetic.binary("div", a, b, _dtype(expr))
        op: core.ArithOp = "fdiv" if kind == "Div" else "mod"
        return self.arithmetic.truncated(op, a, b, _dtype(expr))

    # ---------------------------------------------------------- calls
    def _call(self, expr: TExpr) -> Expr:
        name = str(getattr(expr.op, "name", expr.op)).split(".")[-1]
        args, dtype = tuple(self.convert(a) for a in expr.args), _dtype(expr)
        if name == "if_then_else":
            return self.arithmetic.select(*args, border=_is_border(args[0]))
        if name in _BITS:
            return self.arithmetic.binary(_BITS[name], args[0], args[1], dtype)
        if name in _INTRINSICS:
            if not dtype.is_float:
                return args[0] if name in ("floor", "ceil", "trunc", "round") else self._odd(name)
            return core.Call(_INTRINSICS[name], args, args[0].dtype)
        made = self._composed(name, args)
        return self._odd(name) if made is None else made

    def _odd(self, name: str) -> Expr:
        raise Refused(f"function {name}")

    def _composed(self, name: str, args: tuple[Expr, ...]) -> Expr | None:
        """Functions that the core says in other words."""
        x = args[0] if args else literal(0, DType.F32)
        dtype = x.dtype
        one = self.arithmetic.to(literal(1, DType.F32), dtype) if dtype.is_float else x

        def call(fn: str, value: Expr) -> Expr:
            return core.Call(fn, (value,), dtype)

        def op(name: core.ArithOp, a: Expr, b: Expr) -> Expr:
            return core.Binary(name, a, b, dtype)

        match name:
            case "likely":
                return x
            case "abs":
                return call("abs", x)
            case "bitwise_not":
                return core.Unary("inv", x, dtype)
            case "popcount":
                return call("popcount", x)
            case "pow" | "power":
                return self._power(x, args[1])
            case "sigmoid":
                return op("div", one, op("add", one, call("exp", core.Unary("neg", x, dtype))))
            case "log1p":
                return call("log", op("add", one, x))
            case "log10":
                return op("mul", call("log", x), Const(1 / math.log(10), dtype))
            case "exp10":
                return call("exp2", op("mul", x, Const(math.log2(10), dtype)))
            case "isnan":
                return core.Binary("ne", x, x, DType.BOOL)
            case "isinf":
                return core.Binary("eq", call("abs", x), Const(math.inf, dtype), DType.BOOL)
            case "isfinite":
                return core.Binary("lt", call("abs", x), Const(math.inf, dtype), DType.BOOL)
        return None

    def _power(self, x: Expr, y: Expr) -> Expr:
        if not x.dtype.is_float:
            return self._odd("pow of integers")
        exponent = float(y.value) if isinstance(y, Const) else None
        match exponent:
            case 1.0:
                return x
            case 0.5:
                return core.Call("sqrt", (x,), x.dtype)
            case -0.5:
                return core.Call("rsqrt", (x,), x.dtype)
            case 2.0 | 3.0:
                var = self.builder.var("t", x.dtype)
                t = core.VarRef(var)
                out = core.Binary("mul", t, t, x.dtype)
                out = out if exponent == 2.0 else core.Binary("mul", out, t, x.dtype)
                return core.Block(((var, x),), out)
            case _:
                return core.Binary("pow", x, self.arithmetic.to(y, x.dtype), x.dtype)


def _dtype(expr: TExpr) -> DType:
    return dtype_of(str(expr.ty.dtype))


def _is_border(cond: Expr) -> bool:
    """Whether a condition is a range test of indices: comparisons without data, and their and."""
    if any(isinstance(node, core.Load) for node in core.walk(cond)):
        return False
    return all(
        node.op in ("and", "lt", "le", "gt", "ge")
        for node in core.walk(cond)
        if isinstance(node, core.Binary) and node.dtype is DType.BOOL
    )
