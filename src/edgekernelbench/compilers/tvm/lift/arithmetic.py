"""Core expressions for scalar arithmetic with TIR's dtypes.

Values of dtypes that loads widen stay wide: f16 is computed in f32 (rounded when stored), small
integers in s32, wrapped to their width after each operation that may leave it. 64-bit integers are
computed in s32 as long as their range shows that it makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from edgekernelbench.compilers.tvm.lift.refusal import Refused
from edgekernelbench.ir import core
from edgekernelbench.ir.core import Const, Expr
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.ranges import exact_range, range_of

_S32 = DType.S32.int_range


def literal(value: float, dtype: DType) -> Const:
    """A constant of a widened dtype; 64-bit integers that fit are s32."""
    if dtype is DType.BOOL:
        return Const(bool(value), dtype)
    if dtype.is_float:
        return Const(float(value), dtype.widened)
    number = int(value)
    wide = dtype.widened
    if wide is DType.S64 and _S32[0] <= number <= _S32[1]:
        wide = DType.S32
    return Const(number, wide)


@dataclass(slots=True)
class Arithmetic:
    """``ranges`` holds those of axes and of integer lets."""

    ranges: dict[core.Var, tuple[int, int]] = field(default_factory=dict)

    # ---------------------------------------------------------- conversions
    def to(self, value: Expr, dtype: DType) -> Expr:
        """``value`` in ``dtype``, by a cast where needed; constants are converted at once."""
        if value.dtype is dtype:
            return value
        if isinstance(value, Const) and dtype.is_float:
            return Const(float(value.value), dtype)
        if isinstance(value, Const) and dtype.is_int and not value.dtype.is_float:
            low, high = dtype.int_range
            if low <= int(value.value) <= high:
                return Const(int(value.value), dtype)
        return core.Cast(value, dtype)

    def cast(self, value: Expr, dtype: DType) -> Expr:
        """TIR's cast to ``dtype``, the result widened."""
        if dtype is DType.BOOL:
            return self.truth(value)
        wide = dtype.widened
        if dtype.is_float:
            return self.to(value, wide)
        if value.dtype.is_float:
            return self.to(self.to(value, dtype), wide)
        if dtype is DType.S64:
            return self.to(value, DType.S64) if value.dtype is DType.U32 else self.integer(value)
        if self._fits(value, dtype):
            return self.to(value, wide)
        return self.to(self.to(value, dtype), wide)

    def integer(self, value: Expr) -> Expr:
        return self.to(value, DType.S32) if value.dtype is DType.BOOL else value

    def truth(self, value: Expr) -> Expr:
        """``value`` as a condition."""
        if value.dtype is DType.BOOL:
            return value
        if isinstance(value, core.Cast) and value.arg.dtype is DType.BOOL:
            return value.arg
        return core.Binary("ne", value, self.to(literal(0, DType.S32), value.dtype), DType.BOOL)

    def _fits(self, value: Expr, dtype: DType) -> bool:
        low, high = range_of(value, self.ranges)
        first, last = dtype.int_range
        return first <= low and high <= last

    def unified(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        """Both in one dtype: they differ where one integer of 64 bits was found to be small."""
        if a.dtype is b.dtype:
            return a, b
        a, b = self.integer(a), self.integer(b)
        both = {a.dtype, b.dtype}
        if both <= {DType.S32, DType.S64}:
            return self.to(a, DType.S64), self.to(b, DType.S64)
        if len(both) == 1:
            return a, b
        raise Refused(f"operands of dtypes {a.dtype.value} and {b.dtype.value}")

    # ---------------------------------------------------------- operations
    def binary(self, op: core.ArithOp, a: Expr, b: Expr, dtype: DType) -> Expr:
        """``a op b`` for a TIR operation of ``dtype``."""
        if dtype is DType.BOOL:
            return self._bool(op, a, b)
        a, b = self.unified(a, b)
        if isinstance(a, Const) and isinstance(b, Const) and op in ("add", "sub", "mul"):
            folded = _fold(op, a, b)
            if folded is not None:
                return folded
        out = core.Binary(op, a, b, a.dtype)
        if a.dtype.is_float or dtype in (DType.S32, DType.U32) or op in ("min", "max"):
            return out
        if dtype is DType.S64:
            return self._wide(out)
        found = exact_range(out, self.ranges)
        low, high = dtype.int_range
        if found is not None and low <= found[0] and found[1] <= high:
            return out
        return self.to(core.Cast(out, dtype), dtype.widened)

    def _wide(self, out: core.Binary) -> Expr:
        """A 64-bit result that was computed in 32 bits, if it fits there."""
        if out.dtype is not DType.S32:
            return out
        found = exact_range(out, self.ranges)
        if found is not None and _S32[0] <= found[0] and found[1] <= _S32[1]:
            return out
        left, right = self.to(out.left, DType.S64), self.to(out.right, DType.S64)
        return core.Binary(out.op, left, right, DType.S64)

    def _bool(self, op: core.ArithOp, a: Expr, b: Expr) -> Expr:
        known: dict[str, core.ArithOp] = {
            "and": "and", "or": "or", "bitand": "and", "bitor": "or",
            "mul": "and", "add": "or", "min": "and", "max": "or",
        }  # fmt: skip
        if op == "bitxor":
            return core.Binary("ne", self.cast(a, DType.S32), self.cast(b, DType.S32), DType.BOOL)
        if op not in known:
            raise Refused(f"operation {op} on bools")
        return core.Binary(known[op], self.truth(a), self.truth(b), DType.BOOL)

    def compare(self, op: core.CompareOp, a: Expr, b: Expr) -> Expr:
        if a.dtype is DType.BOOL or b.dtype is DType.BOOL:
            a, b = self.to(a, DType.S32), self.to(b, DType.S32)
        a, b = self.unified(a, b)
        if op == "lt" and isinstance(a, Const) and a.value == 0 and _is_flag(b):
            return self.truth(b)
        if op in ("ne", "gt") and isinstance(b, Const) and b.value == 0 and _is_flag(a):
            return self.truth(a)
        return core.Binary(op, a, b, DType.BOOL)

    def select(self, cond: Expr, then: Expr, other: Expr, border: bool = False) -> Expr:
        then, other = self.unified(then, other)
        return core.Select(self.truth(cond), then, other, then.dtype, border)

    def truncated(self, op: core.ArithOp, a: Expr, b: Expr, dtype: DType) -> Expr:
        """Division (``fdiv``) or remainder (``mod``) of integers as C has it, ``b`` constant."""
        if not isinstance(b, Const) or b.value <= 0:
            raise Refused("an integer division by what is not a positive constant")
        if range_of(a, self.ranges)[0] >= 0:
            return self.binary(op, a, b, dtype)
        zero = self.to(literal(0, DType.S32), a.dtype)
        minus = self.binary("sub", zero, a, dtype)
        mirrored = self.binary("sub", zero, self.binary(op, minus, b, dtype), dtype)
        return self.select(self.compare("ge", a, zero), self.binary(op, a, b, dtype), mirrored)


def _is_flag(value: Expr) -> bool:
    return isinstance(value, core.Cast) and value.arg.dtype is DType.BOOL


def _fold(op: str, a: Const, b: Const) -> Const | None:
    """Integer constants of index arithmetic, where the result fits."""
    if not a.dtype.is_int:
        return None
    x, y = int(a.value), int(b.value)
    value = x + y if op == "add" else x - y if op == "sub" else x * y
    low, high = a.dtype.int_range
    return Const(value, a.dtype) if low <= value <= high else None
