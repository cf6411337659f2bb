"""Which stages of a flat program can be substituted into their readers for free."""

from __future__ import annotations

from dataclasses import replace

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Program, Stage
from edgekernelbench.lowering.expr.linear import const_value, is_index, linear
from edgekernelbench.lowering.expr.rewrite import (
    Names,
    free_vars,
    loads,
    map_children,
    size,
    substitute,
)
from edgekernelbench.lowering.passes.inline import inline_stages

MAX_FUSED_NODES = 400

Readers = dict[str, set[str]]
"""Names of tensors, and the stages that read them."""


def readers(program: Program) -> Readers:
    out: Readers = {}
    for _, stage in core.stages(program.body):
        for load in loads(stage.expr):
            out.setdefault(load.tensor.name, set()).add(stage.name)
    return out


def has_reduction(stage: Stage) -> bool:
    return any(isinstance(node, core.Reduce) for node in core.walk(stage.expr))


# ---------------------------------------------------------------- views
def views(program: Program) -> set[str]:
    """Stages that only rename elements, such that reading through them costs nothing.

    Their indices are sums of axes in the axes' order, the last axis next to itself: slices,
    broadcasts, arrays cut into more dimensions. Transpositions are none.
    """
    return {
        stage.name
        for _, stage in core.stages(program.body)
        if stage.tensor.kind == "stage" and _is_view(stage)
    }


def _is_view(stage: Stage) -> bool:
    load = stage.expr
    if not isinstance(load, core.Load) or load.tensor.dtype is not stage.tensor.dtype:
        return False
    order = {var: k for k, var in enumerate(stage.lhs)}
    last = -1
    for index in load.indices:
        if not is_index(index):
            return False
        form = linear(index)
        axes: list[tuple[int, int]] = []
        for atom, coefficient in form.terms.items():
            if not isinstance(atom, core.VarRef) or coefficient < 1:
                return False
            axes.append((order[atom.var], coefficient))
        axes.sort()
        if any(axis <= last for axis, _ in axes):
            return False
        if axes:
            last = axes[-1][0]
            if axes[-1][1] != 1:
                return False
    return True


MIN_REUSE = 16
"""Reads of an element from which on an array that a reduction reads is worth a transposed copy."""


def transpositions(program: Program) -> set[str]:
    """Stages that only permute or convert elements, such that a copy does not pay.

    It pays for reductions that read each element often, and for constants: those are copied
    before the call.
    """
    stages = {stage.name: stage for _, stage in core.stages(program.body)}
    consts = {tensor.name for tensor in program.inputs if tensor.const}
    found = readers(program)
    out: set[str] = set()
    for stage in stages.values():
        source = _permuted(stage)
        if source is None or source in consts or stage.tensor.kind != "stage":
            continue
        if all(_reuse(stages[name], stage) < MIN_REUSE for name in found.get(stage.name, ())):
            out.add(stage.name)
    return out


def _permuted(stage: Stage) -> str | None:
    """The tensor whose elements a stage renames one by one, if it does no more than that."""
    load = stage.expr.arg if isinstance(stage.expr, core.Cast) else stage.expr
    if isinstance(load, core.Cast):
        load = load.arg
    if not isinstance(load, core.Load):
        return None
    bare = [i.var for i in load.indices if isinstance(i, core.VarRef)]
    rest = [i for i in load.indices if not isinstance(i, core.VarRef)]
    plain = len(set(bare)) == len(bare) and all(const_value(i) is not None for i in rest)
    return load.tensor.name if plain else None


def _reuse(reader: Stage, stage: Stage) -> float:
    """How often a reduction reads each element of a stage; 0 for a reader without one."""
    reduce = next((n for n in core.walk(reader.expr) if isinstance(n, core.Reduce)), None)
    if reduce is None or all(load.tensor.name != stage.name for load in loads(reduce)):
        return 0.0
    points = reader.tensor.size
    for axis in reduce.axes:
        points *= axis.extent
    return points / max(1, stage.tensor.size)


