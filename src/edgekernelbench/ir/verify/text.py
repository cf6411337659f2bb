"""Core expressions as text in the surface's notation, for messages and fixed lines."""

from __future__ import annotations

import math

from edgekernelbench.ir import core

_SIGNS = {
    "add": ("+", 9), "sub": ("-", 9), "mul": ("*", 10), "div": ("/", 10), "fdiv": ("//", 10),
    "mod": ("%", 10), "pow": ("**", 12), "shl": ("<<", 8), "shr": (">>", 8), "bitand": ("&", 7),
    "bitor": ("|", 5), "bitxor": ("^", 6), "and": ("and", 2), "or": ("or", 1), "eq": ("==", 4),
    "ne": ("!=", 4), "lt": ("<", 4), "le": ("<=", 4), "gt": (">", 4), "ge": (">=", 4),
}  # fmt: skip
_DEPTH = 12
_LENGTH = 80


def show(expr: core.Expr, limit: int = _LENGTH) -> str:
    """The expression on one line, cut short where it is long or deep."""
    text = _text(expr, 0, _DEPTH)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def read(load: core.Load) -> str:
    """``x[i, j]``; a scalar stage is its name."""
    if not load.indices:
        return load.tensor.name
    return f"{load.tensor.name}[{', '.join(_text(i, 0, _DEPTH) for i in load.indices)}]"


def _text(expr: core.Expr, strength: int, depth: int) -> str:
    if depth == 0:
        return "..."
    match expr:
        case core.Const():
            return _constant(expr)
        case core.VarRef():
            return expr.var.name
        case core.Load():
            inner = ", ".join(_text(i, 0, depth - 1) for i in expr.indices)
            return f"{expr.tensor.name}[{inner}]" if expr.indices else expr.tensor.name
        case core.Unary():
            sign = {"neg": "-", "inv": "~", "not": "not "}[expr.op]
            own = 3 if expr.op == "not" else 11
            return _wrap(sign + _text(expr.arg, own, depth - 1), own, strength)
        case core.Binary() if expr.op in ("min", "max"):
            return f"{expr.op}({_text(expr.left, 0, depth - 1)}, {_text(expr.right, 0, depth - 1)})"
        case core.Binary():
            sign, own = _SIGNS[expr.op]
            left, right = _text(expr.left, own, depth - 1), _text(expr.right, own + 1, depth - 1)
            return _wrap(f"{left} {sign} {right}", own, strength)
        case core.Call():
            return f"{expr.fn}({', '.join(_text(a, 0, depth - 1) for a in expr.args)})"
        case core.Cast():
            return f"{expr.dtype.value}({_text(expr.arg, 0, depth - 1)})"
        case core.Select():
            return _select(expr, strength, depth)
        case core.Reduce():
            axes = ", ".join(a.var.name for a in expr.axes)
            body = ", ".join(_text(item, 0, depth - 1) for item in expr.items)
            return f"{expr.label}[{axes}]({body})"
        case core.Block():
            return _text(expr.result, strength, depth - 1)


def _select(expr: core.Select, strength: int, depth: int) -> str:
    then, other = _text(expr.then, 1, depth - 1), _text(expr.other, 0, depth - 1)
    if expr.border:
        return f"pad({then}, {other})"
    return _wrap(f"{then} if {_text(expr.cond, 1, depth - 1)} else {other}", 0, strength)


def _wrap(text: str, own: int, strength: int) -> str:
    return f"({text})" if own < strength else text


def _constant(expr: core.Const) -> str:
    value = expr.value
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return str(int(value)) if isinstance(value, bool) else repr(value)
