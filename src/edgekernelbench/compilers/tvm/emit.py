"""Loop programs in TIR, statement by statement: no loop is moved, split or dropped here."""

from __future__ import annotations

import re
import time

from tvm import ir, tirx

from edgekernelbench.compilers.contraction import FenceSet, accumulation, find_fences
from edgekernelbench.compilers.tvm import dots, scalars
from edgekernelbench.compilers.tvm.dialect import LLVM, Dialect
from edgekernelbench.compilers.tvm.expressions import ExpressionEmitter, Place, Scope
from edgekernelbench.compilers.tvm.scalars import TExpr
from edgekernelbench.compilers.tvm.unread import without_unread
from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.options import Options

_KINDS = {
    "serial": tirx.ForKind.SERIAL,
    "parallel": tirx.ForKind.PARALLEL,
    "unroll": tirx.ForKind.UNROLLED,
    "vectorize": tirx.ForKind.VECTORIZED,
}


class FunctionEmitter:
    """Builds one PrimFunc."""

    def __init__(
        self,
        function: nest.Function,
        fences: FenceSet,
        options: Options,
        dialect: Dialect = LLVM,
    ) -> None:
        self._function = function
        self._fences = fences
        self._options = options
        self._scope = Scope(dialect)
        self._sizes: dict[int, int] = {}

    def primfunc(self, symbol: str) -> ir.BaseFunc:
        """The function under the exported name ``symbol``; parameters are its buffers."""
        params = [self._declare(tensor, "global") for tensor in self._function.params]
        body = self._block(self._function.body)
        function = tirx.PrimFunc(params, body)
        return function.with_attr("global_symbol", symbol).with_attr("tirx.noalias", True)

    def _declare(self, tensor: core.Tensor, scope: str) -> tirx.Buffer:
        buffer = tirx.decl_buffer(
            tensor.shape or (1,),
            scalars.storage_dtype(tensor.dtype),
            re.sub(r"\W", "_", tensor.name),
            scope=scope,
        )
        self._scope.buffers[tensor.name] = buffer
        return buffer

    def _block(self, statement: nest.Stmt) -> tirx.Stmt:
        """``statement`` in a scope of its own, outside vectorised loops."""
        out: list[tirx.Stmt] = []
        self._statement(statement, Place(out, out))
        return _sequence(out)

    def _statement(self, statement: nest.Stmt, place: Place) -> None:
        match statement:
            case nest.Seq(body=body):
                for inner in body:
                    self._statement(inner, place)
            case nest.For():
                self._loop(statement, place)
            case nest.Store():
                self._store(statement, place)
            case nest.LetValue():
                self._let(statement, place)
            case nest.If(cond=cond, then=then, other=other):
                test = self._before(ExpressionEmitter(self._scope, place).emit(cond), place)
                orelse = None if other is None else self._block(other)
                place.out.append(tirx.IfThenElse(test, self._block(then), orelse))
            case nest.Prefetch():
                self._prefetch(statement, place)
            case nest.Barrier():
                place.out.append(self._barrier())
            case nest.Dot():
                place.out.append(dots.dot(statement, self._scope, place))
            case nest.Atomic():
                place.out.append(self._atomic(statement, place))
            case nest.Matrices() | nest.Packed() | nest.Mma():
                place.out.append(self._fragments(statement, place))
            case nest.Stamp():
                place.out.extend(self._stamp(statement))
            case nest.Alloc(tensor=tensor, scope=scope):
                place.allocations.append(tirx.AllocBuffer(self._declare(tensor, scope)))

    def _barrier(self) -> tirx.Stmt:
        raise NotImplementedError("a CPU has no blocks of threads")

    def _atomic(self, statement: nest.Atomic, place: Place) -> tirx.Stmt:
        raise NotImplementedError("on a CPU, threads share no elements")

    def _fragments(
        self, statement: nest.Matrices | nest.Packed | nest.Mma, place: Place
    ) -> tirx.Stmt:
        raise NotImplementedError("a CPU has no tensor cores")

    @staticmethod
    def _before(value: TExpr, place: Place) -> TExpr:
        """``value`` read before a loop or branch that it controls.

        TVM's storage planner takes what stands in the head of a loop to be used inside only.
        """
        if isinstance(value, (tirx.IntImm, tirx.Var)):
            return value
        var = tirx.Var("head", scalars.dtype_name(value))
        place.out.append(tirx.Bind(var, value))
        return var

    def _let(self, let: nest.LetValue, place: Place) -> None:
        """A cheap index stays an expression, so that vectorised accesses are seen as such."""
        emitter = ExpressionEmitter(self._scope, place, self._fences.covers_let(let))
        size = _index_size(let.value, self._sizes)
        value = emitter.emit(let.value)
        if size is None:
            self._scope.variables[let.var.uid] = emitter.keep(value)
        else:
            self._sizes[let.var.uid] = size
            self._scope.variables[let.var.uid] = value

    def _loop(self, loop: nest.For, place: Place) -> None:
        emitter = ExpressionEmitter(self._scope, place)
        low = self._before(emitter.emit(loop.lo), place)
        extent = self._before(emitter.emit(loop.extent), place)
        var = tirx.Var(loop.var.name, scalars.dtype_name(low))
        self._scope.variables[loop.var.uid] = var
        if not _is_zero(low) and loop.kind != "serial":
            # TVM's vectoriser and unroller want loops that start at 0.
            self._scope.variables[loop.var.uid] = tirx.Add(low, var)
            low = tirx.IntImm(scalars.dtype_name(low), 0)
        if loop.kind == "vectorize":
            out: list[tirx.Stmt] = []
            self._statement(loop.body, Place(out, place.out, (var, int(extent.value))))
            body = _sequence(out)
        else:
            body = self._block(loop.body)
        place.out.append(self._made(loop.kind, var, low, extent, body))

    def _made(
        self, kind: nest.LoopKind, var: tirx.Var, low: TExpr, extent: TExpr, body: tirx.Stmt
    ) -> tirx.Stmt:
        made = tirx.For(var, low, extent, _KINDS[kind], body)
        return self._dealt_out(made) if kind == "parallel" else made

    def _dealt_out(self, loop: tirx.For) -> tirx.Stmt:
        """A parallel loop whose iterations go to the threads as the options say."""
        if self._options.parallel_order == "block":  # what TVM does by itself
            return loop
        one = tirx.IntImm("int32", 1)
        cyclic = tirx.AttrStmt(one, "pragma_parallel_stride_pattern", one, loop)
        return tirx.AttrStmt(one, "pragma_parallel_launch_point", one, cyclic)

    def _prefetch(self, fetch: nest.Prefetch, place: Place) -> None:
        emitter = ExpressionEmitter(self._scope, place)
        indices = self._scope.indices(
            fetch.tensor, [emitter.index(emitter.emit(i)) for i in fetch.indices]
        )
        element = tirx.BufferLoad(self._scope.buffers[fetch.tensor.name], indices)
        address = tirx.call_intrin("handle", "tirx.address_of", element)
        # for reading, to be kept in all cache levels, data
        how = [tirx.IntImm("int32", value) for value in (0, 3, 1)]
        call = tirx.call_llvm_intrin("void", "llvm.prefetch", address, *how)
        place.out.append(tirx.Evaluate(call))

    def _stamp(self, stamp: nest.Stamp) -> list[tirx.Stmt]:
        """``clock_gettime`` of the C library, whose structure is two words on 64-bit systems."""
        now = tirx.decl_buffer((2,), "int64", "now", scope="local")
        zero, one = (tirx.IntImm("int32", n) for n in (0, 1))
        address = tirx.call_intrin("handle", "tirx.address_of", tirx.BufferLoad(now, [zero]))
        clock = tirx.IntImm("int32", time.CLOCK_MONOTONIC)
        asked = tirx.call_extern("int32", "clock_gettime", clock, address)
        seconds, rest = tirx.BufferLoad(now, [zero]), tirx.BufferLoad(now, [one])
        total = tirx.Add(tirx.Mul(seconds, tirx.IntImm("int64", 10**9)), rest)
        into = self._scope.buffers[stamp.tensor.name]
        place = tirx.IntImm("int32", stamp.place)
        stored = tirx.BufferStore(into, total, [place])
        return [tirx.AllocBuffer(now), tirx.Evaluate(asked), stored]

    def _store(self, store: nest.Store, place: Place) -> None:
        emitter = ExpressionEmitter(self._scope, place, self._fences.covers_store(store))
        value = emitter.emit(store.value, unfenced=accumulation(store))
        value = emitter.stored(value, store.value.dtype, store.tensor)
        plain = ExpressionEmitter(self._scope, place)
        indices = self._scope.indices(
            store.tensor, [plain.index(plain.emit(i)) for i in store.indices]
        )
        place.out.append(tirx.BufferStore(self._scope.buffers[store.tensor.name], value, indices))


