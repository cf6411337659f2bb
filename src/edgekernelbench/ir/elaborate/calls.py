"""Calls: intrinsics, predefined macros, ``min``, ``clip``, and the author's own macros."""

from __future__ import annotations

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.elaborate import build, coerce, ops, reads, rules
from edgekernelbench.ir.elaborate.context import MAX_MACRO_DEPTH, Context
from edgekernelbench.ir.elaborate.hold import Lets
from edgekernelbench.ir.elaborate.names import nearest
from edgekernelbench.ir.elaborate.predefined import MACROS, SINGLE_USE, Calc, intrinsic
from edgekernelbench.ir.elaborate.values import (
    POISON,
    CombinerValue,
    Macro,
    Number,
    Poison,
    Scalar,
    Scope,
    TupleValue,
    Value,
    View,
)

BUILT_IN = frozenset((*core.INTRINSICS, *MACROS, "pow", "min", "max", "clip", "clamp"))
_EXPANSION_NODES = 8  # what one expansion costs against the limit, besides its result

_SYNONYMS = {
    "round": "`rne(x)` rounds half to even, `floor(x + 0.5)` half up",
    "int": "`s32(x)`",
    "float": "`f32(x)`",
    "maximum": "`max(a, b)`",
    "minimum": "`min(a, b)`",
    "fabs": "`abs(x)`",
    "mean": "`sum[k: K](x[k]) / K`",
    "softmax": "write its stages: the maximum, `exp(x - max)`, the sum, the quotient",
    "len": "`dim(x, 0)`",
    "shape": "`dim(x, 0)`",
    "where": "`a if cond else b`",
    "select": "`a if cond else b`",
    "log1p": "`log(1 + x)`",
    "expm1": "`exp(x) - 1`",
    "sinh": "`(exp(x) - exp(-x)) / 2`",
    "cosh": "`(exp(x) + exp(-x)) / 2`",
    "swish": "`silu(x)`",
    "fast_silu": "`x * fast_sigmoid(x)`",
    "fast_gelu": "`0.5 * x * (1 + fast_erf(0.70710678 * x))`",
    "fast_log": "`log(x)`, which has no fast form",
    "mad": "`fma(a, b, c)`, rounded once; `a * b + c` may be",
    "mod": "`a % b`",
    "range": "an axis or a loop: `seq t: L { ... }`",
}


def call(cx: Context, scope: Scope, expr: surface.Call) -> Value:
    own = scope.function(expr.fn)
    if isinstance(own, Macro):
        return expand(cx, scope, own, expr)
    if isinstance(own, CombinerValue):
        return _combiner(cx, expr, own)
    if own is not None:
        return cx.error(
            rules.TEMPLATE,
            f"`{expr.fn}` is a template, which cannot stand inside an expression",
            expr.span,
            [f"bind it first: `t = {coerce.show(expr)}`, then read `t[..]`"],
        )
    match expr.fn:
        case "pad":
            return reads.pad(cx, scope, expr)
        case "edge":
            return reads.edge(cx, scope, expr)
        case "dim":
            return reads.dim(cx, scope, expr)
        case "nofma":
            return _nofma(cx, scope, expr)
    if expr.fn not in BUILT_IN:
        return _unknown(cx, scope, expr)
    args = _scalars(cx, scope, expr)
    if expr.fn in ("min", "max"):
        return _extremum(cx, expr, args)
    if expr.fn in ("clip", "clamp"):
        return _clip(cx, expr, args)
    if expr.fn in core.INTRINSICS or expr.fn == "pow":
        return _intrinsic(cx, expr, args)
    return _predefined(cx, expr, args)


def _combiner(cx: Context, expr: surface.Call, own: CombinerValue) -> Poison:
    names = ", ".join(f"x{n}" for n in range(len(own.stmt.left)))
    return cx.error(
        rules.COMBINER,
        f"`{expr.fn}` is a combiner, which needs an axis",
        expr.span,
        [f"`{expr.fn}[k: K]({names})`; a `def` is called with values"],
    )


def _scalars(cx: Context, scope: Scope, expr: surface.Call) -> list[Scalar | Poison]:
    out: list[Scalar | Poison] = []
    for arg in expr.args:
        out.append(scalar(cx, scope, arg))
    return out


def scalar(cx: Context, scope: Scope, expr: surface.Expr) -> Scalar | Poison:
    """An expression that must be one element."""
    return coerce.scalar(cx, reads.element(cx, cx.expr(scope, expr), expr), expr.span)


def _count_error(cx: Context, expr: surface.Call, wanted: str, help: list[str]) -> Poison:
    given = len(expr.args)
    return cx.error(rules.ARGUMENTS, f"`{expr.fn}` takes {wanted}, {given} given", expr.span, help)


def _extremum(cx: Context, expr: surface.Call, args: list[Scalar | Poison]) -> Value:
    if len(args) < 2:
        return _count_error(
            cx, expr, "2 or more arguments", [f"over an axis: `{expr.fn}[k: K](x[k])`"]
        )
    result = args[0]
    for arg in args[1:]:
        result = ops.arith(cx, expr.fn, result, arg, expr.span)
    return result


def _clip(cx: Context, expr: surface.Call, args: list[Scalar | Poison]) -> Value:
    if len(args) != 3:
        return _count_error(cx, expr, "3 arguments", [f"`{expr.fn}(x, lo, hi)`"])
    low = ops.arith(cx, "max", args[0], args[1], expr.span)
    return ops.arith(cx, "min", low, args[2], expr.span)


