"""The intrinsics of the kernel IR, and powers, as calls in C."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType

_ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "rne": "rint", "sqrt": "sqrt",
             "abs": "fabs"}  # fmt: skip
_EXACT_HALVES = frozenset(("abs", "sign", "floor", "ceil", "trunc", "rne"))
_LARGEST_EXPANDED_POWER = 64


def call(fn: str, args: Sequence[str], source: DType) -> str:
    """``fn`` of arguments that have the dtype ``source``.

    f32 functions are expanded and vectorise; f64 ones call the C library once an element. f16
    functions are those of f32, rounded; the exact ones need no rounding.
    """
    listed = ", ".join(args)
    if fn == "nofma":  # what is no product right under an addition is contracted with nothing
        return f"({listed})"
    if source is DType.F16:
        if fn == "fma":
            return f"fma_f16({listed})"
        text = call(fn, args, DType.F32)
        return text if fn in _EXACT_HALVES else f"round_f16({text})"
    if not source.is_float:
        if fn == "abs" and not source.is_signed:
            return f"({listed})"
        return f"{fn}_{source.value if source.bits >= 32 else 's32'}({listed})"
    end = "" if source is DType.F64 else "f"
    if fn in _ROUNDING or fn == "fma":
        return f"__builtin_{_ROUNDING.get(fn, fn)}{end}({listed})"
    if source is DType.F32 or fn in ("sign", "rsqrt", "erf"):
        return f"{fn}_{source.value}({listed})"
    return "erf_f64" + f"({listed})" if fn == "fast_erf" else _library(fn, listed)


def _library(fn: str, listed: str) -> str:
    """A function of the C library."""
    return f"__builtin_{fn.removeprefix('fast_')}({listed})"


def power(
    base: str, exponent: str, node: core.Expr, dtype: DType, keep: Callable[[str], str]
) -> str:
    """``base ** exponent``; ``node`` is the exponent as written. Whole constants become
    products."""
    if isinstance(node, core.Const) and float(node.value).is_integer():
        whole = int(node.value)
        if abs(whole) <= _LARGEST_EXPANDED_POWER and (whole >= 0 or dtype.is_float):
            value = _repeated(keep(base), abs(whole), dtype, keep)
            one = "1.0" if dtype is DType.F64 else "1.0f"
            return _rounded(f"({one} / {value})", dtype) if whole < 0 else value
    match dtype:
        case DType.F64:
            return f"__builtin_pow({base}, {exponent})"
        case DType.F32:
            return f"pow_f32({base}, {exponent})"
        case DType.F16:
            return f"round_f16(pow_f32({base}, {exponent}))"
    return f"pow_{dtype.value if dtype.bits >= 32 else 's32'}({base}, {exponent})"


def _rounded(text: str, dtype: DType) -> str:
    return f"round_f16{text}" if dtype is DType.F16 else text


def _repeated(base: str, exponent: int, dtype: DType, keep: Callable[[str], str]) -> str:
    """A product of powers by squaring."""

    def product(a: str, b: str) -> str:
        if dtype in (DType.S32, DType.S64):
            return keep(f"mul_{dtype.value}({a}, {b})")
        return keep(_rounded(f"({a} * {b})", dtype))

    result: str | None = None
    while exponent:
        if exponent & 1:
            result = base if result is None else product(result, base)
        exponent >>= 1
        if exponent:
            base = product(base, base)
    one = {DType.F64: "1.0", DType.F32: "1.0f", DType.F16: "1.0f", DType.U32: "1u"}
    return one.get(dtype, "1") if result is None else result
