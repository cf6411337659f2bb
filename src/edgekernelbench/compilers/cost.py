"""Size of the code that a loop program unfolds to, before LLVM sees it.

LLVM has no time limit and its time grows faster than the code: what unrolls to tens of thousands
of vector statements would block a compile child for minutes. So the size is counted first.
"""

from __future__ import annotations

from edgekernelbench.compilers.rules import UNROLLED_CODE, WIDE_VECTOR
from edgekernelbench.ir import core
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.lowering import nest

MAX_OPERATIONS = 60_000
MAX_LANES = 256
_DOT = {"bytes": 3, "pairs": 10, "words": 20}  # operations of a dot product, per register
_CALL = {"nofma": 0, "fma": 1}  # operations of a call; others are taken for an expansion


def unfolded_operations(body: nest.Stmt, vector_bits: int) -> int:
    """Machine-level operations after unrolling, roughly: one per expression node and register."""
    total = 0
    stack: list[tuple[nest.Stmt, int, int]] = [(body, 1, 1)]
    while stack:
        statement, copies, lanes = stack.pop()
        match statement:
            case nest.For(kind=kind, extent=extent, body=inner):
                size = extent.value if isinstance(extent, core.Const) else 1
                if kind == "unroll":
                    copies *= max(1, int(size))
                elif kind == "vectorize":
                    lanes *= max(1, int(size))
                stack.append((inner, copies, lanes))
            case nest.Seq(body=parts):
                stack.extend((part, copies, lanes) for part in parts)
            case nest.If(then=then, other=other):
                stack.append((then, copies, lanes))
                if other is not None:
                    stack.append((other, copies, lanes))
            case nest.Store(value=value) | nest.LetValue(value=value) | nest.Atomic(value=value):
                total += copies * _registers(value, lanes, vector_bits)
            case nest.Prefetch():
                total += copies
            case nest.Dot(lanes=width, instruction=instruction):
                registers = -(-width * 32 // vector_bits)
                total += copies * registers * _DOT[instruction.form]
            case nest.Matrices() | nest.Packed() | nest.Mma():
                total += copies
            case _:
                pass
    return total


def _registers(value: core.Expr, lanes: int, vector_bits: int) -> int:
    """Operations that one evaluation of ``value`` takes."""
    total = 1
    for node in core.unique_nodes(value):
        if not isinstance(node, (core.Const, core.VarRef)):
            weight = _CALL.get(node.fn, 12) if isinstance(node, core.Call) else 1
            total += weight * -(-lanes * node.dtype.bytes * 8 // vector_bits)
    return total


def check_size(module: nest.Module, vector_bits: int) -> tuple[Diagnostic, ...]:
    """Diagnostics for code that is too large to compile in reasonable time."""
    functions = (module.main, *(() if module.prepack is None else (module.prepack,)))
    out: list[Diagnostic] = []
    operations = sum(unfolded_operations(f.body, vector_bits) for f in functions)
    if operations > MAX_OPERATIONS:
        message = (
            f"unrolling yields about {operations} operations, more than the {MAX_OPERATIONS} "
            "that are compiled"
        )
        help = (
            "unroll fewer loops, or step by less: a register tile near 8 x 32 f32 is enough",
            "leave the reduction loop rolled, or unroll a piece of it: k by 4, unroll k",
        )
        out.append(Diagnostic(UNROLLED_CODE, message, None, help))
    for function in functions:
        out += _wide_vectors(function.body)
    return tuple(out)


def _wide_vectors(body: nest.Stmt) -> list[Diagnostic]:
    out: list[Diagnostic] = []
    for loop in nest.statements(body):
        if not isinstance(loop, nest.For) or loop.kind != "vectorize":
            continue
        if isinstance(loop.extent, core.Const) and int(loop.extent.value) > MAX_LANES:
            message = f"the vectorised loop '{loop.var.name}' has {loop.extent.value} lanes"
            help = (f"tile it: {loop.var.name} by 64, vectorize {loop.var.name}",)
            out.append(Diagnostic(WIDE_VECTOR, message, None, help))
    return out[:3]