# ---------------------------------------------------------------- outputs of unit dimensions
def squeezed_outputs(program: Program) -> Program:
    """An output that is another stage but for dimensions of one element is that stage."""
    stages = {stage.name: stage for _, stage in core.stages(program.body)}
    found = readers(program)
    replaced: dict[str, Stage | None] = {}
    for stage in stages.values():
        source = _squeezed(stage, stages)
        if stage.tensor.kind == "output" and source and found[source.name] == {stage.name}:
            replaced[source.name] = None
            replaced[stage.name] = _renamed(source, stage)
    body = [replaced.get(s.name, s) for s in stages.values()]
    return replace(program, body=tuple(stage for stage in body if stage is not None))


def _squeezed(stage: Stage, stages: dict[str, Stage]) -> Stage | None:
    load = stage.expr
    if not isinstance(load, core.Load) or load.tensor.name not in stages:
        return None
    source = stages[load.tensor.name]
    wide = [(a.var, a.extent) for a in stage.axes if a.extent > 1]
    kept = [(i, n) for i, n in zip(load.indices, source.tensor.shape, strict=True) if n > 1]
    same = [(i.var if isinstance(i, core.VarRef) else None, n) for i, n in kept] == wide
    fits = source.tensor.kind == "stage" and source.tensor.dtype is stage.tensor.dtype
    return source if same and fits else None


def _renamed(source: Stage, stage: Stage) -> Stage:
    """``source`` under the name and shape of ``stage``."""
    wide = iter([axis for axis in source.axes if axis.extent > 1])
    axes = tuple(axis if axis.extent == 1 else next(wide) for axis in stage.axes)
    units = {a.var: core.Const(0, a.var.dtype) for a in source.axes if a.extent == 1}
    expr = substitute(source.expr, units)
    return Stage(stage.name, stage.tensor, tuple(axis.var for axis in axes), axes, expr)


# ---------------------------------------------------------------- element-wise chains
def fused_once(program: Program) -> Program:
    """Element-wise stages substituted into the one element-wise stage that reads them.

    Only where each element is read once, or several times by the same element of the reader, so
    nothing is computed twice.
    """
    names = Names(program.next_uid)
    stages = {stage.name: stage for _, stage in core.stages(program.body)}
    found = readers(program)
    inlined: set[str] = set()
    for stage in list(stages.values()):
        who = found.get(stage.name, set())
        if stage.tensor.kind != "stage" or len(who) != 1 or has_reduction(stage):
            continue
        reader = stages[next(iter(who))]
        if reader.name in inlined or stage.name in inlined:
            continue
        bound = _bound_once(reader, stage, names)
        if bound is not None:
            stages[reader.name] = bound
            inlined.add(stage.name)
    body = tuple(stages[s.name] for _, s in core.stages(program.body))
    program = replace(program, body=body, next_uid=names.next_uid)
    # A chain is substituted from its end: each stage goes into a reader that stays or goes itself.
    return inline_stages(program, inlined, names)


def _bound_once(reader: Stage, stage: Stage, names: Names) -> Stage | None:
    """The reader with one read of ``stage``; None where substitution would cost something."""
    if has_reduction(reader) or size(reader.expr) + size(stage.expr) > MAX_FUSED_NODES:
        return None
    reads = [load for load in loads(reader.expr) if load.tensor.name == stage.name]
    indices = reads[0].indices
    if any(load.indices != indices for load in reads) or reader.tensor.size > stage.tensor.size:
        return None
    if not all(free_vars(index) <= set(reader.lhs) for index in indices):
        return None
    if not _distinct(indices, reader):
        return None
    if len(reads) == 1:
        return reader
    var = names.var("t", core.Var("t", 0, reads[0].dtype))
    expr = _replaced(reader.expr, reads[0], core.VarRef(var))
    return replace(reader, expr=core.Block(((var, reads[0]),), expr))


def _distinct(indices: tuple[Expr, ...], reader: Stage) -> bool:
    """Whether each wide axis of the reader is an index of its own."""
    bare = [i.var for i in indices if isinstance(i, core.VarRef)]
    rest = [i for i in indices if not isinstance(i, core.VarRef)]
    wide = {axis.var for axis in reader.axes if axis.extent > 1}
    plain = len(set(bare)) == len(bare) and wide <= set(bare)
    return plain and all(const_value(i) is not None for i in rest)


def _replaced(expr: Expr, load: core.Load, by: Expr) -> Expr:
    if expr == load:
        return by
    return map_children(expr, lambda e: _replaced(e, load, by))
