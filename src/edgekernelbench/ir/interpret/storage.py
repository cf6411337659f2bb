"""Which array each tensor gets, for how long, and which ``each`` loops run as one grid axis."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.interpret import limits, numeric
from edgekernelbench.ir.interpret.compile import Storage
from edgekernelbench.ir.interpret.frame import Frame, InterpretError

Names = tuple[tuple[str, ...], ...]  # per top-level node


@dataclass(frozen=True, slots=True)
class Plan:
    """Attributes:
    widths: iterations that run at once, by uid of the index, for vectorised ``each`` loops.
    storages: by tensor name.
    histories: names of stages that keep iterations; their storage starts out poisoned.
    defined: names of stages that each top-level node defines.
    dead: names of tensors that no node after this top-level node reads.
    """

    widths: dict[int, int]
    storages: dict[str, Storage]
    histories: frozenset[str]
    defined: Names
    dead: Names


def plan(program: core.Program) -> Plan:
    widths: dict[int, int] = {}
    for node in program.body:
        if isinstance(node, core.Loop):
            widths |= _widths(node)
    storages: dict[str, Storage] = {}
    histories: set[str] = set()
    for tensor in (*program.inputs, *(table.tensor for table in program.tables)):
        _add(storages, tensor, tensor.shape, ())
    for loops, stage in core.stages(program.body):
        indexed = {var.uid for var in stage.lhs}
        if any(loop.var.uid in indexed for loop in loops):
            histories.add(stage.name)
        hidden = tuple(
            loop.var.uid for loop in loops if loop.var.uid in widths and loop.var.uid not in indexed
        )
        shape = (*stage.tensor.shape, *(widths[uid] for uid in hidden))
        _add(storages, stage.tensor, shape, hidden)
    defined = tuple(
        tuple(stage.tensor.name for _, stage in core.stages((node,))) for node in program.body
    )
    return Plan(widths, storages, frozenset(histories), defined, _dead(program, defined))


def _add(
    storages: dict[str, Storage],
    tensor: core.Tensor,
    shape: tuple[int, ...],
    hidden: tuple[int, ...],
) -> None:
    if tensor.name in storages:
        raise InterpretError(f"'{tensor.name}' is defined twice")
    storages[tensor.name] = Storage(len(storages), shape, hidden)


def _widths(loop: core.Loop) -> dict[int, int]:
    """The vectorised loops of a nest. Only the outermost is cut, when memory asks for it."""
    found: list[core.Loop] = []
    _collect(loop, found)
    widths = {item.var.uid: max(1, item.hi - item.lo) for item in found}
    private = 0
    for loops, stage in core.stages((loop,)):
        indexed = {var.uid for var in stage.lhs}
        apart = [widths[x.var.uid] for x in loops if x.var.uid in widths.keys() - indexed]
        if apart:
            private += stage.tensor.size * math.prod(apart) * 8
    if found and private > limits.PRIVATE_BYTES:
        outermost = found[0].var.uid
        widths[outermost] = max(1, widths[outermost] * limits.PRIVATE_BYTES // private)
    return widths


def _collect(node: core.Node, found: list[core.Loop]) -> None:
    if isinstance(node, core.Stage):
        return
    if node.kind == "each" and _pays(node):
        found.append(node)
    for inner in node.body:
        _collect(inner, found)


def _pays(loop: core.Loop) -> bool:
    if loop.hi - loop.lo >= limits.FEW_ITERATIONS:
        return True
    stages = [stage for _, stage in core.stages(loop.body)]
    return any(stage.axes for stage in stages)


def _dead(program: core.Program, defined: Names) -> tuple[tuple[str, ...], ...]:
    last: dict[str, int] = {}
    for number, node in enumerate(program.body):
        for name in defined[number]:
            last[name] = number
        for _, stage in core.stages((node,)):
            for expr in core.walk(stage.expr):
                if isinstance(expr, core.Load):
                    last[expr.tensor.name] = number
    kept = {tensor.name for tensor in program.outputs}
    return tuple(
        tuple(name for name, at in last.items() if at == number and name not in kept)
        for number in range(len(program.body))
    )


def allocate(frame: Frame, plan: Plan, names: tuple[str, ...], dtypes: dict[str, np.dtype]) -> None:
    """Gives stages their storage."""
    for name in names:
        storage = plan.storages[name]
        dtype = dtypes[name]
        if name in plan.histories:
            array = np.full(storage.shape, _poison(dtype), dtype)
        else:
            array = np.empty(storage.shape, dtype)
        frame.keep(storage.number, array)


def _poison(dtype: np.dtype) -> object:
    """What an unwritten element holds: NaN, or a large odd number."""
    if dtype.kind == "f":
        return np.nan
    return True if dtype.kind == "b" else np.iinfo(dtype).max // 3


def stage_dtypes(program: core.Program, mode: numeric.Mode) -> dict[str, np.dtype]:
    return {
        stage.tensor.name: numeric.numpy_dtype(stage.tensor.dtype, mode)
        for _, stage in core.stages(program.body)
    }
