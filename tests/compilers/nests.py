"""Hand-made loop programs for tests of the back end."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from edgekernelbench.compilers.tvm.compiler import compile_module
from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy, aligned_empty
from edgekernelbench.ir import core
from edgekernelbench.ir.core import Binary, Call, Cast, Const, Expr, Load, Tensor, Var, VarRef
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest
from edgekernelbench.targets.host import host_target

_uids = itertools.count(1)

DTYPES = {d.numpy: d for d in DType}


def var(name: str, dtype: DType = DType.S32) -> Var:
    return Var(name, next(_uids), dtype)


def k(value: float | bool, dtype: DType = DType.S32) -> Const:
    return Const(value, dtype)


def op(name: str, a: Expr, b: Expr, dtype: DType | None = None) -> Binary:
    if name in core.COMPARE_OPS:
        dtype = DType.BOOL
    return Binary(name, a, b, dtype or a.dtype)  # type: ignore[arg-type]


def call(name: str, *args: Expr) -> Call:
    return Call(name, args, args[0].dtype)


def cast(a: Expr, dtype: DType) -> Cast:
    return Cast(a, dtype)


def loop(kind: nest.LoopKind, extent: int, body: Callable[[Expr], nest.Stmt]) -> nest.For:
    v = var("i")
    return nest.For(v, k(0), k(extent), kind, body(VarRef(v)))


def run(
    folder: Path, module: nest.Module, inputs: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Compiles and calls a loop program once; outputs start poisoned."""
    program = program_of(module)
    folder.mkdir(exist_ok=True)
    built = compile_module(module, program, host_target(), folder)
    assert built.artifact is not None, built.diagnostics
    kernel = LoadedKernel(folder)
    outputs = {t.name: aligned_empty(t.shape, t.dtype) for t in program.outputs}
    for out in outputs.values():
        out.view(np.uint8)[...] = 0xA5
    arrays = {name: aligned_copy(np.asarray(value)) for name, value in inputs.items()}
    constants = {t.name: arrays.pop(t.name) for t in program.inputs if t.const}
    kernel.bind(arrays, constants, outputs)()
    return outputs


def program_of(module: nest.Module) -> core.Program:
    """The interface of a loop program, without its computation."""
    prepack = () if module.prepack is None else module.prepack.params
    params = {t.name: t for t in (*module.main.params, *prepack)}
    inputs = tuple(t for t in params.values() if t.kind == "input")
    outputs = tuple(t for t in params.values() if t.kind == "output")
    return core.Program(module.main.name, (), inputs, outputs, (), (), 1 << 20)


def module(body: nest.Stmt, *params: Tensor) -> nest.Module:
    return nest.Module(nest.Function("f", params, body), None, (), 0, "")


def elementwise(
    folder: Path,
    expr: Callable[..., Expr],
    arrays: Mapping[str, np.ndarray],
    result: DType,
    lanes: int | None = 16,
) -> np.ndarray:
    """``expr`` of loads of ``arrays`` (one dimension, one length), element by element."""
    size = len(next(iter(arrays.values())))
    sources = [Tensor(n, DTYPES[a.dtype], (size,), "input") for n, a in arrays.items()]
    target = Tensor("result", result, (size,), "output")

    def store(at: Expr) -> nest.Stmt:
        return nest.Store(target, (at,), expr(*(Load(t, (at,)) for t in sources)))

    if lanes is None:
        body: nest.Stmt = loop("serial", size, store)
    else:
        assert size % lanes == 0

        def tile(outer: Expr) -> nest.Stmt:
            base = op("mul", outer, k(lanes))
            return loop("vectorize", lanes, lambda lane: store(op("add", base, lane)))

        body = loop("serial", size // lanes, tile)
    return run(folder, module(body, *sources, target), arrays)["result"]
