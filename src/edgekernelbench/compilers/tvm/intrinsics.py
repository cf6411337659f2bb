"""The intrinsics of the kernel IR in TIR: exact ones, f32 expansions, and LLVM's for f64."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tirx

from edgekernelbench.compilers.tvm import fast, transcendental
from edgekernelbench.compilers.tvm.scalars import Bind, TExpr, const, fence, llvm, tvm_dtype
from edgekernelbench.ir.dtypes import DType

_EXPANDED: dict[str, Callable[[TExpr, Bind], TExpr]] = {
    "exp": transcendental.exp,
    "exp2": transcendental.exp2,
    "log": transcendental.log,
    "log2": transcendental.log2,
    "tanh": transcendental.tanh,
    "erf": transcendental.erf,
    "sin": transcendental.sin,
    "cos": transcendental.cos,
    "tan": transcendental.tan,
    "atan": transcendental.atan,
    "fast_exp": fast.exp,
    "fast_tanh": fast.tanh,
    "fast_erf": fast.erf,
}

_ROUNDING = {
    "floor": "llvm.floor",
    "ceil": "llvm.ceil",
    "trunc": "llvm.trunc",
    "rne": "llvm.rint",
    "sqrt": "llvm.sqrt",
}


_F16 = frozenset(("abs", "sign", *_ROUNDING))


def call_intrinsic(
    fn: str, args: Sequence[TExpr], source: DType, dtype: DType, bind: Bind
) -> TExpr:
    """``fn`` of arguments that have the dtype ``source``; the result has ``dtype``.

    f32 functions are expanded and vectorise; f64 ones become LLVM intrinsics, which call the C
    library once an element. f16 functions are those of f32, rounded; the exact ones are f16's own.
    """
    if fn == "nofma":
        return fence(args[0])
    if fn == "fma":
        return llvm(tvm_dtype(source), "llvm.fma", *args)
    if source is DType.F16 and fn not in _F16:
        wide = [tirx.Cast("float32", a) for a in args]
        value = call_intrinsic(fn, wide, DType.F32, DType.F32, bind)
        return tirx.Cast(tvm_dtype(dtype), value)
    match fn:
        case "abs":
            return _absolute(args[0], source, bind)
        case "sign":
            return sign(args[0], source, bind)
        case "popcount":
            return tirx.Cast(tvm_dtype(dtype), llvm(tvm_dtype(source), "llvm.ctpop", args[0]))
        case "rsqrt":
            root = llvm(tvm_dtype(source), "llvm.sqrt", args[0])
            return tirx.Div(const(1, source), root)
        case _ if fn in _ROUNDING:
            return llvm(tvm_dtype(source), _ROUNDING[fn], args[0])
        case "atan2" if source is DType.F32:
            return transcendental.atan2(args[0], args[1], bind)
        case _ if source is DType.F32:
            return _EXPANDED[fn](args[0], bind)
        case "erf" | "fast_erf":
            return transcendental.erf_f64(args[0], bind)
        case _ if fn.startswith("fast_"):
            return llvm("float64", f"llvm.{fn.removeprefix('fast_')}", *args)
        case _:
            return llvm("float64", f"llvm.{fn}", *args)


def _absolute(x: TExpr, dtype: DType, bind: Bind) -> TExpr:
    if dtype.is_float:
        return llvm(tvm_dtype(dtype), "llvm.fabs", x)
    if not dtype.is_signed:
        return x
    x = bind(x)
    negative = tirx.LT(x, const(0, dtype))
    return tirx.Select(negative, tirx.Mul(x, const(-1, dtype)), x)


def sign(x: TExpr, dtype: DType, bind: Bind) -> TExpr:
    """-1, 0 or 1; NaN for NaN."""
    x = bind(x)
    zero = const(0, dtype)
    below = tirx.Select(tirx.LT(x, zero), const(-1, dtype), zero) if dtype.is_signed else zero
    value = tirx.Select(tirx.GT(x, zero), const(1, dtype), below)
    return tirx.Select(tirx.EQ(x, x), value, x) if dtype.is_float else value
