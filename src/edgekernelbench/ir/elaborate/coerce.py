"""Types of operands: how literals adapt, which casts are implicit, and what needs one written."""

from __future__ import annotations

import math

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.elaborate import build, rules
from edgekernelbench.ir.elaborate.context import Context
from edgekernelbench.ir.elaborate.values import (
    POISON,
    Number,
    Poison,
    Scalar,
    TupleValue,
    Value,
    View,
)
from edgekernelbench.ir.printer import print_expr

S32_LOW, S32_HIGH = DType.S32.int_range
S64_LOW, S64_HIGH = DType.S64.int_range
F16_LIMIT = 65520.0  # from here on rounding to f16 gives infinity


def show(expr: surface.Expr, limit: int = 60) -> str:
    """A surface expression on one line, for messages and fixed lines."""
    text = " ".join(print_expr(expr).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def counted(count: int, one: str, many: str | None = None) -> str:
    """``1 index``, ``2 indices``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def letters(count: int) -> str:
    """Axis names for a left side or a read: ``i, j, k``."""
    if count <= 7:
        return ", ".join("ijkmnpq"[:count]) or "i"
    return ", ".join(f"i{n}" for n in range(count))


def shape_text(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def scalar(cx: Context, value: Value, span: Span) -> Scalar | Poison:
    """One element: a one-element slice is read, a bigger one or a tuple is an error."""
    if isinstance(value, View):
        if value.rank == 0:
            return load(cx, value, span)
        name, rank = value.tensor.name, value.rank
        if value.prefix:
            return cx.error(
                rules.NOT_SCALAR,
                f"this slice of `{name}` has shape {shape_text(value.shape)}, not one element",
                span,
            )
        indices = letters(rank) if value.shape != (1,) else "0"
        return cx.error(
            rules.NOT_SCALAR,
            f"`{name}` is a tensor {shape_text(value.shape)} here, not one element",
            span,
            [f"read one element, such as `{name}[{indices}]`"],
        )
    if isinstance(value, TupleValue):
        return cx.error(
            rules.TUPLE,
            "this is a tuple, where one value is needed",
            span,
            ["take it apart first: `{ let (a, b) = ...  return a }`"],
        )
    return value


def load(cx: Context, view: View, span: Span) -> core.Expr:
    cx.count(span)
    return core.Load(view.tensor, view.prefix, span)


def natural(number: Number) -> DType:
    """The dtype of a number that nothing else decides."""
    if isinstance(number.value, bool):
        return DType.BOOL
    if isinstance(number.value, float):
        return DType.F32
    return DType.S32 if S32_LOW <= number.value <= S32_HIGH else DType.S64


def express(cx: Context, value: Scalar, span: Span) -> core.Expr:
    """A number as a constant of its natural dtype; an expression as it is."""
    if not isinstance(value, Number):
        return value
    cx.count(span)
    return build.const(value.value, natural(value), span)


def widen(cx: Context, expr: core.Expr) -> core.Expr:
    """As an operand of arithmetic: bools and small integers as s32."""
    return build.cast(cx, expr, expr.dtype.promoted, expr.span)


def join(cx: Context, a: DType, b: DType, span: Span) -> DType | None:
    """The common dtype of two promoted operands; None, reported, for u32 with s32 or s64."""
    if a is b:
        return a
    if a.is_float or b.is_float:
        return DType.F64 if DType.F64 in (a, b) else DType.F32
    if DType.U32 in (a, b):
        other = b if a is DType.U32 else a
        cx.error(
            rules.SIGNEDNESS,
            f"one operand is u32, the other {other.value}",
            span,
            [
                f"cast one of them: `{other.value}(...)` for signed arithmetic, "
                "`u32(...)` for modular arithmetic"
            ],
        )
        return None
    return DType.S64


def unify(
    cx: Context, a: Scalar, b: Scalar, span: Span
) -> tuple[core.Expr, core.Expr, DType] | None:
    """Both operands of arithmetic in their common dtype; None when it was reported that none is."""
    if isinstance(a, Number) and isinstance(b, Number):
        dtype = join(cx, natural(a).promoted, natural(b).promoted, span)
        assert dtype is not None
        return build.const(a.value, dtype, span), build.const(b.value, dtype, span), dtype
    if isinstance(a, Number):
        swapped = unify(cx, b, a, span)
        return None if swapped is None else (swapped[1], swapped[0], swapped[2])
    left = widen(cx, a)
    if isinstance(b, Number):
        return _unify_number(cx, left, b, span)
    right = widen(cx, b)
    if DType.U32 in (left.dtype, right.dtype) and left.dtype is not right.dtype:
        if left.dtype is DType.U32 and _fits_choice(right, DType.U32):
            right = build.cast(cx, right, DType.U32, span)
        elif right.dtype is DType.U32 and _fits_choice(left, DType.U32):
            left = build.cast(cx, left, DType.U32, span)
    dtype = join(cx, left.dtype, right.dtype, span)
    if dtype is None:
        return None
    return build.cast(cx, left, dtype, span), build.cast(cx, right, dtype, span), dtype


def _fits_choice(expr: core.Expr, dtype: DType) -> bool:
    if not build.is_choice(expr):
        return False
    low, high = dtype.int_range
    return all(not isinstance(v, float) and low <= v <= high for v in build.choices(expr))


def _unify_number(
    cx: Context, left: core.Expr, number: Number, span: Span
) -> tuple[core.Expr, core.Expr, DType] | None:
    value, dtype = number.value, left.dtype
    cx.count(span)
    if dtype.is_float:
        if dtype is DType.F16 and not fits_f16(value):
            return beyond_f16(cx, value, span)
        return left, build.const(value, dtype, span), dtype
    if isinstance(value, float):
        return build.cast(cx, left, DType.F32, span), build.const(value, DType.F32, span), DType.F32
    low, high = dtype.int_range
    if low <= value <= high:
        return left, build.const(value, dtype, span), dtype
    if dtype is DType.S32 and _literal_fits(number, DType.S64):
        left = build.cast(cx, left, DType.S64, span)
        return left, build.const(value, DType.S64, span), DType.S64
    if dtype is DType.S32:
        cx.error(rules.LITERAL, f"{value} does not fit s64, the widest integer dtype", span)
        return None
    cx.error(
        rules.LITERAL,
        f"{value} does not fit {dtype.value}, the dtype of the other operand",
        span,
        [f"cast the other operand, or write the literal modulo 2^{dtype.bits}"],
    )
    return None


def fits_f16(value: int | float) -> bool:
    """Whether rounding to f16 keeps a number finite, or it is infinite itself."""
    return abs(value) < F16_LIMIT or math.isinf(value)


def beyond_f16(cx: Context, value: int | float, span: Span) -> None:
    cx.error(
        rules.LITERAL,
        f"{value} does not fit f16, the dtype of the other operand: its largest value is 65504",
        span,
        ["`f32(...)` around the other operand computes in f32", "`inf` and `-inf` fit"],
    )


def condition(cx: Context, value: Value, span: Span) -> core.Expr | Number | Poison:
    """A truth value: bools as they are, integers compared with zero."""
    value = scalar(cx, value, span)
    if value is POISON:
        return POISON
    if isinstance(value, Number):
        if isinstance(value.value, float):
            return cx.error(
                rules.CONDITION, "this condition is a float", span, ["compare it: `x != 0`"]
            )
        return Number(bool(value.value))
    if value.dtype is DType.BOOL:
        return value
    if value.dtype.is_float:
        return cx.error(
            rules.CONDITION,
            f"this condition is {value.dtype.value}, a number",
            span,
            ["compare it: `x != 0`, `x > 0`"],
        )
    return build.cast(cx, value, DType.BOOL, span)


def branches(cx: Context, a: Scalar, b: Scalar, span: Span) -> tuple[core.Expr, core.Expr] | None:
    """Two alternatives of a value in one dtype. Equal dtypes stay, also narrow ones."""
    for x, y, flip in ((a, b, False), (b, a, True)):
        if isinstance(x, Number) and not isinstance(y, Number) and _literal_fits(x, y.dtype):
            if y.dtype is DType.F16 and not fits_f16(x.value):
                return beyond_f16(cx, x.value, span)
            literal = build.const(x.value, y.dtype, span)
            return (y, literal) if flip else (literal, y)
    if not isinstance(a, Number) and not isinstance(b, Number) and a.dtype is b.dtype:
        return a, b
    if isinstance(a, Number) and isinstance(b, Number) and natural(a) is natural(b):
        return express(cx, a, span), express(cx, b, span)
    found = unify(cx, a, b, span)
    return None if found is None else found[:2]


def _literal_fits(number: Number, dtype: DType) -> bool:
    """May a literal take a narrow or bool dtype as it stands."""
    if dtype is DType.BOOL:
        return isinstance(number.value, bool)
    if dtype.is_float or isinstance(number.value, float):
        return dtype.is_float
    low, high = dtype.int_range
    return low <= number.value <= high


def index(cx: Context, value: Value, expr: surface.Expr) -> core.Expr | Poison:
    """An index in s32, u32 or s64."""
    found = scalar(cx, value, expr.span)
    if found is POISON:
        return POISON
    found = express(cx, found, expr.span)
    if found.dtype.is_float:
        text = show(expr)
        help = [f"`s32(floor({text}))`"]
        if isinstance(expr, surface.Binary) and expr.op == "/":
            help.insert(
                0, f"`{show(surface.Binary('//', expr.left, expr.right))}` divides integers"
            )
        return cx.error(rules.INDEX_TYPE, f"the index `{text}` is a float", expr.span, help)
    return widen(cx, found)


def store(
    cx: Context, value: Scalar, dtype: DType, source: surface.Expr, what: str
) -> core.Expr | Poison:
    """A stage's value in the dtype it is stored in; ``what`` names the stage in messages."""
    span = source.span
    if isinstance(value, Number):
        if not dtype.is_float and isinstance(value.value, float):
            return _needs_cast(cx, DType.F32, dtype, source, what)
        if not _literal_fits(value, dtype) and not (
            isinstance(value.value, bool) and dtype is not DType.BOOL
        ):
            return _needs_cast(cx, natural(value), dtype, source, what)
        return build.const(value.value, dtype, span)
    if not dtype.is_float and dtype is not DType.BOOL and _fits_choice(value, dtype):
        return build.cast(cx, value, dtype, span)
    if value.dtype is dtype or _stores_freely(value.dtype, dtype):
        return build.cast(cx, value, dtype, span)
    kept = not value.dtype.is_float and _was_held_by(value, dtype)
    return _needs_cast(cx, value.dtype, dtype, source, what, kept)


def _was_held_by(value: core.Expr, dtype: DType) -> bool:
    """Whether an integer value is but one read from that dtype, or chosen among such."""
    match value:
        case core.Load(tensor=tensor):
            return not tensor.dtype.is_float and _stores_freely(tensor.dtype, dtype)
        case core.Const(value=number):
            return dtype.int_range[0] <= number <= dtype.int_range[1]
        case core.Select(then=left, other=right) | core.Binary("min" | "max", left, right):
            return _was_held_by(left, dtype) and _was_held_by(right, dtype)
        case _:
            return False


def _stores_freely(source: DType, target: DType) -> bool:
    if target.is_float or source is DType.BOOL:
        return target.is_float or target is not DType.BOOL
    if source.is_float or target is DType.BOOL:
        return False
    low, high = target.int_range
    return low <= source.int_range[0] and source.int_range[1] <= high


def _needs_cast(
    cx: Context,
    source: DType,
    dtype: DType,
    expr: surface.Expr,
    what: str,
    kept: bool = False,
) -> Poison:
    text = show(expr)
    if dtype is DType.BOOL:
        help = [f"`{text} != 0`"]
    elif kept:
        help = [f"`{dtype.value}({text})` changes no value here: all of them fit"]
    elif dtype.bits < 32:
        low, high = dtype.int_range
        inner = f"rne({text})" if source.is_float else text
        help = [f"saturating: `{dtype.value}(clip({inner}, {low}, {high}))`"]
        if not source.is_float:
            help.append(f"wrapping: `{dtype.value}({text})`")
    elif source.is_float:
        help = [f"`{dtype.value}({text})` truncates, `{dtype.value}(rne({text}))` rounds"]
    else:
        help = [f"`{dtype.value}({text})`"]
    return cx.error(
        rules.STORE, f"{what} is {dtype.value}, but its value is {source.value}", expr.span, help
    )
