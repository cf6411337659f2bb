"""Loop programs of GPUs in TIR: kernels are loops bound to blocks and threads."""

from __future__ import annotations

from tvm import ir, tirx

from edgekernelbench.compilers.contraction import FenceSet, find_fences
from edgekernelbench.compilers.tvm.emit import FunctionEmitter
from edgekernelbench.compilers.tvm.expressions import ExpressionEmitter, Place
from edgekernelbench.compilers.tvm.gpu import tensor_cores
from edgekernelbench.compilers.tvm.gpu.definitions import PREFIX
from edgekernelbench.compilers.tvm.gpu.functions import dialect
from edgekernelbench.compilers.tvm.scalars import TExpr, tvm_dtype
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.options import Options
from edgekernelbench.targets.model import Backend

_TAGS = {"block": "blockIdx.x", "thread": "threadIdx.x"}
_OPENCL: dict[nest.AtomicOp, str] = {"sum": "add", "min": "min", "max": "max"}
_ATOMICS: dict[str, dict[nest.AtomicOp, str]] = {
    "cuda": {"sum": "atomicAdd", "min": "atomicMin", "max": "atomicMax"},
    "opencl": {op: f"{PREFIX}atomic_{name}" for op, name in _OPENCL.items()},
}
_LOCAL_AND_GLOBAL = 3  # CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE


class DeviceEmitter(FunctionEmitter):
    """Builds one PrimFunc of the host with the kernels that it launches."""

    def __init__(
        self, function: nest.Function, fences: FenceSet, options: Options, backend: Backend
    ) -> None:
        super().__init__(function, fences, options, dialect(backend))
        self._backend = backend

    def _made(
        self, kind: nest.LoopKind, var: tirx.Var, low: TExpr, extent: TExpr, body: tirx.Stmt
    ) -> tirx.Stmt:
        if kind not in _TAGS:
            return super()._made(kind, var, low, extent, body)
        bound = tirx.IterVar(ir.Range(low, extent), var, tirx.IterVar.ThreadIndex, _TAGS[kind])
        return tirx.AttrStmt(bound, "thread_extent", extent, body)

    def _loop(self, loop: nest.For, place: Place) -> None:
        super()._loop(loop, place)
        if self._backend != "opencl":
            return
        inner = tuple(nest.statements(loop))
        of_host = any(isinstance(s, nest.For) and s.kind in _TAGS for s in inner)
        if not of_host and any(isinstance(s, nest.Barrier) for s in inner):
            # PoCL (3.0) joins what follows to the end of the loop's last turn, and may drop what
            # only some work items store there.
            place.out.append(self._barrier())

    def _barrier(self) -> tirx.Stmt:
        """TVM's own barrier for OpenCL orders local memory only."""
        if self._backend == "opencl":
            fences = tirx.IntImm("int32", _LOCAL_AND_GLOBAL)
            return tirx.Evaluate(tirx.call_extern("void", "barrier", fences))
        scope = ir.StringImm("shared")
        return tirx.Evaluate(tirx.call_intrin("void", "tirx.tvm_storage_sync", scope))

    def _atomic(self, statement: nest.Atomic, place: Place) -> tirx.Stmt:
        emitter, tensor = ExpressionEmitter(self._scope, place), statement.tensor
        value = emitter.stored(emitter.emit(statement.value), statement.value.dtype, tensor)
        where = [emitter.index(emitter.emit(i)) for i in statement.indices]
        buffer = self._scope.buffers[tensor.name]
        element = tirx.BufferLoad(buffer, self._scope.indices(tensor, where))
        address = tirx.call_intrin("handle", "tirx.address_of", element)
        name = _ATOMICS[self._backend][statement.op]
        return tirx.Evaluate(tirx.call_extern(tvm_dtype(tensor.dtype), name, address, value))

    def _fragments(
        self, statement: nest.Matrices | nest.Packed | nest.Mma, place: Place
    ) -> tirx.Stmt:
        return tensor_cores.statement(statement, self._scope, place)

    def _prefetch(self, fetch: nest.Prefetch, place: Place) -> None:
        """Threads that wait for memory are changed for others: there is nothing to hint at."""


def emit_device_module(module: nest.Module, backend: Backend) -> ir.IRModule:
    """TIR module with the functions ``main`` and, when something is packed, ``prepack``."""
    functions = {"main": module.main}
    if module.prepack is not None:
        functions["prepack"] = module.prepack
    fences = find_fences(tuple(functions.values()))
    return ir.IRModule(
        {
            name: DeviceEmitter(function, fences, module.options, backend).primfunc(name)
            for name, function in functions.items()
        }
    )
