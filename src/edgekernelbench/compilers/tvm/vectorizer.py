"""When LLVM's loop vectoriser must not run: it takes ``i % 4`` for ``i``.

The LLVM in TVM 0.27 turns ``for i: y[i, 0] = x[row, i % 4]`` into loads of 8 elements from
``x[row, 0]``: wrong values, and reads beyond the tensor (found by fuzzing; `tests/compilers/
test_vectorizer.py` has the kernel, which shows when a version is free of it). It has to do with
loop variables cut to their low bits. Nests say themselves what runs in lanes, so a kernel that cuts
one does without the pass.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr
from edgekernelbench.lowering import nest

OFF = "-vectorize-loops:bool=0"


def cuts_loop_variables(functions: Iterable[nest.Function]) -> bool:
    """Whether some loop variable, or a sum or product of them, is reduced to its low bits."""
    return any(
        _cuts(node)
        for function in functions
        for statement in nest.statements(function.body)
        for expr in nest.expressions(statement)
        for node in core.unique_nodes(expr)
    )


def _cuts(node: Expr) -> bool:
    match node:
        case core.Binary(op="mod", left=left, right=core.Const(value=divisor)):
            # By any other number the remainder is no such cut; 2.0 is not a number of bits either.
            return isinstance(divisor, int) and divisor & (divisor - 1) == 0 and _varies(left)
        case core.Binary(op="bitand", left=left, right=right) if node.dtype.is_int:
            return _varies(left) or _varies(right)
        case core.Cast(arg=arg) if node.dtype.is_int and arg.dtype.is_int:
            return node.dtype.bits < arg.dtype.bits and _varies(arg)
    return False


def _varies(expr: Expr) -> bool:
    """Whether a variable is in an expression other than as the index of a read."""
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, core.VarRef):
            return True
        if not isinstance(node, core.Load):
            stack += core.children(node)
    return False
