"""Dot products of bytes: the instructions that the lowering chose, as calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest

if TYPE_CHECKING:
    from edgekernelbench.compilers.c.emit import FunctionPrinter

_WIDTHS = {16: "512", 8: "256", 4: "128"}


def dot(statement: nest.Dot, printer: FunctionPrinter) -> str:
    """The statement of one dot product."""
    place = [printer.index(i) for i in statement.indices]
    element = printer.printer().element(statement.tensor, statement.indices, place)
    a, b = _in_order(statement)
    first, second = _address(a, printer), _address(b, printer)
    instruction, count = statement.instruction, statement.count
    if instruction.form == "words":
        left = f"{first}, {int(a.moving)}, {_flip(a, count)}, {int(a.dtype is DType.S8)}"
        right = f"{second}, {int(b.moving)}, {_flip(b, count)}, {int(b.dtype is DType.S8)}"
        return f"words(&{element}, {statement.lanes}, {count}, {left}, {right});"
    neon = instruction.name in ("sdot", "udot", "usdot")
    width = "neon" if neon else _WIDTHS[statement.lanes]
    x, y = _register(a, first, width, count), _register(b, second, width, count)
    if instruction.form == "pairs":
        signs = int(a.dtype is DType.S8), int(b.dtype is DType.S8)
        return f"pairs_{width}(&{element}, {x}, {signs[0]}, {y}, {signs[1]});"
    return f"{instruction.name}_{width}(&{element}, {x}, {y});"


def _in_order(statement: nest.Dot) -> tuple[nest.Quads, nest.Quads]:
    """The operands as the instruction takes them."""
    a, b = statement.a, statement.b
    wanted = statement.instruction.operands
    swapped = wanted is not None and (a.dtype, b.dtype) != wanted
    return (b, a) if swapped else (a, b)


def _address(quads: nest.Quads, printer: FunctionPrinter) -> str:
    place = [printer.index(i) for i in quads.indices]
    return f"&{printer.printer().element(quads.tensor, quads.indices, place)}"


def _flip(quads: nest.Quads, count: int) -> str:
    """What makes bytes of the other kind: the bias is the highest bit of each."""
    if not quads.bias:
        return "0"
    due = 4 if quads.moving else count
    bits = 0x80808080 & ((1 << 8 * due) - 1)
    return f"(int32_t)0x{bits:08X}u"


def _register(quads: nest.Quads, address: str, width: str, count: int) -> str:
    if quads.moving:
        return f"moving_{width}({address}, {_flip(quads, count)})"
    return f"still_{width}({address}, {count}, {_flip(quads, count)})"
