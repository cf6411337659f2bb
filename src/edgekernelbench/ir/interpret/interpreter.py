"""The interpreter's entry."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.interpret.compile import Compiler
from edgekernelbench.ir.interpret.frame import Frame, InterpretError
from edgekernelbench.ir.interpret.inputs import bind_inputs
from edgekernelbench.ir.interpret.numeric import Mode
from edgekernelbench.ir.interpret.run import Builder
from edgekernelbench.ir.interpret.storage import allocate, plan, stage_dtypes

_MAX_DEPTH = 5000


def interpret(
    program: core.Program, inputs: Mapping[str, np.ndarray], mode: Mode = "f64"
) -> dict[str, np.ndarray]:
    """Runs a verified program and returns its outputs by name.

    Integers are computed in their declared dtypes and wrap (also s32, whose overflow the language
    leaves undefined). NaN: ``min``, ``max`` and their reductions return NaN when any operand is
    NaN; ``argmax`` and ``argmin`` pass over NaN unless all elements are NaN. Float sums are
    added in no particular order.

    Args:
        inputs: one array for each declared input, of its shape and dtype. In mode ``f64`` a
            float input may also come as float64.
        mode: ``f64`` computes and stores floats in float64 whatever their declared dtype;
            ``declared`` computes each expression in its dtype and rounds stores to the tensor's.

    Returns:
        Fresh arrays of the declared shapes: floats as float64 in mode ``f64``, all else in the
        declared dtypes.

    Raises:
        InterpretError: the inputs do not fit, or the program does what a verified one cannot
            (a read out of range, an integer division by zero).
    """
    arrays = bind_inputs(program, inputs, mode)
    layout = plan(program)
    compiler = Compiler(mode, layout.storages)
    with _room_for(program), np.errstate(all="ignore"):
        builder = Builder(compiler, layout)
        steps = [builder.node(node) for node in program.body]
        frame = Frame(len(compiler.slots), len(layout.storages))
        for name, array in arrays.items():
            frame.keep(layout.storages[name].number, array)
        dtypes = stage_dtypes(program, mode)
        try:
            for step, defined, dead in zip(steps, layout.defined, layout.dead, strict=True):
                allocate(frame, layout, defined, dtypes)
                step(frame)
                for name in dead:
                    frame.keep(layout.storages[name].number, None)
        except MemoryError:
            raise InterpretError("the program needs more memory than there is") from None
    return {t.name: frame.store[layout.storages[t.name].number] for t in program.outputs}


@contextmanager
def _room_for(program: core.Program) -> Iterator[None]:
    """Lets Python recurse as deep as the program's expressions are nested."""
    depth = max((_depth(stage.expr) for _, stage in core.stages(program.body)), default=0)
    if depth > _MAX_DEPTH:
        raise InterpretError(f"an expression is nested {depth} deep; {_MAX_DEPTH} is the limit")
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 2000 + 8 * depth))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _depth(expr: core.Expr) -> int:
    deepest = 0
    stack = [(expr, 1)]
    while stack:
        top, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in core.children(top))
    return deepest