def _intrinsic(cx: Context, expr: surface.Call, args: list[Scalar | Poison]) -> Value:
    wanted = 2 if expr.fn == "pow" else core.INTRINSICS[expr.fn]
    if len(args) != wanted:
        plural = "1 argument" if wanted == 1 else f"{wanted} arguments"
        help = ["`fma(a, b, c)` is a * b + c, rounded once"] if expr.fn == "fma" else []
        return _count_error(cx, expr, plural, help)
    if expr.fn == "pow":
        return _pow(cx, expr, args)
    return intrinsic(cx, expr.fn, tuple(args), expr.span)


def _nofma(cx: Context, scope: Scope, expr: surface.Call) -> Value:
    """``nofma(e)``: e, in which no product is fused with an addition, nor e with what uses it."""
    if len(expr.args) != 1:
        return _count_error(cx, expr, "1 argument", ["`nofma(a * b + c)`"])
    cx.unfused += 1
    value = scalar(cx, scope, expr.args[0])
    cx.unfused -= 1
    if value is POISON or isinstance(value, Number):
        return value
    if not value.dtype.is_float:
        text = f"`nofma` is about float products, and this is {value.dtype.value}"
        return cx.error(rules.OPERANDS, text, expr.span, ["drop it: integers are exact"])
    return value if isinstance(value, core.Reduce) else build.apart(cx, value)


def _pow(cx: Context, expr: surface.Call, args: list[Scalar | Poison]) -> Value:
    base, exponent = args
    if isinstance(base, core.Expr) and base.dtype.is_int:
        base = ops.to_float(cx, base, expr.span)
    return ops.power(cx, base, exponent, expr.span)


def _predefined(cx: Context, expr: surface.Call, args: list[Scalar | Poison]) -> Value:
    least, most, make = MACROS[expr.fn]
    if not least <= len(args) <= most:
        wanted = (
            f"{least} argument{'s' * (least > 1)}"
            if least == most
            else f"{least} or {most} arguments"
        )
        return _count_error(cx, expr, wanted, [])
    if any(a is POISON for a in args):
        return ops.ghost_of(cx, DType.S32 if expr.fn == "reflect" else DType.F32)
    lets = Lets()
    held = args
    if expr.fn not in SINGLE_USE:
        held = [lets.hold(cx, name, a) for name, a in zip(("x", "a"), args, strict=False)]
    return lets.wrap(make(Calc(cx, expr.span), *held), expr.span)


def _unknown(cx: Context, scope: Scope, expr: surface.Call) -> Poison:
    name = expr.fn
    if name in core.REDUCE_OPS:
        return cx.error(
            rules.REDUCTION,
            f"`{name}` is a reduction and needs an axis",
            expr.span,
            [f"`{name}[k: K](...)`, with the extent of the axis"],
        )
    if name in _SYNONYMS:
        help = [_SYNONYMS[name]]
    elif scope.find(name) is not None:
        help = [f"`{name}` is not a function; tensors are read with brackets: `{name}[i]`"]
    else:
        help = nearest(name, BUILT_IN | {"pad", "edge", "dim"} | scope.visible_functions())
    return cx.error(rules.UNKNOWN_FUNCTION, f"there is no function `{name}`", expr.span, help)


# ---------------------------------------------------------------- the author's macros
def expand(cx: Context, scope: Scope, macro: Macro, expr: surface.Call) -> Value:
    """The body of a ``def``, in the scope where it was written, its arguments bound once."""
    params = macro.stmt.params
    if len(params) != len(expr.args):
        return _count_error(
            cx, expr, coerce.counted(len(params), "argument"), [f"`{expr.fn}({', '.join(params)})`"]
        )
    if expr.fn in cx.expanding:
        return cx.error(rules.RECURSION, f"`{expr.fn}` calls itself", expr.span)
    if len(cx.expanding) >= MAX_MACRO_DEPTH:
        cx.stop(f"macros call each other more than {MAX_MACRO_DEPTH} deep", expr.span)
    cx.count(expr.span, _EXPANSION_NODES)
    lets, inner = Lets(), Scope(macro.scope)
    for param, arg in zip(params, expr.args, strict=True):
        inner.names[param] = _argument(cx, lets, param, cx.expr(scope, arg), arg)
    cx.expanding.append(expr.fn)
    result = cx.expr(inner, macro.stmt.body)
    cx.expanding.pop()
    return close(cx, lets, result, macro.stmt.body)


def _argument(
    cx: Context, lets: Lets, name: str, value: Value, expr: surface.Expr
) -> Scalar | View | Poison:
    if isinstance(value, View) and value.rank > 0:
        return lets.hold_slice(cx, name, value)
    return lets.hold(cx, name, coerce.scalar(cx, value, expr.span))


def close(cx: Context, lets: Lets, result: Value, expr: surface.Expr) -> Value:
    """The result of a block or macro with the bindings it needs around it."""
    if not lets.items or result is POISON or isinstance(result, Number):
        return result
    cx.count(expr.span)
    if isinstance(result, TupleValue):
        return TupleValue(result.items, (*lets.items, *result.lets))
    if isinstance(result, View):
        if result.rank > 0:
            return cx.error(
                rules.NOT_SCALAR, "a block or macro yields one element, not a slice", expr.span
            )
        result = coerce.load(cx, result, expr.span)
    return lets.wrap(result, expr.span)
