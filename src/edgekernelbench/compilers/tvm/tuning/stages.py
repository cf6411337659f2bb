"""Core programs as graphs of the compiler's own loop functions, one a stage, fused by its rules.

For tasks that ONNX cannot say, or that the importer gets wrong. Programs with loops in order, with
position reductions or with ranges that begin at data are left alone: the compiler's search has no
schedules for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from edgekernelbench.compilers.tvm import scalars
from edgekernelbench.compilers.tvm.lift.model import last_line
from edgekernelbench.compilers.tvm.lift.refusal import Refused
from edgekernelbench.compilers.tvm.scalars import TExpr, tvm_dtype
from edgekernelbench.compilers.tvm.tuning.formulas import Formulas
from edgekernelbench.compilers.tvm.tuning.graph import Graph, fuse
from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.normalize import NormalizeError, normalize


def from_program(program: core.Program, target: Any) -> Graph:
    """The graph of a verified program.

    Raises:
        Refused: the program is of no form that the compiler searches schedules for.
    """
    try:
        program = normalize(program)
    except NormalizeError as error:
        raise Refused(str(error)) from error
    if any(isinstance(node, core.Loop) for node in program.body):
        raise Refused("the program has loops in order")
    inputs = tuple(t for t in program.inputs if not t.const)
    consts = tuple(t for t in program.inputs if t.const)
    try:
        module = _module(program, inputs, consts)
    except Refused:
        raise
    except Exception as error:  # the compiler's exceptions have no common base
        raise Refused(f"not stated as loop functions: {last_line(error)}") from error
    return Graph(
        module=fuse(module, target),
        inputs=tuple(t.name for t in inputs),
        params={t.name: np.empty(0) for t in consts},
        outputs=tuple(t.name for t in program.outputs),
    )


def _module(
    program: core.Program, inputs: tuple[core.Tensor, ...], consts: tuple[core.Tensor, ...]
) -> Any:
    from tvm import relax

    builder = relax.BlockBuilder()
    values: dict[str, Any] = {}
    for tensor in (*inputs, *consts):
        shape: Any = tensor.shape
        kind = relax.TensorType(shape, tvm_dtype(tensor.dtype))
        values[tensor.name] = relax.Var(_plain(tensor.name), kind)
    params = list(values.values())
    for table in program.tables:
        values[table.tensor.name] = relax.const(table.array(), tvm_dtype(table.tensor.dtype))
    attrs: Any = {"num_input": len(inputs)}
    with builder.function("main", params, attrs=attrs):
        with builder.dataflow():
            for stage in _stages(program):
                values[stage.tensor.name] = _emit(builder, stage, values)
            results = [values[tensor.name] for tensor in program.outputs]
            single = len(results) == 1
            out = builder.emit_output(results[0] if single else relax.Tuple(results))
        builder.emit_func_output(out)
    return builder.finalize()


def _stages(program: core.Program) -> Iterator[core.Stage]:
    """The stages; what a reduction rounds when it is stored becomes a stage after it."""
    for node in program.body:
        assert isinstance(node, core.Stage)
        expr, tensor = node.expr, node.tensor
        if not isinstance(expr, core.Reduce) or expr.dtype is tensor.dtype:
            yield node
            continue
        exact = core.Tensor(f"{tensor.name}.exact", expr.dtype, tensor.shape, "stage")
        yield core.Stage(exact.name, exact, node.lhs, node.axes, expr)
        load = core.Load(exact, tuple(core.VarRef(var) for var in node.lhs))
        yield core.Stage(node.name, tensor, node.lhs, node.axes, load)


def _emit(builder: Any, stage: core.Stage, values: dict[str, Any]) -> Any:
    read = {n.tensor.name: n.tensor for n in core.walk(stage.expr) if isinstance(n, core.Load)}
    names = list(read)

    def state(*tensors: Any) -> Any:
        return compute(stage, dict(zip(names, tensors, strict=True)))

    arguments = [values[name] for name in names]
    return builder.emit_te(state, *arguments, primfunc_name_hint=_plain(stage.name))


def _plain(name: str) -> str:
    return name.replace(".", "_")


# ---------------------------------------------------------------- one stage
def compute(stage: core.Stage, tensors: dict[str, Any]) -> Any:
    """A stage as a TE tensor of the tensors that it reads.

    Raises:
        Refused: its reduction is of no form that is translated.
    """
    from tvm import te

    def element(*indices: TExpr) -> TExpr:
        variables = dict(zip((var.uid for var in stage.lhs), indices, strict=True))
        if not isinstance(stage.expr, core.Reduce):
            return Formulas(tensors, variables).value(stage.expr, stage.tensor.dtype)
        return _reduced(stage.expr, tensors, variables)

    shape = [_long(extent) for extent in stage.tensor.shape]
    return te.compute(shape, element, name=_plain(stage.name))


def _long(number: int) -> TExpr:
    """Relax counts in 64 bits."""
    from tvm import tirx

    return tirx.IntImm("int64", number)


def _reduced(reduce: core.Reduce, tensors: dict[str, Any], variables: dict[int, TExpr]) -> TExpr:
    from tvm import te, tirx

    if reduce.op in ("argmax", "argmin"):
        raise Refused("a reduction to a position")
    axes = []
    for axis in reduce.axes:
        if not isinstance(axis.lo, core.Const) or axis.lo.value < 0:
            raise Refused("a reduction whose range begins at data")
        made = te.reduce_axis((_long(0), _long(axis.extent)), name=axis.var.name)
        variables[axis.var.uid] = made.var
        axes.append(made)
    formulas = Formulas(tensors, variables)
    body = formulas.value(reduce.body)
    start = scalars.const(core.identity(reduce.op, reduce.dtype), reduce.dtype)
    for condition in _conditions(reduce, formulas):
        body = tirx.if_then_else(condition, body, start)
    return _combiner(reduce.op, start)(body, axis=axes)


def _conditions(reduce: core.Reduce, formulas: Formulas) -> list[TExpr]:
    """What an iteration of the whole box must meet to take part, the innermost first."""
    found = [] if reduce.where is None else [formulas.value(reduce.where)]
    for axis in reduce.axes:
        if not axis.is_constant:
            var = core.VarRef(axis.var)
            above = core.Binary("ge", var, axis.lo, DType.BOOL)
            below = core.Binary("lt", var, axis.hi, DType.BOOL)
            found.append(formulas.value(core.Binary("and", above, below, DType.BOOL)))
    return found


def _combiner(op: str, start: TExpr) -> Callable[..., TExpr]:
    from tvm import te, tirx

    operations: dict[str, Callable[[TExpr, TExpr], TExpr]] = {
        "sum": tirx.Add, "prod": tirx.Mul, "max": tirx.Max, "min": tirx.Min,
        "any": tirx.Or, "all": tirx.And,
    }  # fmt: skip

    def combine(x: TExpr, y: TExpr) -> TExpr:  # TVM reads its code object for names
        return operations[op](x, y)

    return te.comm_reducer(combine, lambda _dtype: start, name=op)