_LARGEST_INLINED_INDEX = 24


def _index_size(value: core.Expr, sizes: dict[int, int]) -> int | None:
    """Nodes of ``value`` as a tree if it is a small integer formula of indices, else None."""
    if not value.dtype.is_int:
        return None
    total = 0
    for node in core.walk(value):
        match node:
            case core.Const():
                total += 1
            case core.VarRef(var=var):
                total += sizes.get(var.uid, 1)
            case core.Binary(op="add" | "sub" | "mul", dtype=DType.S32):
                total += 1
            case _:
                return None
        if total > _LARGEST_INLINED_INDEX:
            return None
    return total


def _is_zero(value: TExpr) -> bool:
    return isinstance(value, tirx.IntImm) and value.value == 0


def _sequence(statements: list[tirx.Stmt]) -> tirx.Stmt:
    if not statements:
        return tirx.Evaluate(tirx.IntImm("int32", 0))
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(statements)


def emit_module(module: nest.Module, names: tuple[str, str] = ("main", "prepack")) -> ir.IRModule:
    """TIR module with the main function and, when something is packed, the one that packs."""
    written = (module.main, *(() if module.prepack is None else (module.prepack,)))
    functions = tuple(without_unread(function) for function in written)
    fences = find_fences(functions)
    return ir.IRModule(
        {
            name: FunctionEmitter(function, fences, module.options).primfunc(name)
            for name, function in zip(names, functions, strict=False)
        }
    )
