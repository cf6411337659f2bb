"""Loop functions of TOPI, block by block: each block that computes a buffer becomes a stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from edgekernelbench.compilers.tvm.lift.expressions import Expressions
from edgekernelbench.compilers.tvm.lift.reductions import (
    argument_reduction,
    plain_reduction,
    statements,
)
from edgekernelbench.compilers.tvm.lift.refusal import Refused, unsayable
from edgekernelbench.compilers.tvm.lift.sources import Builder, Source, dtype_of
from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.rewrite import substitute

TNode = Any  # tvm's statement classes share no useful static type

_SPATIAL, _REDUCTION = 0, 2


@dataclass(frozen=True, slots=True)
class Axes:
    """Iteration variables of a block: ``spatial`` and ``reduction``, with their extents."""

    spatial: dict[TNode, tuple[core.Var, int]]
    reduction: dict[TNode, tuple[core.Var, int]]


class FunctionLifter:
    """Lifts one call of a loop function.

    Args:
        name: what the function is called; its stages are named after it.
        outputs: tensors that the call's results are to be, by position; None where the lift may
            choose.
    """

    def __init__(self, builder: Builder, name: str) -> None:
        self._builder = builder
        self._name = name
        self._buffers: dict[TNode, Source] = {}
        self._wanted: dict[TNode, Tensor | None] = {}

    def run(
        self, function: TNode, arguments: tuple[Source, ...], outputs: tuple[Tensor | None, ...]
    ) -> tuple[Source, ...]:
        """Appends the stages to the program; returns what the results are.

        Raises:
            Refused: a block is not of a form that the lift knows.
        """
        params = tuple(function.params)
        if len(params) != len(arguments) + len(outputs):
            raise Refused(f"{self._name}: symbolic arguments")
        self._buffers = dict(zip(params, arguments, strict=False))
        self._wanted = dict(zip(params[len(arguments) :], outputs, strict=True))
        for block in blocks(function.body):
            try:
                self._block(block)
            except Refused as reason:
                raise Refused(f"function {self._name}: {reason}") from reason
        missing = [p.name for p in self._wanted if p not in self._buffers]
        if missing:
            raise Refused(f"{self._name}: {missing[0]} is not computed by a block")
        return tuple(self._buffers[p] for p in self._wanted)

    # ---------------------------------------------------------- blocks
    def _block(self, block: TNode) -> None:
        expressions = Expressions(self._builder, self._buffers)
        axes = self._axes(block, expressions)
        lets, stores = statements(block.body)
        if lets or len(stores) != 1:
            self._argument_reduction(block, axes, expressions)
            return
        store = stores[0]
        lhs = self._lhs(store, axes)
        if block.init is None:
            if axes.reduction:
                raise Refused("a reduction without a start value")
            value = expressions.convert(store.value)
        else:
            value = plain_reduction(block.init, store, axes.reduction, expressions)
        self._define(store.buffer, lhs, axes, value)

    def _argument_reduction(self, block: TNode, axes: Axes, expressions: Expressions) -> None:
        """Position and value of an extreme element are two stages; one is mostly unused."""
        found = argument_reduction(block, axes.reduction, expressions)
        for store, value in found:
            self._define(store.buffer, self._lhs(store, axes), axes, value)

    def _axes(self, block: TNode, expressions: Expressions) -> Axes:
        axes = Axes({}, {})
        for item in block.iter_vars:
            low, extent = item.dom.min, item.dom.extent
            if type(low).__name__ != "IntImm" or type(extent).__name__ != "IntImm":
                raise Refused("an axis of unknown extent")
            if int(low.value) != 0:
                raise Refused("an axis that does not start at 0")
            kinds = {_SPATIAL: axes.spatial, _REDUCTION: axes.reduction}
            if int(item.iter_type) not in kinds:
                raise Refused("an axis whose order matters")
            name, size = _axis_name(str(item.var.name)), int(extent.value)
            var = self._builder.var(name)
            kinds[int(item.iter_type)][item.var] = (var, size)
            expressions.variables[item.var] = core.VarRef(var)
            expressions.arithmetic.ranges[var] = (0, max(0, size - 1))
        return axes

    def _lhs(self, store: TNode, axes: Axes) -> tuple[core.Axis, ...]:
        """The axes of the stage, one per dimension: the block must write the whole buffer."""
        shape = _shape(store.buffer)
        if len(store.indices) != len(shape):
            raise Refused("a store of another rank than its buffer")
        out: list[core.Axis] = []
        for index, extent in zip(store.indices, shape, strict=True):
            if type(index).__name__ == "IntImm" and extent == 1:
                out.append(core.Axis(self._builder.var(f"u{len(out)}"), 1))
            elif index in axes.spatial and axes.spatial[index][1] == extent:
                out.append(core.Axis(axes.spatial[index][0], extent))
            else:
                raise Refused(f"a store to {store.buffer.name} that does not fill it in order")
        used = {axis.var for axis in out}
        if len(used) < len(out):
            raise Refused(f"a store to a diagonal of {store.buffer.name}")
        if any(var not in used and extent > 1 for var, extent in axes.spatial.values()):
            raise Refused(f"several stores to one element of {store.buffer.name}")
        return tuple(out)

    # ---------------------------------------------------------- stages
    def _define(self, buffer: TNode, lhs: tuple[core.Axis, ...], axes: Axes, value: Expr) -> None:
        if buffer in self._buffers:
            raise Refused(f"{buffer.name} is written twice")
        dtype = dtype_of(str(buffer.dtype))
        tensor = self._wanted.get(buffer)
        if tensor is None:
            if dtype is DType.S64 and value.dtype is DType.S32:
                dtype = DType.S32
            name = self._name if buffer in self._wanted else f"{self._name}.{buffer.name}"
            tensor = Tensor(self._builder.fresh(name), dtype, _shape(buffer), "stage")
        value = _with_units(value, lhs, axes)
        if value.dtype is not tensor.dtype:
            value = core.Cast(value, tensor.dtype)
        variables = tuple(axis.var for axis in lhs)
        self._builder.stages.append(core.Stage(tensor.name, tensor, variables, lhs, value))
        self._buffers[buffer] = tensor


def _with_units(value: Expr, lhs: tuple[core.Axis, ...], axes: Axes) -> Expr:
    """The value with axes of extent 1 that the stage does not have as 0."""
    kept = {axis.var for axis in lhs}
    gone = [var for var, _ in axes.spatial.values() if var not in kept]
    return substitute(value, {var: core.Const(0, DType.S32) for var in gone})


def _axis_name(name: str) -> str:
    """TVM calls the axis ``k`` of a block ``v_k``."""
    name = name.removeprefix("v_")
    return name if name.isidentifier() else "i"


def _shape(buffer: TNode) -> tuple[int, ...]:
    if any(type(extent).__name__ != "IntImm" for extent in buffer.shape):
        raise Refused(f"{buffer.name} has a symbolic shape")
    return tuple(int(extent.value) for extent in buffer.shape)


def blocks(body: TNode) -> Iterator[TNode]:
    """The innermost blocks of a loop function in program order.

    Raises:
        Refused: their loops are not just those over the blocks' own axes.
    """
    stack: list[tuple[TNode, Mapping[TNode, int]]] = [(body, {})]
    while stack:
        node, loops = stack.pop()
        match type(node).__name__:
            case "SeqStmt":
                stack.extend((part, loops) for part in reversed(tuple(node.seq)))
            case "For":
                if type(node.extent).__name__ != "IntImm":
                    raise Refused("a loop of unknown length")
                stack.append((node.body, {**loops, node.loop_var: int(node.extent.value)}))
            case "SBlockRealize" if str(node.block.name_hint) == "root":
                stack.append((node.block.body, loops))
            case "SBlockRealize":
                _check_bindings(node, loops)
                yield node.block
            case other:
                raise unsayable(other)


def _check_bindings(realize: TNode, loops: Mapping[TNode, int]) -> None:
    """Each axis of a block is one loop of its extent, without a condition."""
    predicate = realize.predicate
    if type(predicate).__name__ != "IntImm" or not predicate.value:
        raise Refused("a block under a condition")
    seen: set[TNode] = set()
    for item, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        extent = getattr(item.dom.extent, "value", None)
        if type(value).__name__ == "IntImm" and extent == 1:
            continue
        if value in seen or loops.get(value) != extent:
            raise Refused("a block whose axes are not its loops")
        seen.add(value)
    if any(extent > 1 and var not in seen for var, extent in loops.items()):
        raise Refused("a block that runs several times")
