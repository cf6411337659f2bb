"""Tensor cores in TIR: calls of small functions, which `definitions` puts into the source."""

from __future__ import annotations

from tvm import tirx

from edgekernelbench.compilers.tvm.expressions import ExpressionEmitter, Place, Scope
from edgekernelbench.compilers.tvm.gpu.definitions import PREFIX
from edgekernelbench.compilers.tvm.scalars import TExpr
from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest

_WORDS = {DType.F16: "f16", DType.S8: "s8", DType.U8: "u8"}


def statement(
    node: nest.Matrices | nest.Packed | nest.Mma, scope: Scope, place: Place
) -> tirx.Stmt:
    """The call that one statement on fragments becomes; registers are handed over by reference."""
    emitter = ExpressionEmitter(scope, place)

    def element(tensor: core.Tensor, indices: tuple[core.Expr, ...]) -> TExpr:
        where = scope.indices(tensor, [emitter.index(emitter.emit(i)) for i in indices])
        return tirx.BufferLoad(scope.buffers[tensor.name], where)

    def address(load: core.Load) -> TExpr:
        where = element(load.tensor, load.indices)
        return tirx.call_intrin("handle", "tirx.address_of", where)

    def registers(tensor: core.Tensor, first: int, count: int) -> list[TExpr]:
        buffer = scope.buffers[tensor.name]
        places = (tirx.IntImm("int32", first + k) for k in range(count))
        return [tirx.BufferLoad(buffer, [place]) for place in places]

    match node:
        case nest.Matrices():
            name = "load_columns" if node.transposed else "load_rows"
            args = [*registers(node.registers, node.first, 4), address(node.source)]
        case nest.Packed():
            name = f"pack_{len(node.elements)}"
            args = registers(node.registers, node.place, 1)
            args += [address(value) for value in node.elements]
        case nest.Mma():
            name = "_".join(("mma", *(_WORDS[kind] for kind in node.kinds)))
            args = [element(node.tensor, where) for where in node.indices]
            args += registers(node.left, node.left_first, 4)
            args += registers(node.right, node.right_first, 2)
    return tirx.Evaluate(tirx.call_extern("void", PREFIX + name, *args))
