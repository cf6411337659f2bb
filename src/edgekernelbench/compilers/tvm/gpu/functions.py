"""The intrinsics of the kernel IR as functions of OpenCL C and of CUDA.

Both languages bound the errors of theirs, and a device's own are faster than expansions: f32
functions err by at most 5 units in the last place (erf in OpenCL by 16), 6e-7 relative.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx

from edgekernelbench.compilers.tvm import fast
from edgekernelbench.compilers.tvm.dialect import Dialect
from edgekernelbench.compilers.tvm.intrinsics import sign
from edgekernelbench.compilers.tvm.powers import exact_power
from edgekernelbench.compilers.tvm.scalars import Bind, TExpr, const, dtype_name, tvm_dtype
from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.targets.model import Backend

_NAMES = {"abs": "fabs", "rne": "rint"}
_FAST = {"fast_exp": fast.exp, "fast_tanh": fast.tanh, "fast_erf": fast.erf}


def dialect(backend: Backend) -> Dialect:
    """The functions of a GPU's language."""
    functions = _Cuda() if backend == "cuda" else _OpenCL()
    return Dialect(functions.call, functions.power, functions.fence)


def _extern(dtype: str, name: str, *args: TExpr) -> TExpr:
    return tirx.call_pure_extern(dtype, name, *args)


class _Functions:
    """What the two languages have in common."""

    def call(
        self, fn: str, args: Sequence[TExpr], source: DType, dtype: DType, bind: Bind
    ) -> TExpr:
        """See `edgekernelbench.compilers.tvm.intrinsics.call_intrinsic`."""
        if fn == "nofma":
            return self.fence(args[0])
        if fn == "sign":
            return sign(args[0], source, bind)
        if fn == "popcount":
            return tirx.Cast(tvm_dtype(dtype), self.popcount(args[0], source))
        if not source.is_float:
            return self._absolute(args[0], source, bind)
        if source is DType.F16:
            wide = [tirx.Cast("float32", a) for a in args]
            return tirx.Cast(tvm_dtype(dtype), self.call(fn, wide, DType.F32, DType.F32, bind))
        if fn == "rsqrt":
            return tirx.Div(const(1, source), self.function("sqrt", args, source))
        if fn in _FAST and source is DType.F32:
            return _FAST[fn](args[0], bind)
        return self.function(fn.removeprefix("fast_"), args, source)

    def function(self, fn: str, args: Sequence[TExpr], dtype: DType) -> TExpr:
        """A function of f32 or f64 values."""
        return _extern(tvm_dtype(dtype), _NAMES.get(fn, fn), *args)

    def power(
        self, base: TExpr, exponent: TExpr, node: core.Expr, dtype: DType, bind: Bind
    ) -> TExpr:
        """See `edgekernelbench.compilers.tvm.powers.power`."""
        exact = exact_power(base, exponent, node, dtype, bind)
        if exact is not None:
            return exact
        if dtype is not DType.F16:
            return self.function("pow", (base, exponent), dtype)
        wide = [tirx.Cast("float32", v) for v in (base, exponent)]
        return tirx.Cast("float16", self.function("pow", wide, DType.F32))

    @staticmethod
    def _absolute(x: TExpr, dtype: DType, bind: Bind) -> TExpr:
        if not dtype.is_signed:
            return x
        x = bind(x)
        return tirx.Select(tirx.LT(x, const(0, dtype)), tirx.Mul(x, const(-1, dtype)), x)

    def popcount(self, x: TExpr, dtype: DType) -> TExpr:
        raise NotImplementedError

    def fence(self, value: TExpr) -> TExpr:
        raise NotImplementedError


class _OpenCL(_Functions):
    def popcount(self, x: TExpr, dtype: DType) -> TExpr:
        return _extern(tvm_dtype(dtype), "popcount", x)

    def fence(self, value: TExpr) -> TExpr:
        """A detour over integers, across which the front end builds no fused operation."""
        name = dtype_name(value)
        bits = {"float16": "int16", "float32": "int32", "float64": "int64"}[name]
        return tirx.reinterpret(name, tirx.reinterpret(bits, value))


class _Cuda(_Functions):
    def function(self, fn: str, args: Sequence[TExpr], dtype: DType) -> TExpr:
        name = _NAMES.get(fn, fn)
        return _extern(tvm_dtype(dtype), f"{name}f" if dtype is DType.F32 else name, *args)

    def popcount(self, x: TExpr, dtype: DType) -> TExpr:
        unsigned = tirx.Cast(f"uint{dtype.bits}", x)
        wide = "uint64" if dtype.bits == 64 else "uint32"
        name = "__popcll" if dtype.bits == 64 else "__popc"
        return _extern("int32", name, tirx.Cast(wide, unsigned))

    def fence(self, value: TExpr) -> TExpr:
        """Products with a rounding of their own; nothing else is ever fused."""
        names = {"float32": "__fmul_rn", "float64": "__dmul_rn", "float16": "__hmul_rn"}
        if not isinstance(value, tirx.Mul):
            return value
        return _extern(dtype_name(value), names[dtype_name(value)], value.a, value.b)
