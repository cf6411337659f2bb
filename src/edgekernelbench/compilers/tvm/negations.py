"""``not`` moved inwards, to where it vanishes.

`scalars.negate` has to go through an integer, and TVM's simplifier, which proves things about every
condition and choice anew wherever it meets them, needs exponential time for several of these inside
one another. Only comparisons of floats keep their ``not``: with NaN they have no opposite.
"""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.rewrite import map_children

_OPPOSITE: dict[str, core.CompareOp] = {
    "eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt",
}  # fmt: skip
_DUAL: dict[str, core.ArithOp] = {"and": "or", "or": "and"}


def without_negations(expr: Expr) -> Expr:
    """An equal expression, shared nodes still shared; ``expr`` itself if nothing is negated."""
    order = core.unique_nodes(expr)
    if not any(_negates(node) for node in order):
        return expr
    as_is: dict[int, Expr] = {}
    negated: dict[int, Expr] = {}
    for node in order:
        if isinstance(node, core.Unary) and _negates(node):
            as_is[id(node)] = negated[id(node.arg)]
            negated[id(node)] = as_is[id(node.arg)]
            continue
        same = all(as_is[id(child)] is child for child in core.children(node))
        as_is[id(node)] = node if same else map_children(node, lambda child: as_is[id(child)])
        if node.dtype is DType.BOOL:
            negated[id(node)] = _negated(node, as_is, negated)
    return as_is[id(expr)]


def _negates(node: Expr) -> bool:
    return isinstance(node, core.Unary) and node.op == "not"


def _negated(node: Expr, as_is: dict[int, Expr], negated: dict[int, Expr]) -> Expr:
    match node:
        case core.Const(value=value):
            return core.Const(not value, DType.BOOL)
        case core.Binary(op="and" | "or", left=left, right=right):
            return core.Binary(_DUAL[node.op], negated[id(left)], negated[id(right)], DType.BOOL)
        case core.Binary(op=op, left=left, right=right) if op in _OPPOSITE:
            if left.dtype.is_int:
                a, b = as_is[id(left)], as_is[id(right)]
                return core.Binary(_OPPOSITE[op], a, b, DType.BOOL)
    return core.Unary("not", as_is[id(node)], DType.BOOL)
